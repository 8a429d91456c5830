package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/internal/run"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// envData is the environment variable that names the folder of real data, as for the tests.
const envData = "CATENARY_DATA"

// config is what the program is told.
type config struct {
	runs    int
	runTime time.Duration
	rows    *regexp.Regexp
	store   string
	data    string
	// importRows bounds the rows of an import; 0 means all.
	importRows int
	profile    string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	end := run.Slack(os.Getenv) // as the programs do that are measured
	code := program(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	end()
	os.Exit(code)
}

// program does what the arguments say and gives the exit code. A row that falls short is a figure like others: it does not make the
// program fail.
func program(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) int {
	work := bench
	if len(args) > 0 {
		switch args[0] {
		case "load":
			work, args = load, args[1:]
		case "agents":
			work, args = agents, args[1:]
		}
	}
	err := work(ctx, args, env, stdout, stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.Is(err, errUsage):
		return exitUsage
	}
	fmt.Fprintf(stderr, "bench: %v\n", err)
	return exitFailed
}

// errUsage marks arguments that can't work; what is wrong was said.
var errUsage = errors.New("usage")

func parseConfig(args []string, env func(string) string, stderr io.Writer) (config, error) {
	var c config
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&c.runs, "runs", 5, "how often each row is run; the medians are shown")
	flags.DurationVar(&c.runTime, "time", time.Second, "how long one run of a row takes, and as long again for its bare counterpart")
	pattern := flags.String("rows", "", "run only the rows whose name matches this `pattern`")
	flags.StringVar(&c.store, "store", os.TempDir(), "`directory` for the servers' stores, on the disk to be measured")
	flags.StringVar(&c.data, "data", dataFolder(env), "`directory` with the real data; without it there is no import")
	flags.IntVar(&c.importRows, "import-rows", 20_000, "how many rows of the load set each run imports; 0 for all")
	flags.StringVar(&c.profile, "cpuprofile", "", "write a CPU profile to this `file`")
	if err := flags.Parse(args); err != nil {
		return c, errors.Mark(err, errUsage)
	}
	var err error
	if c.rows, err = regexp.Compile(*pattern); err != nil {
		fmt.Fprintf(stderr, "bench: -rows: %v\n", err)
		return c, errors.Mark(err, errUsage)
	}
	if flags.NArg() > 0 || c.runs < 1 || c.runTime <= 0 || c.importRows < 0 {
		fmt.Fprintln(stderr, "bench: takes flags only, with -runs and -time above zero")
		return c, errUsage
	}
	return c, nil
}

// dataFolder is where the real data is looked for: where the environment says, else beside the checkout.
func dataFolder(env func(string) string) string {
	if dir := env(envData); dir != "" {
		return dir
	}
	return filepath.Join("..", "shared", "data")
}

// bench runs the rows and prints their table.
func bench(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) (err error) {
	c, err := parseConfig(args, env, stderr)
	if err != nil {
		return err
	}
	if c.profile != "" {
		f, err := os.Create(c.profile)
		if err != nil {
			return errors.Wrap(err, "write the CPU profile")
		}
		defer func() { err = errors.CombineErrors(err, f.Close()) }()
		if err := pprof.StartCPUProfile(f); err != nil {
			return errors.Wrap(err, "write the CPU profile")
		}
		defer pprof.StopCPUProfile()
	}
	dir, err := os.MkdirTemp(c.store, "catenary-bench-")
	if err != nil {
		return errors.Wrap(err, "make a store directory")
	}
	defer func() { err = errors.CombineErrors(err, os.RemoveAll(dir)) }()
	b := &bencher{config: c, dir: dir, talk: stderr}
	lines, err := b.run(ctx)
	if err != nil {
		return err
	}
	return printTable(stdout, c, lines)
}

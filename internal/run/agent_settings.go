package run

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/pflag"
	"gopkg.in/yaml.v3"

	"catenary/agent/artifacts"
	"catenary/agent/driver"
	"catenary/agent/driver/dir"
	"catenary/agent/driver/exec"
	"catenary/agent/driver/sim"
	"catenary/agent/driver/systemd"
	"catenary/embedded"
	"catenary/es"
	"catenary/internal/natsconn"
	"catenary/internal/topology"
)

// AgentSettings are what the binary agent is told. Each comes from a flag, or else from the environment (CATENARY_LOG_LEVEL for log-level),
// or else from the file that config names, or else from the defaults. Drivers are in the file alone.
type AgentSettings struct {
	Node  string `yaml:"node"`
	State string `yaml:"state"`
	// Server, Creds and Context say where the bus is; Credentials is a file that catenary agent credentials has made.
	Server      string `yaml:"server"`
	Creds       string `yaml:"creds"`
	Context     string `yaml:"context"`
	Credentials string `yaml:"credentials"`
	LogLevel    string `yaml:"log-level"`
	// HTTP is where /healthz, /readyz and /metrics are served, Traces a file that spans are appended to; empty means neither.
	HTTP   string `yaml:"http"`
	Traces string `yaml:"traces"`
	// Every and Observe are the time between two check-ins, and between two looks at what really runs, as Go durations.
	Every   string `yaml:"every"`
	Observe string `yaml:"observe"`
	// Artifacts are places to get artifacts from before the depot is asked, separated by spaces: see [artifacts.ParsePlace].
	Artifacts string `yaml:"artifacts"`
	// CacheBytes bounds the artifacts that are kept on the node.
	CacheBytes int64 `yaml:"cache-bytes"`
	// Simulate runs so many agents that only remember, for load, in the place of one.
	Simulate int `yaml:"-"`
	// Drivers are configured one after another, each with its kind.
	Drivers []yaml.Node `yaml:"drivers"`

	every, observe time.Duration
	level          slog.Level
}

const agentAbout = "Agent brings to its node what the chain tells it, and reports what came of it."

// LoadAgentSettings reads the settings. Help goes to the writer. It gives errors marked [ErrSettings], or [ErrHelp].
func LoadAgentSettings(args []string, env func(string) string, help io.Writer) (AgentSettings, error) {
	f := pflag.NewFlagSet("agent", pflag.ContinueOnError)
	f.SortFlags = false
	var s AgentSettings
	config := f.String("config", "", "YAML `file` with settings under these names, and with the drivers")
	f.StringVar(&s.Node, "node", "", "the `name` of the node")
	f.StringVar(&s.State, "state", "", "the `directory` that keeps what the agent knows, one for each agent")
	f.StringVar(&s.Server, "server", "", "`URL` of the bus (default NATS_URL)")
	f.StringVar(&s.Credentials, "credentials", "", "`file` made by catenary agent credentials (default NATS_USER and NATS_PASSWORD)")
	f.StringVar(&s.Creds, "creds", "", "NATS credentials `file` (default NATS_CREDS)")
	f.StringVar(&s.Context, "context", "", "`name` of a nats context (default NATS_CONTEXT)")
	f.StringVar(&s.LogLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&s.HTTP, "http", "", "serve /healthz, /readyz and /metrics at `HOST:PORT`, or at a port of loopback (default not at all)")
	f.StringVar(&s.Traces, "traces", "", "append traces to a `file`, a span a line (OTEL_EXPORTER_OTLP_ENDPOINT sends them on)")
	f.StringVar(&s.Every, "every", "10s", "`span` between two check-ins; silent for three, a node counts as off")
	f.StringVar(&s.Observe, "observe", "30s", "`span` between two looks at what really runs")
	f.StringVar(&s.Artifacts, "artifacts", "", "`places` to get artifacts from before the bus: a directory, file:DIR, oci:DIR or https://…/{sha256}")
	f.Int64Var(&s.CacheBytes, "cache-bytes", artifacts.DefaultCacheBytes, "limit of the artifacts that are kept on the node")
	f.IntVar(&s.Simulate, "simulate", 0, "run so `many` agents that only remember, of the nodes NODE-0001 and so on, for load")
	if err := parse(f, agentAbout, args, help); err != nil {
		return s, err
	}
	if *config == "" {
		*config = env(variable("config"))
	}
	if err := s.readFile(*config, f); err != nil {
		return s, err
	}
	var failed error
	f.VisitAll(func(flag *pflag.Flag) {
		if v := env(variable(flag.Name)); v != "" && !flag.Changed && failed == nil {
			failed = errors.Wrapf(f.Set(flag.Name, v), "setting %s", flag.Name)
		}
	})
	if failed != nil {
		return s, errors.Mark(failed, ErrSettings)
	}
	return s, errors.Mark(s.validate(), ErrSettings)
}

// readFile takes what the file says where no flag does.
func (s *AgentSettings) readFile(path string, f *pflag.FlagSet) error {
	if path == "" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return errors.Mark(errors.Wrap(err, "setting config"), ErrSettings)
	}
	given := map[string]string{}
	f.Visit(func(flag *pflag.Flag) { given[flag.Name] = flag.Value.String() })
	if err := decodeStrictly(text, s); err != nil {
		return errors.Mark(errors.Wrapf(err, "settings in %s", path), ErrSettings)
	}
	for name, value := range given {
		if err := f.Set(name, value); err != nil {
			return errors.Mark(errors.Wrapf(err, "setting %s", name), ErrSettings)
		}
	}
	return nil
}

// decodeStrictly reads YAML, of which nothing may be unknown. An empty text says nothing.
func decodeStrictly(text []byte, into any) error {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

func (s *AgentSettings) validate() error {
	if err := es.CheckName("node", s.Node); err != nil {
		return errors.Wrap(err, "setting node")
	}
	if s.State == "" && s.Simulate == 0 {
		return errors.New("setting state is empty: name a directory that the agent keeps what it knows in")
	}
	if s.Simulate < 0 {
		return errors.Newf("simulate is %d: it can't be negative", s.Simulate)
	}
	if s.CacheBytes <= 0 {
		return errors.Newf("cache-bytes is %d: it must be above zero", s.CacheBytes)
	}
	for name, span := range map[string]struct {
		text string
		into *time.Duration
	}{"every": {s.Every, &s.every}, "observe": {s.Observe, &s.observe}} {
		d, err := time.ParseDuration(span.text)
		if err != nil || d <= 0 {
			return errors.Newf("%s is %q: give a span such as 10s", name, span.text)
		}
		*span.into = d
	}
	if err := s.level.UnmarshalText([]byte(s.LogLevel)); err != nil {
		return errors.Newf("log-level is %q: it is debug, info, warn or error", s.LogLevel)
	}
	return nil
}

// bus says where the bus is, and who connects.
func (s *AgentSettings) bus(env func(string) string, log *slog.Logger) (natsconn.Config, error) {
	c := natsconn.Config{Server: s.Server, Creds: s.Creds, Context: s.Context}
	if s.Credentials != "" {
		credentials, err := embedded.ReadCredentials(s.Credentials)
		if err != nil {
			return c, errors.Mark(errors.Wrap(err, "setting credentials"), ErrSettings)
		}
		c.User, c.Password = credentials.User, credentials.Password
	}
	c = c.WithEnvironment(env)
	// The server would only say what it forbids, again and again.
	if node, is := topology.AgentUserNode(c.User); is && s.Simulate == 0 && node != es.EscapeToken(s.Node) {
		return c, errors.Mark(errors.Newf("the credentials are those of %s, and this is the agent of node %s: make some with catenary agent credentials %s", c.User, s.Node, s.Node), ErrSettings)
	}
	c.Name, c.Logger = "catenary agent of "+s.Node, log
	return c, nil
}

// drivers makes the drivers of the file, which get artifacts from the source. It gives errors marked [ErrSettings].
func (s *AgentSettings) drivers(source dir.Source) ([]driver.Driver, error) {
	var all []driver.Driver
	for i, node := range s.Drivers {
		d, err := s.driver(node, source)
		if err != nil {
			return nil, errors.Mark(errors.Wrapf(err, "driver %d of the file (line %d)", i+1, node.Line), ErrSettings)
		}
		all = append(all, d)
	}
	return all, nil
}

func (s *AgentSettings) driver(node yaml.Node, source dir.Source) (driver.Driver, error) {
	text, err := yaml.Marshal(&node)
	if err != nil {
		return nil, err
	}
	var kind struct {
		Kind string `yaml:"kind"`
	}
	if err := yaml.Unmarshal(text, &kind); err != nil {
		return nil, err
	}
	switch kind.Kind {
	case exec.Kind:
		c, err := configOf[exec.Config](text)
		if err != nil {
			return nil, err
		}
		return exec.New(c, s.State, Version())
	case dir.Kind:
		c, err := configOf[dir.Config](text)
		if err != nil {
			return nil, err
		}
		if c.Root != "" {
			// As the state, it may be told relative to where the agent is started.
			if c.Root, err = filepath.Abs(c.Root); err != nil {
				return nil, err
			}
		}
		return dir.New(c, source, agentClock(), Version())
	case systemd.Kind:
		c, err := configOf[systemd.Config](text)
		if err != nil {
			return nil, err
		}
		return systemd.New(c, Version())
	case sim.Kind:
		c, err := configOf[sim.Config](text)
		if err != nil {
			return nil, err
		}
		return sim.New(c, &sim.World{}, Version())
	}
	return nil, errors.Newf("its kind is %q: it is one of %s, %s, %s, %s", kind.Kind, exec.Kind, dir.Kind, systemd.Kind, sim.Kind)
}

// configOf reads the configuration of a driver beside its kind.
func configOf[T any](text []byte) (T, error) {
	var c struct {
		Kind   string `yaml:"kind"`
		Config T      `yaml:",inline"`
	}
	err := decodeStrictly(text, &c)
	return c.Config, err
}

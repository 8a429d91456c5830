package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/embedded"
	"catenary/internal/cluster"
	"catenary/internal/diagnosis"
	"catenary/internal/health"
	"catenary/internal/natsconn"
	"catenary/internal/room"
	"catenary/internal/run"
)

const doctorHelp = `Doctor asks every process of the chain how it is, looks at who does not answer, and names each thing that is wrong with what to do
about it. It works when nothing runs, too, and when half of it does.

It ends with 0 when nothing is wrong, with 12 when there are only warnings, and with 1 when something fails.`

// doctorPatience bounds each question of doctor and check: what does not answer by then is part of the finding.
const doctorPatience = 5 * time.Second

// formatText is for people: a paragraph for each problem.
const formatText format = "text"

// Errors that only set the exit code: what is wrong was shown.
var (
	errFound  = errors.New("something is wrong")
	errWarned = errors.New("there are warnings")
)

func (a *app) doctorCommand() *cobra.Command {
	var all bool
	var store string
	cmd := &cobra.Command{
		Use: "doctor", Short: "Name what is wrong, and what to do about it", Long: doctorHelp, GroupID: groupRun, Args: cobra.NoArgs,
		Example: "  catenary doctor\n  catenary doctor --all -o json\n  catenary doctor --store /var/lib/catenary",
	}
	cmd.Flags().BoolVar(&all, "all", false, "show what is as it should be, too")
	cmd.Flags().StringVar(&store, "store", "", "look at the `directory` of a server's store on this machine, too")
	output := formatFlag(cmd, formatText, formatText, formatJSON, formatYAML)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		evidence, err := a.evidence(cmd.Context(), store)
		if err != nil {
			return err
		}
		d := diagnosis.Diagnose(evidence)
		return errors.CombineErrors(a.showDiagnosis(d, evidence, *output, all), foundError(d.State))
	}
	return cmd
}

// foundError gives the error that sets the exit code for a state.
func foundError(s health.State) error {
	switch s {
	case health.OK:
		return nil
	case health.Warn:
		return errWarned
	case health.Fail:
	}
	return errFound
}

func (a *app) showDiagnosis(d diagnosis.Diagnosis, e diagnosis.Evidence, output format, all bool) error {
	if output != formatText {
		if !all {
			d.Well = nil
		}
		body, err := json.Marshal(d)
		if err != nil {
			return errors.Wrap(err, "encode what was found")
		}
		return a.printOne(output, nil, line{name: "doctor", json: body})
	}
	zone, err := a.location()
	if err != nil {
		return err
	}
	shown := d.Problems
	if all {
		shown = append(shown, d.Well...)
	}
	var text strings.Builder
	for _, p := range shown {
		a.writeProblem(&text, p, zone)
	}
	if _, err := a.Stdout.Write([]byte(text.String())); err != nil {
		return errors.Wrap(err, "write the output")
	}
	if len(d.Problems) == 0 {
		a.sayf("nothing is wrong: %s, %s", counted(len(d.Well), "check"), counted(len(e.Reports), "process"))
	}
	return nil
}

// writeProblem writes what is wrong as a paragraph: what to do takes more than a column.
func (a *app) writeProblem(b *strings.Builder, p diagnosis.Problem, zone *time.Location) {
	shade := map[health.State]colour{health.Fail: red, health.Warn: yellow}[p.State]
	state := fmt.Sprintf("%-4s", p.State)
	fmt.Fprintf(b, "%s  %s", paintIf(a.colours(a.Stdout) && shade != "", shade, state), printable(p.About))
	if !p.Since.IsZero() {
		fmt.Fprintf(b, ", since %s", showTime(p.Since, zone))
	}
	b.WriteByte('\n')
	indented := func(lead, text string) {
		if text != "" {
			fmt.Fprintf(b, "      %s%s\n", lead, strings.ReplaceAll(printable(text), "\n", "\n      "))
		}
	}
	indented("", p.What)
	indented("next: ", p.Next)
}

// quietBus says where the bus is, for who tells of its troubles as findings.
func (a *app) quietBus() natsconn.Config {
	config := a.bus.WithEnvironment(a.Env)
	config.Logger = slog.New(slog.DiscardHandler)
	return config
}

// dialBriefly connects for doctor and check.
func (a *app) dialBriefly(ctx context.Context) (*session, error) {
	config := a.quietBus()
	config.Timeout = min(doctorPatience, a.timeout)
	return a.dial(ctx, config)
}

// evidence finds out all that can be. It gives errors for arguments only: what fails otherwise is evidence.
func (a *app) evidence(ctx context.Context, store string) (diagnosis.Evidence, error) {
	e := diagnosis.Evidence{Version: run.Version()}
	if store != "" {
		e.Store = lookAtStore(store)
	}
	s, err := a.dialBriefly(ctx)
	switch {
	case errors.Is(err, natsconn.ErrConfig):
		return e, err
	case err != nil:
		e.Unreached, e.Denied = err, errors.Is(err, natsconn.ErrDenied)
		return e, nil
	}
	defer s.conn.Close()
	e.Server = s.conn.ConnectedUrlRedacted()
	asking, cancel := context.WithTimeout(ctx, min(doctorPatience, a.timeout))
	defer cancel()
	asking, forbid := s.conn.WithDenial(asking)
	defer forbid()
	if e.Reports, err = health.Gather(asking, s.conn.Conn); err != nil {
		if ctx.Err() != nil {
			return e, ctx.Err()
		}
		e.Unreached, e.Denied = err, errors.Is(context.Cause(asking), natsconn.ErrDenied)
		return e, nil
	}
	// Nobody is heard by who may not ask, and that says nothing of the chain.
	if denied := context.Cause(asking); len(e.Reports) == 0 && errors.Is(denied, natsconn.ErrDenied) {
		e.Unreached, e.Denied = denied, true
		return e, nil
	}
	servers, err := cluster.Ask(asking, s.conn.Conn)
	if e.ServersError = err; err == nil {
		e.Servers = &servers
	}
	views, _, _ := s.views(asking) // that nobody answers shows in what is missing
	for _, v := range views {
		e.Tail = max(e.Tail, v.Position.Event+v.Behind)
		if v.Copy != nil {
			e.Copies = append(e.Copies, diagnosis.Copy{View: v.View, Event: v.Copy.Event, Problem: v.Copy.Problem})
		}
	}
	e.Nodes, e.NodesError = s.desk().Nodes(asking)
	return e, ctx.Err()
}

// lookAtStore looks at a store directory on this machine.
func lookAtStore(dir string) *diagnosis.Store {
	s := &diagnosis.Store{Dir: dir}
	if s.Problem = embedded.CheckAnyStore(dir); s.Problem != nil {
		return s
	}
	s.Free, s.Problem = room.FreeBytes(dir)
	return s
}

// exitNames name the states of a check as monitoring programs do.
func exitNames() map[health.State]string {
	return map[health.State]string{health.OK: "OK", health.Warn: "WARNING", health.Fail: "CRITICAL"}
}

package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/agent/driver"
	"catenary/commands"
	"catenary/events"
)

// scripted is a driver that does as it is told, and notes what it was asked.
type scripted struct {
	name                   string
	check, applies, remove error
	finds                  driver.State
	says, hands            string

	mu    *sync.Mutex
	asked *[]string
}

func (s scripted) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*s.asked = append(*s.asked, s.name+" "+fmt.Sprintf(format, args...))
}

func (s scripted) Describe() events.Driver { return events.Driver{Name: s.name, Version: "1"} }

func (s scripted) Check(context.Context, driver.Task) error {
	s.note("checks")
	return s.check
}

func (s scripted) Apply(_ context.Context, t driver.Task) (driver.Result, error) {
	s.note("applies")
	if _, err := io.WriteString(t.Say(), s.says); err != nil {
		return driver.Result{}, err
	}
	return driver.Result{Outputs: map[string]string{"by": s.name, "text": s.hands}}, s.applies
}

func (s scripted) Observe(context.Context, driver.Task) (driver.Finding, error) {
	s.note("observes")
	return driver.Finding{State: s.finds}, nil
}

func (s scripted) Remove(context.Context, driver.Task) error {
	s.note("removes")
	return s.remove
}

var (
	errOdd   = errors.New("odd")
	unsuited = driver.Unsuited(errors.New("not mine"))
	fatal    = driver.Fatal(errors.New("broken"))
)

// TestDriversInOrder holds the order in which drivers are tried, and which failure counts.
func TestDriversInOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		drivers []scripted
		wants   []string // the module's; nil leaves it to the agent
		by      string
		asked   []string
		fails   string
	}{
		{name: "the first", drivers: []scripted{{name: "a"}, {name: "b"}}, by: "a", asked: []string{"a checks", "a applies"}},
		{name: "the module's order", drivers: []scripted{{name: "a"}, {name: "b"}}, wants: []string{"b", "a"}, by: "b", asked: []string{"b checks", "b applies"}},
		{name: "one the agent does not have", drivers: []scripted{{name: "a"}}, wants: []string{"x", "a"}, by: "a", asked: []string{"a checks", "a applies"}},
		{name: "not for the first", drivers: []scripted{{name: "a", check: unsuited}, {name: "b"}}, by: "b", asked: []string{"a checks", "b checks", "b applies"}},
		{name: "found out while applying", drivers: []scripted{{name: "a", applies: unsuited}, {name: "b"}}, by: "b", asked: []string{"a checks", "a applies", "b checks", "b applies"}},
		{name: "an unexpected failure falls through", drivers: []scripted{{name: "a", applies: errOdd}, {name: "b"}}, by: "b", asked: []string{"a checks", "a applies", "b checks", "b applies"}},
		{name: "a fatal one ends it", drivers: []scripted{{name: "a", applies: fatal}, {name: "b"}}, by: "a", asked: []string{"a checks", "a applies"}, fails: "driver a: broken"},
		{
			name: "all fail: the first unexpected counts", drivers: []scripted{{name: "a", check: unsuited}, {name: "b", applies: errOdd}, {name: "c", check: errors.New("other")}},
			by: "b", asked: []string{"a checks", "b checks", "b applies", "c checks"}, fails: "driver b: odd",
		},
		{name: "none is for it", drivers: []scripted{{name: "a", check: unsuited}}, wants: []string{"x", "a"}, asked: []string{"a checks"}, fails: "no driver is the one for web: x: this agent has none of that name; a: not mine"},
		{name: "the agent has none", fails: "no driver is the one for web: this agent has none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d, asked := deliveryOf(c.drivers)
			i := standing("web", 7, "1")
			if c.wants != nil {
				i.Delivery = &events.Delivery{Drivers: c.wants}
			}
			r := d.do(t.Context(), Action{Doing: Doing{Deed: Apply, Instruction: i, Attempt: 1}})
			by := ""
			if r.done.Driver != nil {
				by = r.done.Driver.Name
			}
			if by != c.by || r.done.Failure != c.fails || r.interrupted {
				t.Errorf("done by %q, failed with %q; want %q, %q", by, r.done.Failure, c.by, c.fails)
			}
			if diff := cmp.Diff(c.asked, *asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if c.fails == "" && r.done.Outputs["by"] != c.by {
				t.Errorf("outputs are %v", r.done.Outputs)
			}
		})
	}
}

func deliveryOf(drivers []scripted) (*delivery, *[]string) {
	asked := new([]string)
	d := &delivery{node: "n1", log: slog.New(slog.DiscardHandler)}
	mu := new(sync.Mutex)
	for _, s := range drivers {
		s.asked, s.mu = asked, mu
		d.drivers = append(d.drivers, s)
	}
	return d, asked
}

// TestOutputsThatCantBeHandedOn fails a deed: whoever waits for them would be told without them.
func TestOutputsThatCantBeHandedOn(t *testing.T) {
	t.Parallel()
	d, _ := deliveryOf([]scripted{{name: "a", hands: strings.Repeat("x", 9000)}})
	r := d.do(t.Context(), Action{Doing: Doing{Deed: Apply, Instruction: standing("web", 7, "1"), Attempt: 1}})
	if !strings.Contains(r.done.Failure, "9000 bytes") || r.done.Outputs != nil {
		t.Errorf("it is done with %d outputs: %.100s", len(r.done.Outputs), r.done.Failure)
	}
}

// TestRemoves takes away by the driver that has applied, or by each that finds something.
func TestRemoves(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		drivers []scripted
		by      string
		asked   []string
		fails   string
	}{
		{name: "by the one that applied", drivers: []scripted{{name: "a"}, {name: "b"}}, by: "b", asked: []string{"b removes"}},
		{name: "that one is gone", drivers: []scripted{{name: "a"}}, by: "b", fails: "driver b has brought web, and this agent does not have it any more: put it back into the agent's configuration"},
		{name: "it fails", drivers: []scripted{{name: "a", remove: errOdd}}, by: "a", asked: []string{"a removes"}, fails: "driver a: odd"},
		{
			name: "not known by which", drivers: []scripted{{name: "a", finds: driver.Absent}, {name: "b", finds: driver.Other}, {name: "c", finds: driver.Unknown}},
			asked: []string{"a observes", "b observes", "b removes", "c observes", "c removes"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d, asked := deliveryOf(c.drivers)
			r := d.do(t.Context(), Action{Doing: Doing{Deed: Remove, Instruction: standing("web", 7, "1")}, By: c.by})
			if diff := cmp.Diff(c.asked, *asked); diff != "" || r.done.Failure != c.fails {
				t.Errorf("failed with %q, asked (-want +got):\n%s", r.done.Failure, diff)
			}
		})
	}
}

// TestAnotherDriver brings a module by another driver than before: the former one takes away what it had brought, and not before.
func TestAnotherDriver(t *testing.T) {
	t.Parallel()
	d, asked := deliveryOf([]scripted{{name: "new"}, {name: "old"}})
	r := d.do(t.Context(), Action{Doing: Doing{Deed: Apply, Instruction: standing("web", 7, "1")}, By: "old"})
	if diff := cmp.Diff([]string{"new checks", "new applies", "old removes"}, *asked); diff != "" || r.done.Failure != "" {
		t.Errorf("failed with %q, asked (-want +got):\n%s", r.done.Failure, diff)
	}
}

// Case E14, the agent's side: what was begun before the agent was killed is settled by what the drivers find.
func TestSettles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		deed   Deed
		finds  []driver.State
		former string
		want   driver.State
		by     string
	}{
		{name: "applied", deed: Apply, finds: []driver.State{driver.Absent, driver.AsTold}, want: driver.AsTold, by: "d1"},
		{name: "not applied", deed: Apply, finds: []driver.State{driver.Absent, driver.Other}, want: driver.Unknown},
		{name: "nothing there", deed: Apply, finds: []driver.State{driver.Absent, driver.Absent}, want: driver.Absent},
		{name: "applied, and nothing is left of the former driver's", deed: Apply, finds: []driver.State{driver.Absent, driver.AsTold}, former: "d0", want: driver.AsTold, by: "d1"},
		{name: "applied, and the former driver's is still there", deed: Apply, finds: []driver.State{driver.Other, driver.AsTold}, former: "d0", want: driver.Unknown},
		{name: "applied by the same as before", deed: Apply, finds: []driver.State{driver.Absent, driver.AsTold}, former: "d1", want: driver.AsTold, by: "d1"},
		{name: "applied, and this agent has the former driver no more", deed: Apply, finds: []driver.State{driver.AsTold}, former: "gone", want: driver.AsTold, by: "d0"},
		{name: "it can't tell", deed: Apply, finds: []driver.State{driver.Unknown}, want: driver.Unknown},
		{name: "removed", deed: Remove, finds: []driver.State{driver.Absent}, want: driver.Absent},
		{name: "not removed", deed: Remove, finds: []driver.State{driver.Other}, want: driver.Unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var drivers []scripted
			for n, f := range c.finds {
				drivers = append(drivers, scripted{name: fmt.Sprint("d", n), finds: f})
			}
			d, _ := deliveryOf(drivers)
			r := d.do(t.Context(), Action{Doing: Doing{Deed: c.deed, Instruction: standing("web", 7, "1")}, Settle: true, By: c.former})
			by := ""
			if r.done.Driver != nil {
				by = r.done.Driver.Name
			}
			if r.found.State != c.want || by != c.by {
				t.Errorf("found %+v by %q, want %s by %q", r.found, by, c.want, c.by)
			}
		})
	}
}

// keptLogs keeps what is said of each span.
type keptLogs struct {
	mu    sync.Mutex
	spans map[Span]*strings.Builder
}

type keptLog struct {
	logs *keptLogs
	into *strings.Builder
}

func (k *keptLogs) Open(s Span) io.WriteCloser {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.spans[s] = &strings.Builder{}
	return keptLog{k, k.spans[s]}
}

func (k keptLog) Write(p []byte) (int, error) {
	k.logs.mu.Lock()
	defer k.logs.mu.Unlock()
	return k.into.Write(p)
}

func (k keptLog) Close() error { return nil }

// slow is a driver that applies until its time is over.
type slow struct{ scripted }

func (s slow) Apply(ctx context.Context, _ driver.Task) (driver.Result, error) {
	<-ctx.Done()
	return driver.Result{}, ctx.Err()
}

// TestTooLong: a deed whose time is over says so, and how long that was.
func TestTooLong(t *testing.T) {
	t.Parallel()
	d, _ := deliveryOf([]scripted{{name: "slow"}})
	d.drivers[0] = slow{d.drivers[0].(scripted)}
	i := standing("web", 7, "1")
	i.Delivery = &events.Delivery{Timeout: "10ms"}
	r := d.do(t.Context(), Action{Doing: Doing{Deed: Apply, Instruction: i}})
	if !strings.HasPrefix(r.done.Failure, "it took longer than 10ms: driver slow") {
		t.Errorf("it failed with %q", r.done.Failure)
	}
}

// TestLastLines reports a failure with the last lines of output, within what a report may hold, and keeps all of it in the log.
func TestLastLines(t *testing.T) {
	t.Parallel()
	said := strings.Repeat("a line of output\n", 2000) + "the last line\n"
	d, _ := deliveryOf([]scripted{{name: "a", applies: fatal, says: said}})
	logs := &keptLogs{spans: map[Span]*strings.Builder{}}
	d.logs = logs
	r := d.do(t.Context(), Action{Doing: Doing{Deed: Apply, Instruction: standing("web", 7, "1"), Attempt: 2}})
	if f := r.done.Failure; len(f) > commands.MaxTextBytes || !strings.HasPrefix(f, "driver a: broken\n[") || !strings.HasSuffix(f, "a line of output\nthe last line") {
		t.Errorf("it is %d bytes: %.60q…%q", len(f), f, f[max(0, len(f)-40):])
	}
	span := Span{Node: "n1", Module: "web", Rollout: "r1", Source: 7, Attempt: 2, Deed: Apply}
	if kept := logs.spans[span]; kept == nil || kept.String() != said {
		t.Errorf("kept are %v", logs.spans)
	}
}

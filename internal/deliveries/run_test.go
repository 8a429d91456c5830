package deliveries

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/internal/ndjson"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run imports over a bus and gives what was refused beside the rest.
func run(t rapid.TB, in Input, b *bus, cfg Config) (Summary, []Problem, error) {
	t.Helper()
	plan, err := Examine(in, false, func(Problem) {})
	if err != nil {
		t.Fatal(err)
	}
	if b.random == nil {
		b.random = rand.New(rand.NewPCG(1, 2))
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.kill = cancel
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		b.answer(ctx)
	}()
	defer func() { cancel(); <-answered }()
	var problems []Problem
	cfg.Poster = b
	cfg.Report = func(p Problem) { problems = append(problems, p) }
	s, err := Run(ctx, in, plan, cfg)
	return s, problems, err
}

func mustRun(t rapid.TB, in Input, m *model, cfg Config) Summary {
	t.Helper()
	s, problems, err := run(t, in, &bus{model: m}, cfg)
	if err != nil || len(problems) > 0 {
		t.Fatalf("import: %v, %+v", err, problems)
	}
	return s
}

func want(t *testing.T, name string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestRunRecordsInOrder(t *testing.T) {
	t.Parallel()
	m := newModel()
	in := input(t, row(1, "live", "shop", "1"), row(2, "live", "shop", "2"), row(2, "test", "shop", "3"), row(4, "live", "shop", "1.20"), removal(5, "live", "shop"), row(6, "live", "shop", "2"))
	s := mustRun(t, in, m, Config{})
	want(t, "history", m.history("live", "shop"), []string{"1", "2", "1.20", "unassign", "2"})
	want(t, "history elsewhere", m.history("test", "shop"), []string{"3"})
	want(t, "summary", s, Summary{
		Source: "history", Rows: 6, Accepted: 6, Registered: 3, Nodes: 2, Modules: 1, From: row(1, "", "", "").At, To: row(6, "", "", "").At, Sequence: m.sequence,
	})

	s = mustRun(t, in, m, Config{})
	want(t, "second summary", s, Summary{
		Source: "history", Rows: 6, Repeated: 6, Nodes: 2, Modules: 1, From: row(1, "", "", "").At, To: row(6, "", "", "").At, Sequence: m.sequence,
	})
	if s.Fresh() || !s.Whole() {
		t.Errorf("the second import is fresh %t and whole %t, want false and true", s.Fresh(), s.Whole())
	}
}

func TestRunStateComesFirst(t *testing.T) {
	t.Parallel()
	state, err := ReadState(strings.NewReader(`{"live":{"shop":"0","pay":"7"}}`), row(0, "", "", "").At)
	if err != nil {
		t.Fatal(err)
	}
	m := newModel()
	in := input(t, row(1, "live", "shop", "1"), removal(2, "live", "pay"))
	in.State = &state
	s := mustRun(t, in, m, Config{})
	want(t, "shop", m.history("live", "shop"), []string{"0", "1"})
	want(t, "pay", m.history("live", "pay"), []string{"7", "unassign"})
	if s.Pairs != 2 || s.Accepted != 4 {
		t.Errorf("summary %+v, want 2 pairs and 4 accepted", s)
	}
}

// TestRunEndsNothing: what never stood, and what is lifted without being declared, is no error.
func TestRunEndsNothing(t *testing.T) {
	t.Parallel()
	lift := Row{At: row(2, "", "", "").At, Environment: "e", App: "a", Kind: KindPolicy, Policy: PolicyPromote}
	m := newModel()
	s := mustRun(t, input(t, removal(1, "e", "a"), lift), m, Config{})
	if s.Unchanged != 2 || s.Accepted != 0 || !s.Whole() {
		t.Errorf("summary %+v, want 2 unchanged", s)
	}
}

// TestRunDeclaresTwice: a switch that is set to the same again, for another reason, is no error.
func TestRunDeclaresTwice(t *testing.T) {
	t.Parallel()
	off := func(second int, value string) Row {
		return Row{At: row(second, "", "", "").At, Environment: "e", App: "a", Kind: KindPolicy, Policy: PolicyPromote, New: &value}
	}
	in := input(t, off(1, "false"), off(2, "False"), off(3, "false again"), off(4, "true"), off(5, "True"), off(6, "false"))
	m := newModel()
	for i := range 3 {
		s := mustRun(t, in, m, Config{})
		if i == 0 && s.Accepted != 3 || s.Fresh() != (i == 0) || !s.Whole() {
			t.Errorf("import %d: summary %+v", i+1, s)
		}
		want(t, "freeze", m.keys[es.Ref{Aggregate: "freeze", Key: es.Key("promote_deployment e a")}].history, []string{"declare", "lift", "declare"})
	}
}

func TestRunReportsRefusals(t *testing.T) {
	t.Parallel()
	rows := []Row{row(1, "e", "a", "1"), row(2, "e", "a", "forbidden"), row(3, "e", "a", "3"), row(2, "e", "a", "late"), row(4, "e", "a", "4")}
	m := newModel()
	s, problems, err := run(t, input(t, rows...), &bus{model: m}, Config{})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "history", m.history("e", "a"), []string{"1", "3", "4"})
	want(t, "problems", problems, []Problem{
		{Line: 2, Kind: ProblemRefused, Code: "forbidden", Message: "forbidden"},
		{Line: 4, Kind: ProblemRefused, Code: "effective-behind", Message: "effective-behind"},
	})
	if s.Refused != 2 || s.Accepted != 3 || s.Whole() {
		t.Errorf("summary %+v, want 2 refused, 3 accepted and not whole", s)
	}

	m = newModel()
	_, _, err = run(t, input(t, rows...), &bus{model: m}, Config{Strict: true, InFlight: 1})
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("strict gave %v, want the refused line 2", err)
	}
	want(t, "history in strict mode", m.history("e", "a"), []string{"1"})
}

// TestRunGoesOnAfterAWrongTime: a row that is refused for its time keeps no others away, though it names their node and
// module first, and neither does it once the import is repeated.
func TestRunGoesOnAfterAWrongTime(t *testing.T) {
	t.Parallel()
	rows := []Row{row(1_000_000, "e", "a", "9"), row(2, "e", "a", "1"), row(1, "e", "b", "1"), row(3, "e", "a", "2")}
	m := newModel()
	m.now = row(1000, "", "", "").At
	for i := range 2 {
		s, problems, err := run(t, input(t, rows...), &bus{model: m}, Config{})
		if err != nil {
			t.Fatal(err)
		}
		want(t, "problems", problems, []Problem{{Line: 1, Kind: ProblemRefused, Code: "effective-ahead", Message: "effective-ahead"}})
		want(t, "a", m.history("e", "a"), []string{"1", "2"})
		want(t, "b", m.history("e", "b"), []string{"1"})
		if s.Refused != 1 || s.Accepted+s.Repeated != 3 || s.Fresh() != (i == 0) || s.Registered != map[int]int{0: 3}[i] {
			t.Errorf("import %d: summary %+v", i+1, s)
		}
	}
}

// TestRunOverAnotherHistory: rows that say what stands already leave no event, so the writer does not remember them. When
// the import is repeated they come late, and must neither change anything nor be reported.
func TestRunOverAnotherHistory(t *testing.T) {
	t.Parallel()
	first := input(t, row(1, "e", "a", "1"))
	second := input(t, row(5, "e", "a", "1"), row(5, "e", "a", "2"), row(6, "e", "a", "2"), row(7, "e", "a", "3"))
	second.Name = "second"
	m := newModel()
	mustRun(t, first, m, Config{})
	s := mustRun(t, second, m, Config{})
	if s.Unchanged != 2 || s.Accepted != 2 {
		t.Errorf("summary %+v, want 2 unchanged and 2 accepted", s)
	}
	for range 3 {
		s := mustRun(t, second, m, Config{})
		want(t, "history", m.history("e", "a"), []string{"1", "2", "3"})
		if s.Fresh() || s.Repeated+s.Unchanged != 4 {
			t.Errorf("summary %+v, want nothing fresh", s)
		}
	}
	// Somebody goes on by hand; the last row said nothing new.
	third := input(t, row(8, "e", "a", "4"), row(9, "e", "a", "4"))
	third.Name = "third"
	mustRun(t, third, m, Config{})
	mustRun(t, input(t, row(10, "e", "a", "by hand")), m, Config{})
	if s := mustRun(t, third, m, Config{}); s.Fresh() {
		t.Errorf("summary %+v, want nothing fresh", s)
	}
}

func TestRunGoesOnAfterOthers(t *testing.T) {
	t.Parallel()
	m := newModel()
	mustRun(t, input(t, row(1, "e", "a", "1"), row(3, "e", "a", "3")), m, Config{})
	mustRun(t, Input{Name: "other", Source: input(t, row(4, "e", "a", "by hand")).Source}, m, Config{})
	s := mustRun(t, input(t, row(1, "e", "a", "1"), row(3, "e", "a", "3"), row(5, "e", "a", "5"), row(6, "e", "a", "6")), m, Config{})
	want(t, "history", m.history("e", "a"), []string{"1", "3", "by hand", "5", "6"})
	if s.Accepted != 2 || s.Repeated != 2 {
		t.Errorf("summary %+v, want 2 accepted and 2 repeated", s)
	}
}

func TestRunBounds(t *testing.T) {
	t.Parallel()
	var rows []Row
	for i := range 500 {
		rows = append(rows, row(i, "e", fmt.Sprint("a", i%7), fmt.Sprint(i)))
	}
	for _, cfg := range []Config{{InFlight: 1}, {InFlight: 16}, {InFlight: 64, PerKey: 1}, {}} {
		b := &bus{model: newModel()}
		if _, problems, err := run(t, input(t, rows...), b, cfg); err != nil || len(problems) > 0 {
			t.Fatalf("%+v: %v %+v", cfg, err, problems)
		}
		if most := cfg.InFlight; most > 0 && b.most > most {
			t.Errorf("%d commands were in flight, %d were allowed", b.most, most)
		}
		if cfg.PerKey == 1 && b.most > 7+8 {
			t.Errorf("%d commands were in flight for 15 keys with one each", b.most)
		}
		if cfg.InFlight == 0 && b.most < 50 {
			t.Errorf("at most %d commands were in flight: one key's rows do not share the bus", b.most)
		}
		for a := range 7 {
			if n := len(b.model.history("e", fmt.Sprint("a", a))); n < 500/7 {
				t.Errorf("app %d has %d versions", a, n)
			}
		}
	}
}

func TestRunGivesUp(t *testing.T) {
	t.Parallel()
	in := input(t, row(1, "e", "a", "1"))
	// Long enough for an answer on a busy machine.
	_, _, err := run(t, in, &bus{model: newModel(), trouble: func(int) trouble { return lost }}, Config{Patience: 500 * time.Millisecond})
	if !errors.Is(err, ErrStopped) || !strings.Contains(err.Error(), "lost") {
		t.Errorf("got %v, want it stopped for the lost answers", err)
	}
	plan, _ := examine(t, in)
	silent := posterFunc(func(dispatch.Request, func(es.Answer, error)) {})
	if _, err := Run(context.Background(), in, plan, Config{Poster: silent, Patience: time.Millisecond}); !errors.Is(err, ErrStopped) || !strings.Contains(err.Error(), "no answer came") {
		t.Errorf("got %v, want it stopped for want of an answer", err)
	}
	denied := errors.Mark(errors.New("denied"), dispatch.ErrDenied)
	_, err = Run(context.Background(), in, plan, Config{Poster: posterFunc(func(_ dispatch.Request, done func(es.Answer, error)) { done(es.Answer{}, denied) })})
	if !errors.Is(err, dispatch.ErrDenied) {
		t.Errorf("got %v, want it denied", err)
	}
}

type posterFunc func(dispatch.Request, func(es.Answer, error))

func (f posterFunc) Post(r dispatch.Request, done func(es.Answer, error)) { f(r, done) }

func TestRunReportsProgress(t *testing.T) {
	t.Parallel()
	var got []int
	cfg := Config{Progress: func(done, of int) { got = append(got, done, of) }}
	mustRun(t, input(t, row(1, "e", "a", "1"), row(2, "e", "a", "2")), newModel(), cfg)
	want(t, "progress", got, []int{1, 4, 2, 4, 3, 4, 4, 4})
}

// TestPauseEndsUnseen: a pause may end between the look at it and the wait for its end. What it held back is sent then.
func TestPauseEndsUnseen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ref := es.Ref{Aggregate: "node", Key: "n1"}
		sent := 0
		r := newRunner(t.Context(), Plan{lines: 1}, Config{Poster: posted(func() { sent++ })})
		l := r.lane(step{ref: ref})
		l.add(&item{step: step{ref: ref}})
		r.wake(l)
		r.resume = time.Now().Add(-time.Nanosecond)
		if err := r.step(); err != nil || sent != 1 {
			t.Errorf("%d were sent, error %v", sent, err)
		}
	})
}

// posted notes each command, and answers none.
type posted func()

func (p posted) Post(dispatch.Request, func(es.Answer, error)) { p() }

// TestRunProperty: whatever is busy, lost, unclear or killed, at the end every key has the rows' versions in their order,
// each once.
func TestRunProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel()
		keys := map[[2]string][]string{{"e", "a"}: {"0"}, {"f", "b"}: {"0"}}
		mustRun(t, Input{Name: "before", Source: source(t, row(0, "e", "a", "0"), row(0, "f", "b", "0"))}, m, Config{})
		in := drawHistory(t, keys)
		seed := rapid.Uint64().Draw(t, "seed")
		random := rand.New(rand.NewPCG(seed, 1))
		cfg := Config{InFlight: rapid.SampledFrom([]int{1, 4, 32}).Draw(t, "in flight"), PerKey: rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "per key")}
		kills := rapid.IntRange(0, 3).Draw(t, "kills")
		rate := rapid.SampledFrom([]int{0, 5, 20}).Draw(t, "trouble in 100")
		for i := range kills + 1 {
			b := &bus{model: m, random: rand.New(rand.NewPCG(seed, uint64(i)))}
			b.trouble = func(int) trouble {
				if random.IntN(100) < rate {
					return trouble(1 + random.IntN(4))
				}
				return none
			}
			if i < kills {
				b.killAt = 1 + random.IntN(60)
			}
			s, problems, err := run(t, in, b, cfg)
			if i < kills && errors.Is(err, context.Canceled) {
				continue
			}
			if err != nil || len(problems) > 0 || !s.Whole() {
				t.Fatalf("import: %v, %+v, %+v", err, problems, s)
			}
		}
		for key, versions := range keys {
			if got := m.history(key[0], key[1]); !slices.Equal(got, versions) {
				t.Fatalf("%v has %v, the rows say %v", key, got, versions)
			}
		}
		recorded := m.sequence
		s, problems, err := run(t, in, &bus{model: m}, cfg)
		if err != nil || len(problems) > 0 || s.Fresh() || m.sequence != recorded {
			t.Fatalf("import again: %v, %+v, %+v; %d events, %d before", err, problems, s, m.sequence, recorded)
		}
	})
}

// drawHistory gives a history whose rows of one key often have equal times or say nothing new, and adds what it leads to.
func drawHistory(t *rapid.T, keys map[[2]string][]string) Input {
	var rows []Row
	second := 0
	for i := range rapid.IntRange(1, 40).Draw(t, "rows") {
		second += rapid.SampledFrom([]int{0, 0, 1}).Draw(t, "later")
		key := [2]string{rapid.SampledFrom([]string{"e", "f"}).Draw(t, "environment"), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "app")}
		stands, says := "", fmt.Sprint(i+1)
		if n := len(keys[key]); n > 0 {
			stands = keys[key][n-1]
		}
		switch {
		case stands == "" || stands == "unassign":
		case rapid.IntRange(0, 4).Draw(t, "removed") == 0:
			says = "unassign"
		case rapid.IntRange(0, 3).Draw(t, "same again") == 0:
			says = stands
		}
		if says == "unassign" {
			rows = append(rows, removal(second, key[0], key[1]))
		} else {
			rows = append(rows, row(second, key[0], key[1], says))
		}
		if says != stands {
			keys[key] = append(keys[key], says)
		}
	}
	return Input{Source: source(t, rows...)}
}

// source is a history of rows that goes away with the test.
func source(t rapid.TB, rows ...Row) *ndjson.Source {
	var lines []string
	for _, r := range rows {
		lines = append(lines, write(r))
	}
	s, err := ndjson.Open(ndjson.Standard, strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := t.(interface{ Cleanup(func()) }); ok {
		c.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	return s
}

// nullBus accepts everything at once.
type nullBus struct{}

func (nullBus) Post(r dispatch.Request, done func(es.Answer, error)) {
	v := uint64(1)
	if r.Expected != nil {
		v = *r.Expected + 1
	}
	done(es.Answer{Status: es.StatusAccepted, Version: v}, nil)
}

// BenchmarkRun gives what an import costs besides the bus and the writer.
func BenchmarkRun(b *testing.B) {
	var lines []string
	for i := range 20000 {
		lines = append(lines, write(row(i, "e", fmt.Sprint("a", i%200), fmt.Sprint(i))))
	}
	s, err := ndjson.Open(ndjson.Standard, strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		b.Fatal(err)
	}
	plan, err := Examine(Input{Source: s}, true, func(Problem) {})
	if err != nil {
		b.Fatal(err)
	}
	rows := 0
	for b.Loop() {
		s, err := Run(context.Background(), Input{Source: s}, plan, Config{Poster: nullBus{}})
		if err != nil {
			b.Fatal(err)
		}
		rows += s.Accepted
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

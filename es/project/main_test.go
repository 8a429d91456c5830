package project_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/memstore"
	"catenary/es/project"
	"catenary/es/project/projecttest"
)

func TestMain(m *testing.M) { estest.VerifyTestMain(m) }

// limit bounds every wait of a test. It is reached only when something is broken.
const limit = 60 * time.Second

func bounded(t testing.TB) context.Context {
	t.Helper()
	return estest.Bounded(t, limit)
}

// The events of the tests: things are counted, one or several at a time, or looked at, which changes nothing.
type (
	added struct {
		By int `json:"by"`
	}
	spread struct {
		To []string `json:"to"`
		By int      `json:"by"`
	}
	looked struct{}
	// spoilt can't be folded.
	spoilt struct{}
	// paused, resumed and skipped are orders for a view.
	paused  struct{}
	resumed struct{}
	skipped struct {
		Event uint64 `json:"event"`
	}
	// future is known to the registry of newer programs only.
	future struct{}
)

func newRegistry() *es.Registry {
	r := es.NewRegistry(es.Msgpack{})
	es.Register[added](r, "thing.added.v1")
	es.Register[spread](r, "thing.spread.v1")
	es.Register[looked](r, "thing.looked.v1")
	es.Register[spoilt](r, "thing.spoilt.v1")
	es.Register[lossAccepted](r, "keeper.loss-accepted.v1")
	es.Register[paused](r, "order.paused.v1")
	es.Register[resumed](r, "order.resumed.v1")
	es.Register[skipped](r, "order.skipped.v1")
	return r
}

// orders are the events about views.
func orders() *project.Orders {
	return &project.Orders{
		Instance: func(view string) es.Ref { return es.Ref{Aggregate: "order", Key: view} },
		Read: func(e es.Event) (project.Order, bool) {
			switch data := e.Data.(type) {
			case paused:
				return project.Order{Pause: true, Reason: "by hand"}, true
			case resumed:
				return project.Order{Resume: true}, true
			case skipped:
				return project.Order{Skip: data.Event, Reason: "by mistake"}, true
			}
			return project.Order{}, false
		},
	}
}

func order(view string, data any) projecttest.Fact {
	return projecttest.Fact{Ref: es.Ref{Aggregate: "order", Key: view}, Data: data, Actor: "a7"}
}

func newerRegistry() *es.Registry {
	r := newRegistry()
	es.Register[future](r, "thing.future.v1")
	return r
}

func thing(key string, data any) projecttest.Fact {
	return projecttest.Fact{Ref: es.Ref{Aggregate: "thing", Key: key}, Data: data, Actor: "a1", OnBehalfOf: "a2"}
}

func other(data any) projecttest.Fact {
	return projecttest.Fact{Ref: es.Ref{Aggregate: "other", Key: "o"}, Data: data}
}

// sums keeps the sum of each thing.
type sums struct {
	name    string
	version int
	state   map[string]int
}

func newSums() project.View { return &sums{name: "sums", version: 1, state: map[string]int{}} }

func (s *sums) Name() string         { return s.name }
func (s *sums) Version() int         { return s.version }
func (s *sums) Aggregates() []string { return []string{"thing"} }
func (s *sums) value(n int) []byte   { return fmt.Appendf(nil, `{"sum":%d}`, n) }
func (s *sums) parse(b []byte) (v struct{ Sum int }, err error) {
	return v, json.Unmarshal(b, &v)
}

func (s *sums) Load(key string, value []byte) error {
	v, err := s.parse(value)
	s.state[key] = v.Sum
	return err
}

func (s *sums) Fold(e es.Event) ([]project.Value, error) {
	var keys []string
	by := 0
	switch data := e.Data.(type) {
	case added:
		keys, by = []string{e.Ref.Key}, data.By
	case spread:
		keys, by = data.To, data.By
	case spoilt:
		return nil, errors.New("it is spoilt")
	}
	var values []project.Value
	for _, key := range keys {
		s.state[key] += by
		values = append(values, project.Value{Key: key, Data: s.value(s.state[key])})
	}
	return values, nil
}

// everything keeps how often each instance was heard of, whatever the event says and whether or not it can be read.
type everything struct{ state map[string]int }

func newEverything() project.View { return &everything{state: map[string]int{}} }

func (*everything) Name() string { return "everything" }
func (*everything) Version() int { return 1 }

func (v *everything) Load(key string, value []byte) error {
	n, err := strconv.Atoi(string(value))
	v.state[key] = n
	return err
}

func (v *everything) Fold(e es.Event) ([]project.Value, error) {
	key := e.Ref.Aggregate + "." + e.Ref.Key
	v.state[key]++
	return []project.Value{{Key: key, Data: strconv.AppendInt(nil, int64(v.state[key]), 10)}}, nil
}

// store gives a store with facts.
func store(t testing.TB, facts ...projecttest.Fact) *memstore.Store {
	t.Helper()
	s := memstore.New(memstore.Config{})
	if len(facts) > 0 {
		projecttest.Append(t, newerRegistry(), s, facts...)
	}
	return s
}

// history is a mix of all kinds of events.
func history(n int) []projecttest.Fact {
	facts := make([]projecttest.Fact, n)
	for i := range facts {
		switch i % 5 {
		case 0, 1:
			facts[i] = thing(fmt.Sprint("t", i%7), added{By: i + 1})
		case 2:
			facts[i] = thing("all", spread{To: []string{"t1", "t3", fmt.Sprint("s", i%4)}, By: i})
		case 3:
			facts[i] = thing("t1", looked{})
		case 4:
			facts[i] = other(added{By: 1})
		}
	}
	return facts
}

func spec(newView func() project.View, b project.Bucket) project.ViewSpec {
	return project.ViewSpec{New: newView, Bucket: b}
}

// config is a configuration that does not wait long for anything.
func config(s es.Store, views ...project.ViewSpec) project.Config {
	return project.Config{
		Store: s, Registry: newRegistry(), Views: views, Orders: orders(),
		MarkInterval: 20 * time.Millisecond, CheckInterval: 20 * time.Millisecond,
		// Long after anything in a test was recorded, whatever the machine's clock says.
		Clock: func() time.Time { return projecttest.Recorded(1_000_000) },
	}
}

// running is a runner at work.
type running struct {
	*project.Runner
	t      testing.TB
	cancel context.CancelFunc
	ended  chan error
}

func start(t testing.TB, cfg project.Config) *running {
	t.Helper()
	r, err := project.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(bounded(t))
	run := &running{Runner: r, t: t, cancel: cancel, ended: make(chan error, 1)}
	go func() { run.ended <- r.Run(ctx) }()
	t.Cleanup(func() { run.stop() })
	return run
}

// stop ends the runner and gives what Run gave.
func (r *running) stop() error {
	r.cancel()
	err := <-r.ended
	r.ended <- err
	return err
}

func (r *running) wait(event uint64) map[string]project.Progress {
	r.t.Helper()
	p, err := r.Wait(bounded(r.t), event)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// until waits for a status of a view.
func (r *running) until(view string, good func(project.ViewStatus) bool) project.ViewStatus {
	r.t.Helper()
	ctx := bounded(r.t)
	for {
		for _, v := range r.Status(ctx).Views {
			switch {
			case v.View != view:
			case good(v):
				return v
			case ctx.Err() != nil:
				r.t.Fatalf("status of view %s stays %+v", view, v)
			}
		}
		breathe()
	}
}

// passes waits until all views have passed an event, whatever holds them up before.
func (r *running) passes(event uint64) {
	r.t.Helper()
	for _, v := range r.Status(bounded(r.t)).Views {
		r.until(v.View, func(v project.ViewStatus) bool { return v.Position.Event >= event })
	}
}

// stopped waits until a view has stopped.
func (r *running) stopped(view string) project.ViewStatus {
	r.t.Helper()
	return r.until(view, func(v project.ViewStatus) bool { return v.State == project.StateStopped })
}

// breathe lets others work between two looks.
func breathe() { <-time.After(time.Millisecond) }

func verify(t testing.TB, s es.Store, newView func() project.View, b project.Bucket) project.Report {
	t.Helper()
	report, err := project.Verify(bounded(t), project.Verification{
		Store: s, Registry: newRegistry(), Orders: orders(), Patience: 50 * time.Millisecond,
		NewViews: func() []project.View { return []project.View{newView()} },
		Bucket:   func(string) (project.Bucket, error) { return b, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// same fails when a bucket is not exactly a fresh fold of the store.
func same(t testing.TB, s es.Store, newView func() project.View, b project.Bucket) {
	t.Helper()
	if r := verify(t, s, newView, b); !r.OK() {
		t.Errorf("the bucket is not a fresh fold: %+v", r)
	}
}

func entries(t testing.TB, b project.Bucket) []project.Entry {
	t.Helper()
	var out []project.Entry
	for e, err := range b.All(bounded(t), 0) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

package run

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"catenary/chain"
	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/estest"
	"catenary/es/natsstore"
	"catenary/events"
	"catenary/internal/hammer"
	"catenary/internal/topology"
	"catenary/rollout"
	"catenary/rollout/plan"
)

// scene is a chain whose parts run in this process, with nodes of straw.
type scene struct {
	*testing.T
	bus    *estest.Bus
	conn   *nats.Conn
	client *commands.Client
	reader *chain.Reader
	said   *estest.Log
	stop   context.CancelFunc
	parts  sync.WaitGroup

	mu sync.Mutex
	// fares says how nodes fare with a version of a module; applied where it says nothing.
	fares map[string]string
	seen  map[string]int
}

var small = topology.Options{EventStoreBytes: 100 << 20, BucketBytes: 10 << 20}

// newScene starts a writer, a projector and the nodes.
func newScene(t *testing.T) *scene {
	bus := estest.Server(t, false)
	s := &scene{T: t, bus: bus, conn: bus.Connect(t), said: &estest.Log{}, fares: map[string]string{}, seen: map[string]int{}}
	s.client = commands.NewClient(dispatch.NewClient(s.conn)).Within(waitLimit)
	s.reader = insideReader(s.conn, time.Now)
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	t.Cleanup(func() {
		stop()
		s.parts.Wait()
	})
	s.part(ctx, "writer", func(ctx context.Context, nc *nats.Conn, log *slog.Logger, ready func()) error {
		return Writer(ctx, nc, WriterConfig{Streams: small, Logger: log, Ready: ready})
	})
	s.part(ctx, "projector", func(ctx context.Context, nc *nats.Conn, log *slog.Logger, ready func()) error {
		return Projector(ctx, nc, ProjectorConfig{Streams: small, Logger: log, Ready: ready})
	})
	s.part(ctx, "nodes", func(ctx context.Context, nc *nats.Conn, _ *slog.Logger, ready func()) error {
		store, err := natsstore.Open(ctx, nc, natsstore.Config{})
		if err != nil {
			return err
		}
		defer store.Close()
		pipeline, err := dispatch.NewPipeline(nc, 0)
		if err != nil {
			return err
		}
		ready()
		err = hammer.Nodes{Follow: store.Follow, Registry: events.Registry(), Sender: hammer.OverBus{Post: pipeline.Post, NewID: newID}, Outcome: s.outcome}.Run(ctx)
		_ = pipeline.Close() // the test is over
		if ctx.Err() != nil {
			return nil
		}
		return err
	})
	return s
}

// part runs a part until the context ends, and waits until it is ready.
func (s *scene) part(ctx context.Context, name string, run func(context.Context, *nats.Conn, *slog.Logger, func()) error) {
	s.Helper()
	nc := s.bus.Connect(s.T)
	log := slog.New(slog.NewTextHandler(s.said, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ready := make(chan struct{})
	ended := make(chan error, 1)
	s.parts.Go(func() {
		err := run(ctx, nc, log, sync.OnceFunc(func() { close(ready) }))
		if err != nil && ctx.Err() == nil {
			s.Errorf("%s: %v", name, err)
		}
		ended <- err
	})
	select {
	case <-ready:
	case err := <-ended:
		s.Fatalf("%s has ended: %v\n%s", name, err, s.said)
	case <-time.After(waitLimit):
		s.Fatalf("%s is not ready:\n%s", name, s.said)
	}
}

// engine starts an engine; the context ends it.
func (s *scene) engine(ctx context.Context, c EngineConfig) {
	s.Helper()
	s.part(ctx, "engine", func(ctx context.Context, nc *nats.Conn, log *slog.Logger, ready func()) error {
		c.Logger, c.Ready = log, ready
		return Engine(ctx, nc, c)
	})
}

func (s *scene) outcome(t events.Told, ended bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[t.Node+" "+t.Module+" "+t.Rollout]++
	if how, ok := s.fares[t.Reference.String()]; ok {
		return how
	}
	if ended {
		return commands.OutcomeRemoved
	}
	return commands.OutcomeApplied
}

func (s *scene) do(payloads ...es.Payload) uint64 {
	s.Helper()
	var last uint64
	for _, p := range payloads {
		a, err := s.client.Send(s.Context(), p, dispatch.Options{})
		if err != nil || a.Status != es.StatusAccepted {
			s.Fatalf("%s %s: %+v, %v", p.Ref(), p.Verb(), a, err)
		}
		last = a.Sequence
	}
	return last
}

// fleet makes modules known with versions 1 and 2, and nodes that run version 1 of them.
func (s *scene) fleet(nodes int, modules ...string) []string {
	s.Helper()
	var names []string
	for i := range nodes {
		n := fmt.Sprintf("n%d", i+1)
		names = append(names, n)
		s.do(commands.RegisterNode{Node: n, ManagedBy: events.ManagedByAgent})
	}
	for _, m := range modules {
		s.do(commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: m, Repository: "git/" + m}})
		for _, v := range []string{"1", "2"} {
			s.do(commands.RecordPublication{Reference: version(m, v).Reference, Module: m})
		}
		for _, n := range names {
			s.do(commands.Assign{Node: n, Module: m, Reference: version(m, "1").Reference})
		}
	}
	return names
}

func version(module, v string) *events.Version {
	return &events.Version{Reference: events.Reference{Package: &events.Package{Name: module, Version: v}}}
}

// rollout plans and starts one that brings a module to version 2.
func (s *scene) rollout(id, module, strategy string, nodes ...string) {
	s.Helper()
	parsed, err := events.ParseStrategy([]byte(strategy))
	if err != nil {
		s.Fatal(err)
	}
	var steps []events.PlannedStep
	for i, n := range nodes {
		tier := parsed.Tiers[min(i, len(parsed.Tiers)-1)].Name
		steps = append(steps, events.PlannedStep{Tier: tier, StepName: events.StepName{Node: n, Module: module}, Before: version(module, "1"), After: version(module, "2")})
	}
	list, err := hammer.Planned(id, events.Raw(strategy), steps...)
	if err != nil {
		s.Fatal(err)
	}
	s.do(append(list, commands.StartRollout{ID: id})...)
}

// until polls rollouts until one is so.
func (s *scene) until(what string, so func(chain.Rollout) bool) chain.Rollout {
	s.Helper()
	tick, limit := time.NewTicker(10*time.Millisecond), time.After(waitLimit)
	defer tick.Stop()
	for {
		page, err := chain.List(s.Context(), s.reader, chain.Rollouts, chain.Query{All: true})
		if err != nil {
			s.Fatal(err)
		}
		for _, e := range page.Entries {
			if so(e.Value) {
				return e.Value
			}
		}
		select {
		case <-tick.C:
		case <-limit:
			s.Fatalf("%s: never seen among %+v\n%s", what, page.Entries, s.said)
		}
	}
}

func state(id, want string) func(chain.Rollout) bool {
	return func(r chain.Rollout) bool { return r.ID == id && r.State == want }
}

// TestEngineWalks lets a rollout finish, and one that fails go back by itself: as a rollout of its own, which says why, with what failed vetoed.
func TestEngineWalks(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	nodes := s.fleet(5, "web", "db")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.engine(ctx, EngineConfig{TTL: 2 * time.Second})
	s.rollout("good", "web", `{"tiers":[{"name":"canary"},{"name":"rest","concurrency":2}]}`, nodes...)
	s.until("the good one finishes", state("good", chain.RolloutFinished))

	s.mu.Lock()
	s.fares["db@2"] = commands.OutcomeApplyFailed
	s.mu.Unlock()
	s.rollout("bad", "db", `{"rollback":"automatic","tiers":[{"name":"canary"},{"name":"rest"}]}`, nodes...)
	s.until("the bad one fails", state("bad", chain.RolloutFailed))
	back := s.until("it goes back", func(r chain.Rollout) bool { return r.Reverts == "bad" && r.State == chain.RolloutFinished })
	if back.Changed != 1 || back.Reason == "" {
		t.Errorf("the way back is %+v", back)
	}
	s.until("the bad one says so", func(r chain.Rollout) bool { return r.ID == "bad" && r.RevertedBy == back.ID })
	veto, err := chain.Get(t.Context(), s.reader, chain.Publications, "db", "2")
	if err != nil || veto.Value.Vetoed == nil {
		t.Errorf("what failed is %+v, %v", veto.Value, err)
	}
	stands, err := chain.Get(t.Context(), s.reader, chain.Assignments, "n1", "db")
	if err != nil || stands.Value.Package.Version != "1" || stands.Value.Rollout != back.ID {
		t.Errorf("n1 was told %+v, %v", stands.Value, err)
	}
	// The engine that walks says why things wait; a question without a rollout is explained.
	for question, want := range map[string]string{`{"rollout":"good"}`: `"walked":false`, `{"rollouts":["good","bad"]}`: `{"rollout":"bad","walked":false}`, `{}`: "names no rollout", `[`: "unexpected end"} {
		m, err := s.conn.RequestWithContext(t.Context(), topology.QuerySubject(rollout.QuestionBlocked), []byte(question))
		if err != nil || !strings.Contains(string(m.Data), want) {
			t.Errorf("asked %s it answers %+v, %v; want %s", question, m, err, want)
		}
	}
}

// shows waits until the chain shows an event.
func (s *scene) shows(sequence uint64) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), waitLimit)
	defer cancel()
	if err := s.reader.WaitFor(ctx, sequence); err != nil {
		s.Fatal(err)
	}
}

func (s *scene) told(node, module string) string {
	s.Helper()
	a, err := chain.Get(s.Context(), s.reader, chain.Assignments, node, module)
	if err != nil || a.Value.Package == nil {
		s.Fatalf("%s of %s is %+v, %v", module, node, a.Value, err)
	}
	return a.Value.Package.Version
}

// strategy declares a strategy.
func (s *scene) strategy(name, text string) {
	s.Helper()
	parsed, err := events.ParseStrategy([]byte(text))
	if err != nil {
		s.Fatal(err)
	}
	raw, _, err := parsed.Canonical()
	if err != nil {
		s.Fatal(err)
	}
	s.do(commands.DeclareStrategy{Name: name, Strategy: raw})
}

// TestTracks lets tracks plan by themselves: what is published goes out at once; what fails goes back, and stays away until it is released
// (case E19); merges go together once they are built, and are released when they have arrived.
func TestTracks(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	nodes := s.fleet(3, "web", "api")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.strategy("careful", `{"rollback":"automatic","tiers":[{"name":"all"}]}`)
	s.mu.Lock()
	s.fares["web@4"] = commands.OutcomeApplyFailed
	s.mu.Unlock()
	// What is published already is the newest: it goes out when the track is there.
	s.do(commands.DeclareTrack{TrackSpec: events.TrackSpec{Track: "webs", Modules: []string{"web"}, Strategy: "careful", On: events.OnPublication}})
	s.engine(ctx, EngineConfig{TTL: 2 * time.Second})
	s.until("version 2 goes out", carries("web@2", chain.RolloutFinished))
	s.do(commands.RecordPublication{Reference: version("web", "4").Reference, Module: "web"})
	bad := s.until("version 4 fails", carries("web@4", chain.RolloutFailed))
	s.until("it goes back", func(r chain.Rollout) bool { return r.Reverts == bad.ID && r.State == chain.RolloutFinished })
	for _, n := range nodes {
		if v := s.told(n, "web"); v != "2" {
			t.Errorf("%s is told version %s", n, v)
		}
	}
	// Other things happen that tracks look at: version 4 stays away.
	s.do(commands.HoldMerge{Repository: "git/api", Branch: "main", Commit: "c1", Waiting: "not planned"})
	s.do(commands.DeclareTrack{TrackSpec: events.TrackSpec{Track: "apis", Modules: []string{"api"}, Strategy: "careful", On: events.OnMerge}})
	s.do(commands.HoldMerge{Repository: "git/api", Branch: "main", Commit: "c2", Waiting: "not planned"})
	s.do(
		commands.SucceedBuild{ID: "b2", Request: &commands.RecordedBuild{Module: "api", Repository: "git/api", Commit: "c2", For: events.ForMerge}},
		commands.PublishBuild{ID: "b2", Reference: version("api", "7").Reference},
	)
	s.until("both merges go out together", carries("api@7", chain.RolloutFinished))
	s.until("nothing carries version 4 again", func(r chain.Rollout) bool { return r.ID == bad.ID && r.RevertedBy != "" })
	s.arrived("c1", "c2")
	page, err := chain.List(t.Context(), s.reader, chain.Rollouts, chain.Query{All: true})
	if err != nil || len(page.Entries) != 4 {
		t.Errorf("there are %d rollouts, want 4: %+v, %v", len(page.Entries), page.Entries, err)
	}
}

func carries(reference, want string) func(chain.Rollout) bool {
	return func(r chain.Rollout) bool {
		return r.State == want && len(r.Builds) == 1 && r.Builds[0].Version.String() == reference
	}
}

// arrived polls until merges wait no more, and demands that their rollout has placed them.
func (s *scene) arrived(commits ...string) {
	s.Helper()
	tick, limit := time.NewTicker(10*time.Millisecond), time.After(waitLimit)
	defer tick.Stop()
	for _, c := range commits {
		for {
			m, err := chain.Get(s.Context(), s.reader, chain.Merges, "git/api", "main", c)
			if err != nil {
				s.Fatal(err)
			}
			if !m.Value.Stands() && !m.Value.Placed.IsZero() {
				break
			}
			select {
			case <-tick.C:
			case <-limit:
				s.Fatalf("merge %s is %+v\n%s", c, m.Value, s.said)
			}
		}
	}
}

// TestBackPastAnAbort is case E07: r2 is fine, r3 was aborted before it changed anything, r4 is taken back: that leads to r2.
func TestBackPastAnAbort(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	nodes := s.fleet(2, "web")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.engine(ctx, EngineConfig{TTL: 2 * time.Second})
	one := `{"tiers":[{"name":"all"}]}`
	s.rollout("r2", "web", one, nodes...)
	s.until("r2", state("r2", chain.RolloutFinished))
	s.do(commands.RecordPublication{Reference: version("web", "3").Reference, Module: "web"}, commands.RecordPublication{Reference: version("web", "4").Reference, Module: "web"})
	s.carry("r3", "2", "3", nodes...)
	s.do(commands.AbortRollout{ID: "r3"})
	s.carry("r4", "2", "4", nodes...)
	s.do(commands.StartRollout{ID: "r4"})
	s.shows(s.do(commands.RegisterNode{Node: "last", ManagedBy: events.ManagedByAgent}))
	s.until("r4", state("r4", chain.RolloutFinished))
	back, err := plan.Back(t.Context(), s.reader, "r4", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	parts, err := back.Commands(&back.Ends)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		s.do(p)
	}
	s.do(commands.StartRollout{ID: back.ID})
	s.until("the way back", state(back.ID, chain.RolloutFinished))
	for _, n := range nodes {
		if v := s.told(n, "web"); v != "2" {
			t.Errorf("%s is told version %s, want 2", n, v)
		}
	}
}

// carry plans a rollout of web from one version to another.
func (s *scene) carry(id, from, to string, nodes ...string) {
	s.Helper()
	var steps []events.PlannedStep
	for _, n := range nodes {
		steps = append(steps, events.PlannedStep{Tier: "all", StepName: events.StepName{Node: n, Module: "web"}, Before: version("web", from), After: version("web", to)})
	}
	list, err := hammer.Planned(id, events.Raw(`{"tiers":[{"name":"all"}]}`), steps...)
	if err != nil {
		s.Fatal(err)
	}
	s.do(list...)
}

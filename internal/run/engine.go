package run

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"catenary/audit"
	"catenary/chain"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/natskv"
	"catenary/es/natsstore"
	"catenary/events"
	"catenary/internal/failpoint"
	"catenary/internal/topology"
	"catenary/rollout"
)

// engineName is who acts where the engine does.
const engineName = "catenary-engine"

// EngineConfig is what an engine's process is told.
type EngineConfig struct {
	// Holder names the engine among all. Default: this process's name, with a part by chance.
	Holder string
	// TTL is how long its lease holds without renewal. Default: rollout.DefaultTTL.
	TTL time.Duration
	// Drain, once closed, lets no step begin any more, and ends the engine when what runs has come to its end. It may be nil.
	Drain <-chan struct{}
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Logger is the process's log. Default: slog.Default().
	Logger *slog.Logger
	// Ready is called when the engine has read what was there. It may be nil.
	Ready func()
	// Monitor is told how the engine is.
	Monitor Monitor
}

// Engine runs a rollout engine over a connection in the ledger's account until the context ends, or until it has drained. Of several engines one
// walks; the others follow the stream and one of them takes over when the first is gone. The event stream MUST be there. It gives
// [ErrConnectionClosed], and why the engine can't go on.
func Engine(ctx context.Context, nc *nats.Conn, c EngineConfig) error {
	if c.Now == nil {
		c.Now = failpoint.Clock(time.Now)
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Holder == "" {
		// A name that comes again, as that of a process in a container, must not pass for one that still holds the lease.
		c.Holder = processName() + ", " + uuid.NewString()[:8]
	}
	log := c.Logger.With("component", "engine")
	watch := newEngineWatch(c.Monitor)
	defer watch.end()
	store, err := natsstore.Open(ctx, nc, natsstore.Config{})
	if err != nil {
		return stoppedBy(ctx, err)
	}
	defer store.Close()
	var engine *rollout.Engine
	engine, err = rollout.New(rollout.Config{
		Stream: store, Registry: events.Registry(), Bus: asActor(nc, engineName), Reader: insideReader(nc, c.Now), Holder: c.Holder, TTL: c.TTL,
		Presence: func(ctx context.Context, tell func(rollout.Presence)) error {
			return watchPresence(ctx, nc, c.Now, tell)
		},
		Others: func(ctx context.Context) bool { return engineSeen(ctx, nc) },
		Leads:  func(ctx context.Context) { serveEngine(ctx, nc, engine, log) },
		Now:    c.Now, Logger: log, Trace: c.Monitor.traceSteps(),
		Ready: func() {
			watch.looks(engine)
			if c.Ready != nil {
				c.Ready()
			}
		},
	})
	if err != nil {
		return err
	}
	err = Together(ctx, map[string]func(context.Context) error{
		"":           engine.Run,
		"connection": func(ctx context.Context) error { return c.Monitor.awaitClosed(ctx, "engine bus", nc) },
		"drain": func(ctx context.Context) error {
			select {
			case <-c.Drain:
				engine.Drain()
			case <-ctx.Done():
			}
			<-ctx.Done()
			return nil
		},
	})
	if errors.Is(err, rollout.ErrDrained) {
		return nil
	}
	return err
}

// asActor sends commands from inside the ledger's account under a name.
func asActor(nc *nats.Conn, name string) dispatch.Bus {
	return dispatch.NewClientFunc(func(ctx context.Context, m *nats.Msg) (*nats.Msg, error) {
		m.Header[dispatch.HeaderActor] = []string{es.EncodeHeaderValue(name)}
		return nc.RequestMsgWithContext(ctx, m)
	})
}

// insideReader reads the chain from the buckets themselves.
func insideReader(nc *nats.Conn, now func() time.Time) *chain.Reader {
	queries := audit.NewClient(nc, nil)
	return chain.NewReader(chain.Config{
		Open: func(ctx context.Context, bucket string) (chain.Bucket, error) { return natskv.Open(ctx, nc, bucket) },
		Positions: func(ctx context.Context, event uint64) ([]chain.Position, error) {
			p, err := queries.Position(ctx, audit.PositionQuestion{Sequence: event, Wait: audit.Duration(audit.MaxWait)})
			found := make([]chain.Position, len(p.Views))
			for i, v := range p.Views {
				found[i] = chain.Position{View: v.View, Bucket: v.Bucket, Event: v.Event, Revision: v.Revision, Stopped: v.Stopped}
			}
			return found, err
		},
		Clock: now,
	})
}

// enginePatience bounds an answer to a question.
const enginePatience = 2 * time.Second

// engineSeen says whether an engine that walks answers within the context.
func engineSeen(ctx context.Context, nc *nats.Conn) bool {
	// Whichever rollout is asked about, its loop has to answer.
	_, err := nc.RequestWithContext(ctx, topology.QuerySubject(rollout.QuestionBlocked), []byte(`{"rollout":"any"}`))
	return err == nil
}

// serveEngine answers why rollouts do not move, while the engine walks.
func serveEngine(ctx context.Context, nc *nats.Conn, engine *rollout.Engine, log *slog.Logger) {
	service, err := micro.AddService(nc, micro.Config{Name: topology.EngineService, Version: Version(), Description: "Says why rollouts do not move."})
	if err == nil {
		err = service.AddEndpoint(rollout.QuestionBlocked, micro.HandlerFunc(func(r micro.Request) { answerBlocked(ctx, engine, r, log) }),
			micro.WithEndpointSubject(topology.QuerySubject(rollout.QuestionBlocked)))
	}
	if err != nil {
		log.Warn("nobody can ask why rollouts do not move", "error", err)
	}
	<-ctx.Done()
	if service == nil {
		return
	}
	if err := service.Stop(); err != nil && !nc.IsClosed() {
		log.Warn("the service could not be stopped", "error", err)
	}
}

func answerBlocked(ctx context.Context, engine *rollout.Engine, r micro.Request, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, enginePatience)
	defer cancel()
	var q rollout.BlockedQuestion
	var a rollout.BlockedAnswer
	err := json.Unmarshal(r.Data(), &q)
	if err == nil {
		a, err = engine.Blocked(ctx, q)
	}
	if err != nil {
		a = rollout.BlockedAnswer{Error: err.Error()}
	}
	if err := r.RespondJSON(a); err != nil && ctx.Err() == nil {
		log.Warn("an answer could not be sent", "error", err)
	}
}

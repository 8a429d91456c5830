package room

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/internal/topology"
)

const (
	// DefaultEvery is how often all places are looked at: some 25 streams, a millisecond or two of the server.
	DefaultEvery = 10 * time.Second
	// diskEvery is how often the disk alone is: one system call. A disk of usual speed takes half a second for the reserve.
	diskEvery = 250 * time.Millisecond
	// lookTimeout bounds one look.
	lookTimeout = 5 * time.Second
)

// Config says what is watched.
type Config struct {
	// Conn is a connection in the ledger's account.
	Conn *nats.Conn
	// Dir is the server's store directory. Empty means that it is on another machine, or not known: then the disk is not watched.
	Dir string
	// Free measures the disk. Default: [FreeBytes].
	Free func(dir string) (int64, error)
	// Every is how often it is looked. Default: [DefaultEvery].
	Every time.Duration
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Logger hears of each change of a level once. Default: slog.Default().
	Logger *slog.Logger
}

// Watch knows how full the places are. It may be used by many goroutines.
type Watch struct {
	cfg Config
	js  jetstream.JetStream

	mu     sync.Mutex
	state  State
	stored int64 // what the streams held when they were last looked at
}

// New returns a watch that has not looked yet.
func New(c Config) (*Watch, error) {
	js, err := jetstream.New(c.Conn)
	if err != nil {
		return nil, errors.Wrap(err, "watch the room")
	}
	if c.Every <= 0 {
		c.Every = DefaultEvery
	}
	if c.Free == nil {
		c.Free = FreeBytes
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return &Watch{cfg: c, js: js, state: State{Level: Ample, Places: []Place{}}}, nil
}

// State gives what was seen last.
func (w *Watch) State() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.state
	s.Places = slices.Clone(s.Places)
	return s
}

// Run looks now and then until the context ends, which is its only end.
func (w *Watch) Run(ctx context.Context) error {
	all, disk := time.NewTicker(w.cfg.Every), time.NewTicker(diskEvery)
	defer all.Stop()
	defer disk.Stop()
	w.Look(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-all.C:
			w.Look(ctx)
		case <-disk.C:
			w.lookAtDisk()
		}
	}
}

// Look looks at all places now, and gives what it saw.
func (w *Watch) Look(ctx context.Context) State {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	places, stored, err := w.places(ctx)
	if errors.Is(ctx.Err(), context.Canceled) {
		return w.State() // told to stop
	}
	w.mu.Lock()
	if err == nil {
		w.stored = stored
	}
	w.mu.Unlock()
	w.take(places, err)
	return w.State()
}

// places gives all places but the disk, and what the streams hold together.
func (w *Watch) places(ctx context.Context) (places []Place, stored int64, err error) {
	list := w.js.ListStreams(ctx)
	for info := range list.Info() {
		stored += int64(min(info.State.Bytes, 1<<62))
		if p, ok := ofStream(info); ok {
			places = append(places, p)
		}
	}
	if err := list.Err(); err != nil {
		return nil, 0, errors.Wrap(err, "look at the streams")
	}
	account, err := w.js.AccountInfo(ctx)
	if err != nil {
		return nil, 0, errors.Wrap(err, "look at the account")
	}
	if p, ok := ofAccount(topology.AccountLedger, account); ok {
		places = append(places, p)
	}
	return places, stored, nil
}

// lookAtDisk looks at the disk alone.
func (w *Watch) lookAtDisk() {
	if w.cfg.Dir == "" {
		return
	}
	s := w.State()
	var problem error
	if s.Problem != "" {
		problem = errors.New(s.Problem)
	}
	w.take(slices.DeleteFunc(s.Places, func(p Place) bool { return p.Kind == Disk }), problem)
}

// take adds the disk to the other places, judges all, and says what has changed. With a problem the other places stay as they were.
func (w *Watch) take(places []Place, problem error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.state
	if problem != nil {
		places = slices.DeleteFunc(slices.Clone(before.Places), func(p Place) bool { return p.Kind == Disk })
	}
	if w.cfg.Dir != "" {
		free, err := w.cfg.Free(w.cfg.Dir)
		if err == nil {
			places = append(places, ofDisk(w.cfg.Dir, w.stored, free))
		}
		problem = errors.CombineErrors(problem, err)
	}
	now := State{At: before.At, Level: Ample, Places: sorted(places)}
	if problem != nil {
		now.Problem = problem.Error()
	} else {
		now.At = w.cfg.Now().UTC()
	}
	for i := range now.Places {
		p := &now.Places[i]
		was := Ample
		if j := slices.IndexFunc(before.Places, func(b Place) bool { return b.Kind == p.Kind && b.Name == p.Name }); j >= 0 {
			was = before.Places[j].Level
		}
		p.Level = p.level(was)
		if p.Level != was {
			w.say(*p)
		}
		if p.Level == Full || p.Level == Scarce && now.Level == Ample {
			now.Level = p.Level
		}
	}
	w.state = now
}

func (w *Watch) say(p Place) {
	attrs := []any{"place", string(p.Kind) + " " + p.Name, "used", p.Used, "limit", p.Limit}
	switch p.Level {
	case Ample:
		w.cfg.Logger.Info("there is room again", attrs...)
	case Scarce:
		w.cfg.Logger.Warn("room is scarce", append(attrs, "advice", p.Advice())...)
	case Full:
		w.cfg.Logger.Error("there is no room left", append(attrs, "advice", p.Advice())...)
	}
}

// Refusal says why nothing may be appended: an error marked [es.ErrFull] while the disk is full, and nil otherwise. Of its own limits the
// server tells itself.
func (w *Watch) Refusal() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.state.Places {
		if p.Kind == Disk && p.Level == Full {
			return errors.Mark(errors.WithHint(errors.Newf("the disk of %s has less than %d bytes left beside what the server needs itself", p.Name, int64(ReserveBytes)), p.Advice()), es.ErrFull)
		}
	}
	return nil
}

// Gate is a store into which nothing is appended while the disk is full.
type Gate struct {
	es.Store
	Watch *Watch
}

// Append implements [es.Store]. What is refused here was not sent.
func (g Gate) Append(ctx context.Context, after es.Head, batch []es.Message) es.Pending {
	if err := g.Watch.Refusal(); err != nil {
		p := es.NewPromise()
		p.Resolve(err)
		return p
	}
	return g.Store.Append(ctx, after, batch)
}

package dispatch

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// Config is what a writer needs.
type Config struct {
	Store    es.Store
	Registry *es.Registry
	// NewModel gives an empty model of the world.
	NewModel func() es.Decider
	// Start is the command whose events mark the beginning of a writer's work.
	Start es.Payload
	// Now is the writer's clock.
	Now func() time.Time
	// NewID gives ids for events and for the writer's own commands (UUIDv7).
	NewID func() string
	// Snapshots keeps what the fold of the stream gave, so that a start need not read all of it. Nil means that every start
	// does. With it, the models of NewModel MUST be [Restorable], and NewModel may be called from any goroutine.
	Snapshots Snapshots
	// SnapshotEvery is how many events may come after a base before the next is made. Zero means DefaultSnapshotEvery.
	SnapshotEvery int
	// Actor is the opaque id the writer's own events carry.
	Actor string
	// Durability is that of the store.
	Durability Durability
	// QueueLimit is how many commands may wait to be decided before senders are told busy, and how many of those that led
	// to no events may wait for their answer before no more are decided. Zero means 8,192: about a second's work.
	QueueLimit int
	// QueueBytes bounds what waits in bytes. Zero means 64 MiB: the usual commands reach the number first, the largest ones this.
	QueueBytes int
	// Patience is how long a sender is kept waiting for an append that is not settled before it is told unknown. Zero means
	// 5 s.
	Patience time.Duration
	// Watch is told what the writer does.
	Watch  Watch
	Logger *slog.Logger
}

// DefaultSnapshotEvery takes a start one or two seconds to read.
const DefaultSnapshotEvery = 100_000

func (c Config) validate() (Config, error) {
	switch {
	case c.Store == nil, c.Registry == nil, c.NewModel == nil, c.Start == nil, c.Now == nil, c.NewID == nil:
		return c, errors.New("writer: Store, Registry, NewModel, Start, Now and NewID must be set")
	case c.QueueLimit < 0, c.QueueBytes < 0, c.Patience < 0, c.SnapshotEvery < 0:
		return c, errors.New("writer: QueueLimit, QueueBytes, Patience and SnapshotEvery can't be negative")
	case c.Snapshots != nil && c.form() == "":
		return c, errors.Newf("writer: a %T can't be restored from Snapshots", c.NewModel())
	}
	if c.SnapshotEvery == 0 {
		c.SnapshotEvery = DefaultSnapshotEvery
	}
	if c.QueueLimit == 0 {
		c.QueueLimit = 8192
	}
	if c.QueueBytes == 0 {
		c.QueueBytes = 64 << 20
	}
	if c.Patience == 0 {
		c.Patience = 5 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// Writer decides commands one after another on one world and appends their events.
//
// All state belongs to the goroutine that runs [Writer.Run]. It has two layers: what is confirmed, and what was decided on
// top of it and is not acknowledged yet. When an append fails, the upper layer is undone and its commands are decided
// again on what really stands.
type Writer struct {
	cfg         Config
	waitingRoom *queue    // what the writer has not taken in yet
	queue       chan *job // hands it over, one at a time
	ready       chan struct{}

	// readers are the goroutines that read the store for the writer. They end with its context.
	readers sync.WaitGroup

	model  es.Decider
	memory *memory
	// confirmed is the head of what is known to stand, head that of what is decided on top of it.
	confirmed, head es.Head
	// base is the event of the newest base known, zero when there is none; loaded says that it was looked for.
	base   uint64
	loaded bool
	// owed is why the store, which is full, could not take the record of this writer's start. Nothing may stand before it.
	owed error
	// troubled says that the store took no append when it was last tried.
	troubled bool
	// atRest says that the writer has stopped, and that its world is what is confirmed.
	atRest bool

	open    open   // decided, with events, not handed to the store yet
	air     air    // handed to the store, not answered yet
	waiting []*job // decided without events, or repeats: they wait for what they rest on
	again   []*job // to be decided before anything new, in order
	ordinal uint64 // of the last job taken in
	waits   uint64 // of the last job that began to wait
	reading bool   // a read of the stream's tail is under way
	tails   chan tailRead

	doubts    chan struct{} // has a token when what is confirmed is to be compared with the stream
	compared  chan error    // what came of it
	comparing bool

	repeating int           // first answers that are being read for repeats
	repeated  chan struct{} // has a token for each that is over
}

// maxRepeating bounds the reads of first answers under way.
const maxRepeating = 64

type tailRead struct {
	covers uint64 // the newest wait that began before the read
	tail   uint64
	err    error
}

// NewWriter returns a writer that has not started. It gives an error for a configuration that is not complete.
func NewWriter(cfg Config) (*Writer, error) {
	cfg, err := cfg.validate()
	if err != nil {
		return nil, err
	}
	return &Writer{
		cfg: cfg, waitingRoom: newQueue(cfg.QueueLimit, cfg.QueueBytes), queue: make(chan *job), ready: make(chan struct{}),
		model: cfg.NewModel(), memory: newMemory(), air: air{costs: priorCosts(cfg.Durability)},
		tails: make(chan tailRead, 1), doubts: make(chan struct{}, 1), compared: make(chan error, 1), repeated: make(chan struct{}, maxRepeating),
	}, nil
}

// Ready is closed when the writer has read the stream, recorded its start and takes commands. When the store is full, its start is
// recorded as soon as there is room, and before any other event.
func (w *Writer) Ready() <-chan struct{} { return w.ready }

// Run reads the stream, records the writer's start and decides commands until the context ends, when it waits for the
// append in flight and returns nil. While the store can't be reached it tries again. Any error means that the writer can't
// go on: the chain is broken, or an event of a newer program stands in the stream. A writer runs once; when Run returns,
// everybody has an answer and no goroutine is left.
func (w *Writer) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer w.readers.Wait()
	defer w.abandon()
	var feeders sync.WaitGroup
	feeders.Go(func() { w.feed(ctx) })
	feeders.Go(func() { w.sweep(ctx) })
	defer feeders.Wait()
	defer cancel()
	err := w.start(ctx)
	if err == nil {
		close(w.ready)
		w.cfg.Logger.Info("writer ready", "sequence", w.confirmed.Sequence)
		stopCompacting := w.compactBeside(ctx)
		err = w.serve(ctx)
		w.abandon() // nobody has to wait for the compaction to stop
		stopCompacting()
		if err == nil {
			w.undo()
			w.atRest = true
		}
	}
	if errors.Is(err, ErrEventsLost) && w.confirmed.Sequence > w.base {
		// What this writer has seen would be forgotten with it: the base tells the next start.
		w.undo()
		keeping, enough := context.WithTimeout(ctx, stopPatience)
		defer enough()
		w.keep(keeping)
	}
	if ctx.Err() != nil && errors.IsAny(err, es.ErrUnclear, es.ErrUnavailable) {
		return nil
	}
	return err
}

func (w *Writer) serve(ctx context.Context) error {
	patience := time.NewTicker(w.cfg.Patience / 4)
	defer patience.Stop()
	for {
		w.decideAgain(ctx)
		w.flush(ctx)
		w.readTail(ctx)
		w.answerWaiting(ctx)
		in := w.queue
		if w.full() {
			in = nil
		}
		select {
		case <-ctx.Done():
			return w.drain(ctx)
		case j := <-in:
			w.take(ctx, j)
			w.takeWaiting(ctx)
		case <-w.air.landed():
			if err := w.land(ctx); err != nil {
				return err
			}
		case <-w.air.lingered():
			w.air.look(w.open.messages)
		case r := <-w.tails:
			if err := w.tailRead(ctx, r); err != nil {
				return err
			}
		case <-w.doubts:
			w.compare(ctx)
		case err := <-w.compared:
			w.comparing = false
			if err != nil {
				return err
			}
		case <-w.repeated:
			w.repeating--
		case <-patience.C:
			w.answerImpatient()
			w.memory.forget(w.cfg.Now())
			if w.owed != nil {
				if err := w.giveWay(ctx); err != nil {
					return err
				}
			}
		}
	}
}

// takeAtOnce is how many commands are taken in before the writer looks again at what has landed.
const takeAtOnce = 64

// takeWaiting takes what else waits in the queue, so that it shares the next append.
func (w *Writer) takeWaiting(ctx context.Context) {
	for range takeAtOnce {
		if w.full() {
			return
		}
		select {
		case j := <-w.queue:
			w.take(ctx, j)
		default:
			return
		}
	}
}

// full says whether no more can be decided before something was stored or answered: what waits here is bounded too.
func (w *Writer) full() bool { return w.open.full() || len(w.waiting) >= w.cfg.QueueLimit }

// drain waits for the appends in flight when the writer stops. What was not handed to the store is answered busy: it was
// not done.
func (w *Writer) drain(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.cfg.Patience/10)
	defer cancel()
	for f := w.air.oldest(); f != nil; f = w.air.oldest() {
		if err := es.Wait(bounded, f.pending); err != nil {
			return nil // abandon answers unknown
		}
		w.confirm(1)
	}
	return nil
}

// abandon answers all who still wait when the writer ends, and refuses who comes after.
func (w *Writer) abandon() {
	for _, j := range w.air.jobs() {
		j.reply(unknown(j.command))
	}
	for _, jobs := range [][]*job{w.open.jobs, w.waiting, w.again} {
		for _, j := range jobs {
			if j.repeat != 0 {
				j.reply(w.unsettled(j))
			} else {
				j.reply(refusal(j.command, stopping()))
			}
		}
	}
	for _, item := range w.waitingRoom.close(stopping()) {
		item.Answer(refusal(item.Command, stopping()))
	}
}

// answerImpatient tells unknown to senders whose command is not settled for too long, and busy to those of repeats whose first answer
// stands but is not read. The commands themselves go on. It is called a few times in each patience.
func (w *Writer) answerImpatient() {
	w.beat()
	limit := w.cfg.Now().Add(-w.cfg.Patience)
	tell := func(jobs []*job) {
		for _, j := range jobs {
			if j.received.Before(limit) {
				j.reply(w.unsettled(j))
			}
		}
	}
	tell(w.air.jobs())
	tell(w.open.jobs)
	tell(w.waiting)
	tell(w.again)
}

func unknown(c es.Command) es.Answer {
	return refusal(c, &es.Refusal{Status: es.StatusUnknown, Code: "not-settled", Message: "the store has not answered: the command may or may not be done",
		Hint: "send it again with the same id: it is done once at most"})
}

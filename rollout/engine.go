package rollout

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/uuid"

	"catenary/chain"
	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/rollout/walk"
)

const (
	// DefaultTTL is how long the lease holds without renewal: another engine takes over within twice of that.
	DefaultTTL = 10 * time.Second
	// MinTTL bounds it: a lease is renewed three times before it runs out, and a busy machine must get to that.
	MinTTL = 300 * time.Millisecond
	// batchSpan is how long inputs are gathered after the first of them.
	batchSpan = time.Millisecond
	// maxBatch bounds the inputs of one batch, so that what is due does not wait for a long backlog.
	maxBatch = 4096
	// followPause is how long the stream is left alone when it could not be followed.
	followPause = time.Second
	// commandPatience is how long a command is sent again while the writer gives no answer.
	commandPatience = 30 * time.Second
	// commandTerm is how long after it was asked a command may be done. It MUST be over before the engine asks again under another id: two
	// begins that are both done would pass a semaphore. What is left is for clocks that differ.
	commandTerm = 20 * time.Second
	// leavePatience bounds giving the lease back.
	leavePatience = 500 * time.Millisecond
	// longAgain bounds the time between two looks of a loop to which nothing happens.
	longAgain = time.Minute
)

// ErrDrained is what [Engine.Run] gives when it was told to drain and all that ran has come to its end.
var ErrDrained = errors.New("drained")

// Stream is what the engine reads.
type Stream interface {
	// Tail and Follow are those of [es.Store].
	Tail(ctx context.Context) (uint64, error)
	Follow(ctx context.Context, after uint64) iter.Seq2[es.Message, error]
	// ReadKinds gives the messages of some kinds of aggregates after a sequence, up to a last one that is known to be there.
	ReadKinds(ctx context.Context, after, last uint64, kinds ...string) iter.Seq2[es.Message, error]
}

// Config is what an engine is told.
type Config struct {
	Stream   Stream
	Registry *es.Registry
	// Bus carries its commands. All of them MUST go under one actor, who sends no others.
	Bus dispatch.Bus
	// Reader reads the chain, for plans that nobody asks for. Without one there are none.
	Reader *chain.Reader
	// Presence tells which nodes are away, until the context ends. Without one every node counts as there.
	Presence func(ctx context.Context, tell func(Presence)) error
	// Others says whether another engine is seen at work, so that its lease needs not be asked for. It may be nil.
	Others func(ctx context.Context) bool
	// Leads runs beside the loop while the engine walks, until its context ends. It may be nil.
	Leads func(ctx context.Context)
	// Holder names this engine among all; default: one by chance. TTL is how long its lease holds; default: [DefaultTTL].
	Holder string
	TTL    time.Duration
	// Window bounds the commands under way. Default: that of rollout/walk.
	Window int
	Now    func() time.Time
	Logger *slog.Logger
	// Trace is told of each command when it is sent, with the traceparent of who set the rollout going; it gives that of the command, and what
	// is called with its answer. It MUST NOT block. Nil means that nobody traces.
	Trace func(a walk.Action, parent string) (trace string, answered func(es.Answer, error))
	// Ready is called when the engine has read all that was there at its start. It may be nil.
	Ready func()
}

// Presence says that a node has not been heard of since a moment, or, with the zero time, that it is there.
type Presence struct {
	Node  string
	Since time.Time
}

// Engine walks rollouts. Make it with [New] and run it once.
type Engine struct {
	cfg    Config
	log    *slog.Logger
	client *commands.Client
	state  *walk.State
	keeper *keeper

	stretches chan stretch
	outcomes  chan outcome
	presence  chan Presence
	asks      chan func()
	drain     chan struct{}
	drainNow  sync.Once
	// ended is closed when Run has returned.
	ended chan struct{}

	// The rest belongs to the loop.
	leading  bool
	draining bool
	tail     uint64
	caughtUp bool // all that has to be known up to the tail is known
	ready    bool
	reign    *reign
	planned  time.Time
	again    time.Time
	// traces has the traceparents of the rollouts that are walked, by their ids, while somebody traces.
	traces map[string]string
}

// stretch is what comes of reading: an event, or else that all that has to be known up to a sequence has been read.
type stretch struct {
	message es.Message
	read    bool // all up to through
	through uint64
}

// outcome is what came of an action.
type outcome struct {
	action walk.Action
	answer es.Answer
	err    error
	fence  uint64
}

// New returns an engine. It gives an error for a configuration that can't work.
func New(c Config) (*Engine, error) {
	if c.Stream == nil || c.Registry == nil || c.Bus == nil {
		return nil, errors.AssertionFailedf("an engine needs a stream, a registry and a bus")
	}
	if c.TTL == 0 {
		c.TTL = DefaultTTL
	}
	if c.TTL < MinTTL || c.TTL > commands.MaxLeaseTTL {
		return nil, errors.Newf("the lease holds for %s: it is between %s and %s", c.TTL, MinTTL, commands.MaxLeaseTTL)
	}
	if c.Holder == "" {
		c.Holder = uuid.NewString()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	e := &Engine{
		cfg: c, log: c.Logger, client: commands.NewClient(c.Bus), state: walk.New(walk.Config{Registry: c.Registry, Window: c.Window}),
		stretches: make(chan stretch, maxBatch), outcomes: make(chan outcome, maxBatch), presence: make(chan Presence, maxBatch), asks: make(chan func()),
		drain: make(chan struct{}), ended: make(chan struct{}), traces: map[string]string{},
	}
	e.keeper = newKeeper(e.client, c)
	return e, nil
}

// Drain lets no step begin any more. What runs goes on, and when that has come to its end [Engine.Run] returns [ErrDrained].
func (e *Engine) Drain() { e.drainNow.Do(func() { close(e.drain) }) }

// Run walks until the context ends, and gives its lease back. It gives [ErrDrained], and why an event can't be folded: nothing may be done
// after that by this program.
func (e *Engine) Run(ctx context.Context) error {
	defer close(e.ended)
	tail, err := e.awaitTail(ctx)
	if err != nil {
		return err
	}
	e.tail = tail
	running, stop := context.WithCancel(ctx)
	var parts sync.WaitGroup
	parts.Go(func() { e.follow(running) })
	parts.Go(func() { e.keeper.run(running) })
	if e.cfg.Presence != nil {
		parts.Go(func() { e.watchNodes(running) })
	}
	err = e.loop(running)
	e.standBy("it ends")
	stop()
	parts.Wait()
	e.keeper.release(context.WithoutCancel(ctx))
	return err
}

// awaitTail gives where the stream ends at the start.
func (e *Engine) awaitTail(ctx context.Context) (uint64, error) {
	for {
		tail, err := e.cfg.Stream.Tail(ctx)
		if err == nil || ctx.Err() != nil {
			return tail, ctx.Err()
		}
		e.log.Warn("can't see where the stream ends, trying again", "error", err)
		pause(ctx, followPause)
	}
}

// follow reads the stream into the loop, until the context ends: of what was there at the start no more than has to be known, and all that
// comes after it.
func (e *Engine) follow(ctx context.Context) {
	var last uint64
	for caughtUp := false; ctx.Err() == nil; {
		messages := e.cfg.Stream.Follow(ctx, last)
		if !caughtUp {
			messages = e.cfg.Stream.ReadKinds(ctx, last, e.tail, walk.Kinds()...)
		}
		err := e.hand(ctx, messages, &last)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && !caughtUp:
			caughtUp, last = true, e.tail
			e.give(ctx, stretch{read: true, through: e.tail})
			continue
		case err != nil:
			e.log.Warn("can't read the stream, trying again", "after", last, "error", err)
		}
		pause(ctx, followPause)
	}
}

// hand gives messages to the loop, and keeps the sequence of the last one.
func (e *Engine) hand(ctx context.Context, messages iter.Seq2[es.Message, error], last *uint64) error {
	for m, err := range messages {
		if err != nil || !e.give(ctx, stretch{message: m}) {
			return err
		}
		*last = m.Sequence
	}
	return nil
}

// give gives something to the loop, unless the context ends.
func (e *Engine) give(ctx context.Context, s stretch) bool {
	select {
	case e.stretches <- s:
		return true
	case <-ctx.Done():
		return false
	}
}

func (e *Engine) watchNodes(ctx context.Context) {
	tell := func(p Presence) {
		select {
		case e.presence <- p:
		case <-ctx.Done():
		}
	}
	for ctx.Err() == nil {
		if err := e.cfg.Presence(ctx, tell); err != nil && ctx.Err() == nil {
			e.log.Warn("can't see which nodes are away, trying again", "error", err)
		}
		pause(ctx, followPause)
	}
}

// pause waits, or until the context ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// ask lets the loop answer a question between two batches. It gives [ErrEnded].
func (e *Engine) ask(ctx context.Context, question func()) error {
	done := make(chan struct{})
	select {
	case e.asks <- func() { question(); close(done) }:
		<-done
		return nil
	case <-e.ended:
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ErrEnded means that the engine has ended, and answers nothing any more.
var ErrEnded = errors.New("the engine has ended")

// Pending lists the steps that are under way. It gives [ErrEnded] and the context's error.
func (e *Engine) Pending(ctx context.Context) ([]walk.Step, error) {
	var list []walk.Step
	err := e.ask(ctx, func() { list = e.state.Pending() })
	return list, err
}

// stepNames gives the first few of steps for a message.
func stepNames(list []walk.Step) []string {
	const most = 20
	var names []string
	for _, s := range list[:min(most, len(list))] {
		names = append(names, s.StepName.String()+" (rollout "+s.Rollout+")")
	}
	return names
}

package dispatch

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/internal/failpoint"
	"catenary/internal/streams"
)

// prepareTimeout bounds the making of the consumer, which takes milliseconds, and with replicas a second or two.
const prepareTimeout = 30 * time.Second

// Waits of a worker.
const (
	// storeTimeout bounds one call to the store, which takes milliseconds.
	storeTimeout = 5 * time.Second
	// firstRetry and lastRetry bound the wait before something is tried again.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Second
	// turnPoll bounds how long an instance stands still after a command of it that another worker had is settled.
	turnPoll = 500 * time.Millisecond
	// stopTimeout bounds the giving back of what is held when a worker stops.
	stopTimeout = 2 * time.Second
)

// WorkerConfig is what a worker needs.
type WorkerConfig struct {
	Store  *InboxStore
	Intake *Intake
	// Submit queues a command; see [Writer.Submit].
	Submit func(es.Command, func(es.Answer))
	// Refused takes note of what is refused. It may be nil.
	Refused *RefusedLog
	Now     func() time.Time
	Logger  *slog.Logger
}

// InboxWorker works off the inbox: the commands of one instance one after another in the order they were stored, those of
// many instances side by side. Several workers MAY run at once: an instance's next command is begun only when the one before
// it has left the stream, whoever worked on it.
//
// A command leaves the inbox only after its receipt is kept. A worker that dies leaves what it held to the next one, within
// the consumer's AckWait. Such a command is looked up among the receipts first, and its id keeps it from being done twice.
//
// What a worker holds is bounded, also of one instance: the rest is given back to the server for a while, so that one instance with
// many commands leaves room for the others. Which comes first is told by the stream, not by what is held.
type InboxWorker struct {
	cfg WorkerConfig

	mu       sync.Mutex
	lanes    map[string]*sequenced[*delivery]
	held     int           // deliveries in all lanes
	room     chan struct{} // has a token when there may be room for another instance
	stopping bool
	running  sync.WaitGroup
}

// delivery is an entry with the means to acknowledge it.
type delivery struct {
	entry
	msg jetstream.Msg
	// suspect says that others may have worked on it too: there may be a receipt already.
	suspect bool
	// known is the note in its receipt, if there is one; noted says that this process has added to it.
	known Receipt
	noted bool
}

// NewInboxWorker returns a worker that does not run yet.
func NewInboxWorker(cfg WorkerConfig) *InboxWorker {
	return &InboxWorker{cfg: cfg, lanes: map[string]*sequenced[*delivery]{}, room: make(chan struct{}, 1)}
}

// Run works until the context ends, gives back what it holds, and returns nil. While the bus is away it waits.
func (w *InboxWorker) Run(ctx context.Context) error {
	pace := newPace(firstRetry, lastRetry)
	for ctx.Err() == nil {
		if err := w.consume(ctx); err != nil && ctx.Err() == nil {
			w.cfg.Logger.Warn("the inbox can't be worked off, trying again", "error", err)
			pause(ctx, pace.NextBackOff())
			continue
		}
		pace.Reset()
	}
	w.mu.Lock()
	w.stopping = true
	w.mu.Unlock()
	w.running.Wait()
	// What was given back is with the server when this returns, so that the next worker has it at once.
	flushing, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := w.cfg.Store.nc.FlushWithContext(flushing); err != nil && !w.cfg.Store.nc.IsClosed() {
		w.cfg.Logger.Warn("what the inbox's worker held is given to others late", "error", err)
	}
	return nil
}

// consume takes deliveries until the context ends or the consumer does.
func (w *InboxWorker) consume(ctx context.Context) error {
	making, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	config := w.cfg.Store.streams.Worker
	var consumer jetstream.Consumer
	err := streams.Insist(making, func(ctx context.Context) (err error) {
		consumer, err = w.cfg.Store.js.CreateOrUpdateConsumer(ctx, w.cfg.Store.streams.Inbox.Name, config)
		return err
	})
	if err != nil {
		return errors.Wrapf(err, "make the consumer %s of %s", config.Durable, w.cfg.Store.streams.Inbox.Name)
	}
	taking, err := consumer.Consume(func(m jetstream.Msg) { w.take(ctx, m) },
		jetstream.PullMaxMessages(min(max(config.MaxAckPending, 1), 256)),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			w.cfg.Logger.Warn("the inbox's consumer reports an error", "error", err)
		}))
	if err != nil {
		return errors.Wrap(err, "take from the inbox")
	}
	alive := time.NewTicker(max(config.AckWait/3, time.Millisecond))
	defer alive.Stop()
	for {
		select {
		case <-ctx.Done():
			// What is here already is given back by take, so that it does not wait for AckWait to pass.
			taking.Drain()
			drained := time.NewTimer(stopTimeout)
			defer drained.Stop()
			select {
			case <-taking.Closed():
			case <-drained.C: // the connection is gone, and what it brought with it
			}
			return nil
		case <-taking.Closed():
			return errors.New("the consumer has ended")
		case <-alive.C:
			w.sayAlive()
		}
	}
}

// sayAlive keeps what is held from being given to others.
func (w *InboxWorker) sayAlive() {
	w.mu.Lock()
	var held []*delivery
	for _, l := range w.lanes {
		for _, p := range l.held {
			held = append(held, p.item)
		}
	}
	w.mu.Unlock()
	for _, d := range held {
		if err := d.msg.InProgress(); err != nil && !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
			w.cfg.Logger.Debug("the inbox can't be told that a command is worked on", "sequence", d.sequence, "error", err)
		}
	}
}

// take puts a delivery into its lane. When there is no room, not even for one of its instance, it waits, and with it what the server
// would send next.
func (w *InboxWorker) take(ctx context.Context, m jetstream.Msg) {
	e, err := w.cfg.Store.entryOf(m)
	if err != nil {
		w.cfg.Logger.Error("a delivery of the inbox can't be told apart", "error", err)
		return
	}
	d := &delivery{entry: e, msg: m, suspect: e.deliveries > 1}
	for !w.place(ctx, d) {
		select {
		case <-w.room:
		case <-ctx.Done():
		}
	}
}

// place deals with a delivery, unless there is no room for one more instance.
func (w *InboxWorker) place(ctx context.Context, d *delivery) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.lanes[d.subject]
	switch {
	case w.stopping || ctx.Err() != nil:
		w.giveBack(d)
		return true
	case l == nil && w.held >= maxHeld:
		return false
	case l == nil:
		l = newSequenced[*delivery](time.Now())
		w.lanes[d.subject] = l
		w.running.Go(func() { w.work(ctx, d.subject, l) })
	}
	before := len(l.held)
	l.add(d.sequence, d)
	if share := max(min(maxHeldOfOne, maxHeld-w.held), 1); len(l.held) > max(before, share) {
		back, after := l.giveBack(time.Now())
		w.giveBackFor(back, after)
	}
	w.held += len(l.held) - before
	return true
}

// giveBackFor gives a delivery back for a while.
func (w *InboxWorker) giveBackFor(d *delivery, after time.Duration) {
	if err := d.msg.NakWithDelay(after); err != nil && !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
		w.cfg.Logger.Debug("a command of the inbox could not be given back for a while", "sequence", d.sequence, "error", err)
	}
}

// free makes room for others. It MUST be called with the lock held.
func (w *InboxWorker) free(n int) {
	w.held -= n
	select {
	case w.room <- struct{}{}:
	default:
	}
}

// giveBack lets the next worker have a delivery at once.
func (w *InboxWorker) giveBack(d *delivery) {
	if err := d.msg.Nak(); err != nil && !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
		w.cfg.Logger.Debug("a command of the inbox could not be given back", "sequence", d.sequence, "error", err)
	}
}

// work goes through a lane until it is empty.
func (w *InboxWorker) work(ctx context.Context, subject string, l *sequenced[*delivery]) {
	for {
		w.mu.Lock()
		d, ok := l.lowest()
		if !ok || ctx.Err() != nil {
			delete(w.lanes, subject)
			w.free(len(l.held))
			for _, p := range l.held {
				w.giveBack(p.item)
			}
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		if w.workOn(ctx, d, l) {
			w.mu.Lock()
			before := len(l.held)
			l.settled(d.sequence, time.Now())
			w.free(before - len(l.held))
			w.mu.Unlock()
		}
	}
}

// workOn brings a command to its outcome. It says false when something else is to be looked at first.
func (w *InboxWorker) workOn(ctx context.Context, d *delivery, l *sequenced[*delivery]) bool {
	turn := w.awaitTurn(ctx, d, l)
	if turn != itsTurn {
		return turn == isGone
	}
	looked := time.Now()
	if d.suspect {
		if done, ok := w.settledBefore(ctx, d); !ok || done {
			return done
		}
	}
	if d.known.Begun >= giveUpAfter {
		return w.putAside(ctx, d, &es.Refusal{Code: CodeGaveUp, Message: "it was begun " + strconv.Itoa(d.known.Begun) + " times by writers that died before there was an outcome",
			Hint: "see the writers' logs for what happened each time; then retry or discard it"})
	}
	c, err := d.command(w.cfg.Intake)
	if err != nil {
		return w.putAside(ctx, d, asRefusal(err, CodeUnreadable))
	}
	pace := newPace(firstRetry, lastRetry)
	for {
		if time.Since(looked) > w.cfg.Store.streams.Worker.AckWait/2 {
			// This process has stood still, or has waited long: look again whose turn it is.
			d.suspect = true
			return false
		}
		if !w.noteBegun(ctx, d) {
			return false
		}
		a, ok := w.submit(ctx, c)
		if !ok {
			w.takeBack(ctx, d)
			return false
		}
		switch judge(a) {
		case settle:
			failpoint.Pass(failpoint.InboxDone)
			w.cfg.Refused.Note(Who{}, c, a)
			return w.finish(ctx, d, Receipt{Answer: a, Inbox: d.sequence, Actor: d.actor, Stored: d.stored.UTC()})
		case park:
			why := &es.Refusal{Code: codeInternal, Message: "it was answered " + string(a.Status)}
			if a.Error != nil {
				why = &es.Refusal{Code: a.Error.Code, Message: a.Error.Message, Hint: a.Error.Hint}
			}
			return w.putAside(ctx, d, why)
		case again:
			w.takeBack(ctx, d)
			pause(ctx, pace.NextBackOff())
		}
	}
}

// noteBegun notes that a command that was handed out often is begun now.
func (w *InboxWorker) noteBegun(ctx context.Context, d *delivery) bool {
	if d.deliveries <= doubtAfter || !canonicalID(d.id()) {
		return true
	}
	if d.known.Command == "" {
		d.known = Receipt{
			Answer: es.Answer{Status: es.StatusStored, Command: d.id(), Aggregate: d.ref.Aggregate, Key: d.ref.Key},
			Actor:  d.actor, Stored: d.stored.UTC(),
		}
	}
	note := d.known
	note.Inbox, note.Settled = d.sequence, w.cfg.Now().UTC()
	note.Begun++
	if !w.insist(ctx, "note the begin of a command", d, func() error { _, err := w.cfg.Store.note(ctx, note); return err }) {
		return false
	}
	d.known, d.noted = note, true
	return true
}

// takeBack takes the note back: the process has lived on. It is tried once, also when the worker is to stop; a note too many is a try less.
func (w *InboxWorker) takeBack(ctx context.Context, d *delivery) {
	if !d.noted {
		return
	}
	d.noted = false
	d.known.Begun--
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if _, err := w.cfg.Store.note(bounded, d.known); err != nil {
		w.cfg.Logger.Warn("a command of the inbox counts as begun without an outcome", "sequence", d.sequence, "command", d.id(), "error", err)
	}
}

// turn says whether a command may be begun.
type turn int

const (
	notYet turn = iota
	itsTurn
	// isGone means that the command has left the inbox: another worker has settled it.
	isGone
)

// awaitTurn waits until no earlier command of the instance is in the stream. It returns early when an earlier one comes into
// the lane: that one is then to be worked on.
func (w *InboxWorker) awaitTurn(ctx context.Context, d *delivery, l *sequenced[*delivery]) turn {
	pace := newPace(firstRetry/5, turnPoll)
	for ctx.Err() == nil {
		first, err := w.cfg.Store.first(ctx, d.subject)
		switch {
		case errors.Is(err, es.ErrNotFound), err == nil && first > d.sequence:
			return isGone
		case err == nil && first == d.sequence:
			return itsTurn
		case err != nil && ctx.Err() == nil:
			w.cfg.Logger.Warn("the inbox can't be read, trying again", "error", err)
		}
		timer := time.NewTimer(pace.NextBackOff())
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-l.arrived:
			w.mu.Lock()
			lowest, _ := l.lowest()
			w.mu.Unlock()
			if lowest != d {
				timer.Stop()
				return notYet
			}
		}
		timer.Stop()
	}
	return notYet
}

// settledBefore looks for a receipt that another worker has kept for this very delivery, and finishes its work. It says not
// ok when that can't be told.
func (w *InboxWorker) settledBefore(ctx context.Context, d *delivery) (done, ok bool) {
	if !canonicalID(d.id()) {
		return false, true // it has no receipt; parking it twice parks it once
	}
	pace := newPace(firstRetry, lastRetry)
	for ctx.Err() == nil {
		r, err := w.cfg.Store.receipt(ctx, d.id(), d.ref)
		switch {
		case errors.Is(err, es.ErrNotFound):
			return false, true
		case err == nil && r.Status == es.StatusStored:
			if d.known = r; r.Inbox != d.sequence {
				d.known.Begun = 0 // that was before it was retried
			}
			return false, true
		case err == nil && r.Inbox != d.sequence:
			return false, true
		case err == nil:
			return w.acknowledge(ctx, d), true
		}
		w.cfg.Logger.Warn("the receipts can't be read, trying again", "error", err)
		pause(ctx, pace.NextBackOff())
	}
	return false, false
}

// submit gives a command to the writer and waits for its answer, or for the worker's end.
func (w *InboxWorker) submit(ctx context.Context, c es.Command) (es.Answer, bool) {
	answers := make(chan es.Answer, 1)
	w.cfg.Submit(c, func(a es.Answer) { answers <- a })
	select {
	case a := <-answers:
		return a, true
	case <-ctx.Done():
		return es.Answer{}, false
	}
}

// finish keeps a receipt and lets the command leave the inbox.
func (w *InboxWorker) finish(ctx context.Context, d *delivery, r Receipt) bool {
	r.Settled = w.cfg.Now().UTC()
	return w.insist(ctx, "keep the receipt of a command", d, func() error { return w.cfg.Store.keep(ctx, r) }) && w.acknowledge(ctx, d)
}

// putAside parks a command, keeps the receipt that says so, and lets the command leave the inbox. What came after it goes on.
func (w *InboxWorker) putAside(ctx context.Context, d *delivery, why *es.Refusal) bool {
	p := d.parked(answerError(why), w.cfg.Now())
	if !w.insist(ctx, "park a command", d, func() error { return w.cfg.Store.park(ctx, p) }) {
		return false
	}
	w.cfg.Logger.Error("command parked", "parked", p.ID, "command", p.Command, "aggregate", p.Aggregate, "key", p.Key, "verb", p.Verb, "reason", why.Message)
	if !canonicalID(p.Command) {
		return w.acknowledge(ctx, d) // nobody could ask for its receipt
	}
	return w.finish(ctx, d, Receipt{Answer: parkedAnswer(p), Inbox: d.sequence, Actor: d.actor, Stored: d.stored.UTC(), Parked: p.ID})
}

func (w *InboxWorker) acknowledge(ctx context.Context, d *delivery) bool {
	return w.insist(ctx, "acknowledge a command", d, func() error {
		bounded, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		err := d.msg.DoubleAck(bounded)
		if errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
			return nil
		}
		return err
	})
}

// insist does something until it succeeds or the worker ends.
func (w *InboxWorker) insist(ctx context.Context, what string, d *delivery, do func() error) bool {
	pace := newPace(firstRetry, lastRetry)
	for {
		err := do()
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		w.cfg.Logger.Error("can't "+what+" of the inbox, trying again", "sequence", d.sequence, "command", d.id(), "error", err)
		pause(ctx, pace.NextBackOff())
	}
}

// pause waits, no longer than the context.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

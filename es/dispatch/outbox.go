package dispatch

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/uuid"

	"catenary/es"
	"catenary/internal/failpoint"
)

// Errors of an outbox.
var (
	// ErrOutboxFull means that the outbox holds as many bytes as it may. The command was not taken; send what waits first.
	ErrOutboxFull = errors.New("the outbox is full")
	// ErrOutboxLocked means that another running process has the outbox open.
	ErrOutboxLocked = errors.New("the outbox is in use")
	// ErrOutboxDamaged means that the outbox's file was changed by something else than a crash; the message says where.
	ErrOutboxDamaged = errors.New("the outbox is damaged")
	// ErrOutboxClosed is given by an outbox that was closed.
	ErrOutboxClosed = errors.New("the outbox is closed")
)

// DefaultOutboxBytes bounds what waits in an outbox: about a hundred thousand commands of usual size.
const DefaultOutboxBytes = 64 << 20

// OutboxConfig is what an outbox needs.
type OutboxConfig struct {
	// Dir is a directory of its own. It is made when it does not exist.
	Dir string
	// Bus takes the commands: an [InboxClient], which keeps what it has acknowledged, or any other.
	Bus Bus
	// MaxBytes bounds what waits. Zero means DefaultOutboxBytes.
	MaxBytes int64
	// Timeout bounds one try to send. Zero means DefaultTimeout.
	Timeout time.Duration
	// Logger hears of tries that failed. Default: none.
	Logger *slog.Logger
}

// Outbox keeps commands on the sender's own disk until the bus has them, for senders that must survive without a bus. It is a
// [Bus]: a command is on disk when Send returns. [Outbox.Run] sends one after another, in the order they were taken, and forgets
// each only when it is acknowledged. So a command is sent at least once, and by its id done at most once.
//
// A kill at any moment loses nothing that Send has taken. One process at a time has an outbox open. It is safe for many
// goroutines.
type Outbox struct {
	cfg  OutboxConfig
	lock *outboxLock

	mu      sync.Mutex
	file    *outboxFile
	pending []outboxItem
	bytes   int64
	next    uint64
	broken  error // why nothing more can be taken
	changed chan struct{}
	empty   chan struct{} // closed, and made anew, when nothing waits or nothing more can be sent
	running bool
}

// outboxItem is a command that waits.
type outboxItem struct {
	number  uint64
	size    int64
	request Request
}

var _ Bus = (*Outbox)(nil)

// OpenOutbox opens an outbox, with what waits in it. A last record that a crash has cut off is dropped: nobody was told that it
// was taken. It MUST be closed. It gives errors marked [ErrOutboxLocked] and [ErrOutboxDamaged], and those of the file system.
func OpenOutbox(cfg OutboxConfig) (*Outbox, error) {
	switch {
	case cfg.Dir == "" || cfg.Bus == nil:
		return nil, errors.New("outbox: Dir and Bus must be set")
	case cfg.MaxBytes < 0 || cfg.Timeout < 0:
		return nil, errors.New("outbox: MaxBytes and Timeout can't be negative")
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = DefaultOutboxBytes
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	lock, err := lockOutbox(cfg.Dir)
	if err != nil {
		return nil, err
	}
	o := &Outbox{cfg: cfg, lock: lock, changed: make(chan struct{}, 1), empty: make(chan struct{})}
	o.file, o.pending, o.next, err = openOutboxFile(filepath.Join(cfg.Dir, outboxName))
	if err != nil {
		return nil, errors.CombineErrors(err, lock.release())
	}
	for _, item := range o.pending {
		o.bytes += item.size
	}
	return o, nil
}

// Send takes a command. It is on disk when this returns. The answer has the status stored and the command's id; what becomes
// of it is told by its receipt, once it went through the inbox. It gives errors marked [ErrOutboxFull], [ErrTooLarge] and
// [ErrOutboxClosed], and those of the file system, after which the outbox has to be opened again.
func (o *Outbox) Send(ctx context.Context, r Request) (es.Answer, error) {
	if err := ctx.Err(); err != nil {
		return es.Answer{}, err
	}
	if r.ID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return es.Answer{}, errors.Wrap(err, "make a command id")
		}
		r.ID = id.String()
	}
	name := r.Aggregate + " " + r.Verb
	if len(r.Body) > MaxBodyBytes {
		return es.Answer{}, errors.Mark(errors.Newf("keep %s: the body has %d bytes; the limit is %d", name, len(r.Body), MaxBodyBytes), ErrTooLarge)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.broken != nil {
		return es.Answer{}, errors.Wrapf(o.broken, "keep %s", name)
	}
	record, err := putRecord(o.next, r, o.file.size)
	if err != nil {
		return es.Answer{}, errors.Wrapf(err, "keep %s", name)
	}
	size := int64(len(record))
	if o.bytes+size > o.cfg.MaxBytes {
		return es.Answer{}, errors.Mark(errors.Newf("keep %s: the outbox %s holds %d commands of %d bytes, and its limit is %d", name, o.cfg.Dir, len(o.pending), o.bytes, o.cfg.MaxBytes), ErrOutboxFull)
	}
	if err := o.file.append(record, true); err != nil {
		if errors.Is(err, errOutboxUnsure) {
			o.broken = errors.Wrap(err, "the outbox must be opened again")
			o.signal()
			o.wakeFlush()
		}
		return es.Answer{}, errors.Wrapf(err, "keep %s", name)
	}
	o.pending = append(o.pending, outboxItem{number: o.next, size: size, request: r})
	o.bytes += size
	o.next++
	o.signal()
	return es.Answer{Status: es.StatusStored, Command: r.ID, Aggregate: r.Aggregate}, nil
}

func (o *Outbox) signal() {
	select {
	case o.changed <- struct{}{}:
	default:
	}
}

// wakeFlush wakes all who wait for the outbox to be empty.
func (o *Outbox) wakeFlush() {
	close(o.empty)
	o.empty = make(chan struct{})
}

// Pending is how many commands wait.
func (o *Outbox) Pending() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.pending)
}

// Flush waits until nothing waits any more, or the context ends. [Outbox.Run] MUST run meanwhile. It gives the context's error,
// and why nothing more can be sent.
func (o *Outbox) Flush(ctx context.Context) error {
	for {
		o.mu.Lock()
		left, broken, empty := len(o.pending), o.broken, o.empty
		o.mu.Unlock()
		if broken != nil || left == 0 {
			return broken
		}
		select {
		case <-ctx.Done():
			return errors.Wrapf(ctx.Err(), "%d commands wait in the outbox", left)
		case <-empty:
		}
	}
}

// Run sends what waits until the context ends, and returns nil then. What can't be sent at the moment is tried again, without
// end; what is refused for good is moved to the file refused.ndjson in the outbox's directory, and logged. It gives the errors
// of the file system, and [ErrOutboxClosed].
func (o *Outbox) Run(ctx context.Context) error {
	if err := o.begin(); err != nil {
		return err
	}
	defer o.end()
	pace := newPace(firstRetry, lastRetry)
	for ctx.Err() == nil {
		item, ok, err := o.oldest()
		if err != nil {
			return err
		}
		if !ok {
			select {
			case <-ctx.Done():
			case <-o.changed:
			}
			continue
		}
		answer, err := o.try(ctx, item.request)
		switch {
		case err == nil && judge(answer) != again:
			failpoint.Pass(failpoint.OutboxSent)
			err := o.settle(item, answer)
			if err != nil {
				return err
			}
			pace.Reset()
		case ctx.Err() == nil:
			o.cfg.Logger.Warn("a command stays in the outbox, trying again", "command", item.request.ID, "waiting", o.Pending(), "status", answer.Status, "error", err)
			pause(ctx, pace.NextBackOff())
		}
	}
	return nil
}

func (o *Outbox) begin() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.broken != nil {
		return o.broken
	}
	if o.running {
		return errors.New("the outbox is being sent already")
	}
	o.running = true
	return nil
}

func (o *Outbox) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.running = false
}

func (o *Outbox) oldest() (item outboxItem, ok bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.broken != nil {
		return item, false, o.broken
	}
	if len(o.pending) == 0 {
		return item, false, nil
	}
	return o.pending[0], true, nil
}

// try sends a command once. A command that the bus takes no message of its size for can't be sent later either.
func (o *Outbox) try(ctx context.Context, r Request) (es.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, o.cfg.Timeout)
	defer cancel()
	answer, err := o.cfg.Bus.Send(ctx, r)
	if errors.Is(err, ErrTooLarge) {
		return refusal(es.Command{ID: r.ID, Verb: r.Verb, Ref: es.Ref{Aggregate: r.Aggregate}}, invalid("too-large", err.Error(), "send less in one command")), nil
	}
	return answer, err
}

// settle forgets a command that was acknowledged, or refused for good. That is not synced: after a power loss it may be sent
// once more, which does no harm.
func (o *Outbox) settle(item outboxItem, answer es.Answer) error {
	if refusedForGood(answer) {
		o.cfg.Logger.Error("a command of the outbox was refused; it is kept in "+refusedName, "command", item.request.ID, "aggregate", item.request.Aggregate,
			"verb", item.request.Verb, "status", answer.Status, "reason", answer.Error.Message)
		if err := o.file.keepRefused(item.request, answer); err != nil {
			return err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.broken != nil {
		return o.broken
	}
	o.pending = o.pending[1:]
	o.bytes -= item.size
	record, err := doneRecord(item.number, o.file.size)
	if err == nil {
		err = o.file.append(record, false)
	}
	if err == nil {
		err = o.compact()
	}
	if err != nil {
		// It may be taken for one that waits: when the outbox is opened again it is sent once more.
		o.broken = errors.Wrap(err, "the outbox must be opened again")
	}
	if err != nil || len(o.pending) == 0 {
		o.wakeFlush()
	}
	return err
}

// refusedForGood says that the bus will never take the command. An outbox may send to a bus that does commands at once: there
// the answer is the outcome, and what was not done stands among the refused.
func refusedForGood(a es.Answer) bool {
	switch a.Status {
	case es.StatusStored, es.StatusAccepted, es.StatusUnchanged:
		return false
	}
	return a.Error != nil
}

// compact makes the file small again: at once when nothing waits, else when most of it is of no more use.
func (o *Outbox) compact() error {
	switch {
	case len(o.pending) == 0:
		return o.file.clear()
	case o.file.size > 2*o.cfg.MaxBytes && o.file.size > 2*o.bytes:
		return o.file.rewrite(o.pending)
	}
	return nil
}

// Close gives the outbox back to others. What waits stays on disk. [Outbox.Run] MUST have returned.
func (o *Outbox) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if errors.Is(o.broken, ErrOutboxClosed) {
		return nil
	}
	o.broken = ErrOutboxClosed
	o.signal()
	o.wakeFlush()
	return errors.CombineErrors(o.file.close(), o.lock.release())
}

package proof

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/cockroachdb/errors"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"catenary/es"
)

// When a checkpoint is signed without being asked for.
const (
	// DefaultEvery is how old the oldest event without a checkpoint may become. A cut-off end that no checkpoint has seen is not
	// noticed by anyone who holds one, so this is kept short; it costs 400 bytes each time something was recorded.
	DefaultEvery = 10 * time.Second
	// DefaultEvents is how many events may wait for a checkpoint: an import signs one every second or so.
	DefaultEvents = 20_000
)

// Checkpoints keeps signed checkpoints, apart from the events, in the order they were signed.
type Checkpoints interface {
	// Newest gives the last checkpoint and its place, and place 0 when there is none. It gives errors marked [es.ErrUnavailable].
	Newest(ctx context.Context) (signed []byte, place uint64, err error)
	// Append keeps a checkpoint directly after a place. It gives errors marked [es.ErrConflict], [es.ErrFull], [es.ErrUnclear] or
	// [es.ErrUnavailable].
	Append(ctx context.Context, after uint64, signed []byte) error
	// After gives the checkpoints after a place, in order; errors are marked [es.ErrUnavailable].
	After(ctx context.Context, place uint64) iter.Seq2[Kept, error]
}

// Kept is a checkpoint where it stands.
type Kept struct {
	Place  uint64
	Signed []byte
}

// Config is what a [Log] needs.
type Config struct {
	Events      es.Store
	Tiles       Tiles
	Checkpoints Checkpoints
	// Signers sign; none makes a log that gives proofs up to the newest checkpoint of others, and signs nothing.
	Signers []note.Signer
	// Public are the signers' public keys, to be handed out.
	Public []string
	// New is what the next checkpoint puts on record about the signers; nil for nothing.
	New *NewKeys
	// Accepted gives what says of a checkpoint whether somebody has accepted that the record lost what it has seen. Nil means never.
	Accepted func(ctx context.Context) (func(Checkpoint) bool, error)
	// Every and AfterEvents say when a checkpoint is due. Zero means the defaults.
	Every       time.Duration
	AfterEvents uint64
	Now         func() time.Time
	Logger      *slog.Logger
}

// Log follows the events with the Merkle tree, signs checkpoints, and gives proofs. Several may run over the same stores at once:
// they make the same tiles, and each takes up the checkpoints of the others.
type Log struct {
	cfg Config

	mu      sync.Mutex
	tree    *tree
	head    es.Head
	newest  Checkpoint // zero when there is none
	signed  []byte
	place   uint64 // of the newest checkpoint
	failure error
	moved   chan struct{} // closed and made anew when something is waited for and has moved
	waiting bool
}

// New makes a log. Nothing is read before [Log.Run].
func New(cfg Config) *Log {
	if cfg.Every == 0 {
		cfg.Every = DefaultEvery
	}
	if cfg.AfterEvents == 0 {
		cfg.AfterEvents = DefaultEvents
	}
	if cfg.Accepted == nil {
		cfg.Accepted = func(context.Context) (func(Checkpoint) bool, error) {
			return func(Checkpoint) bool { return false }, nil
		}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Log{cfg: cfg, moved: make(chan struct{})}
}

// pauses between tries while a store is away.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = 5 * time.Second
)

// Run follows the events until the context ends, signs what has none yet, and returns nil. What contradicts the newest checkpoint
// ends only the signing, for as long as it does, and every question gets the reason.
func (l *Log) Run(ctx context.Context) error {
	pace := backoff.NewExponentialBackOff()
	pace.InitialInterval, pace.MaxInterval = firstPause, lastPause
	var timer sync.WaitGroup
	timing, stop := context.WithCancel(ctx)
	timer.Go(func() { l.signInTime(timing) })
	defer timer.Wait()
	defer stop()
	anew := false
	for {
		err := l.follow(ctx, anew, pace.Reset)
		switch {
		case ctx.Err() != nil:
			return l.finish(ctx)
		case errors.Is(err, errTiles) && !anew:
			l.cfg.Logger.Warn("the tiles of the proofs are made anew from the events", "reason", err)
			anew = true
			continue
		case errors.IsAny(err, es.ErrUnavailable, es.ErrUnclear, es.ErrNotFound):
			l.cfg.Logger.Warn("the proofs can't follow the events, trying again", "error", err)
		case l.stop(err):
			l.cfg.Logger.Error("no checkpoint is signed any more", "reason", err)
		}
		if errors.Is(err, es.ErrBrokenChain) {
			<-ctx.Done() // what is damaged stays so while the server runs, and finding it again may take long
		}
		anew = false
		select {
		case <-ctx.Done():
		case <-time.After(pace.NextBackOff()):
		}
	}
}

// errTiles means that the tiles do not give the root that was signed, or are not all there.
var errTiles = errors.New("the tiles do not fit")

// stop keeps why nothing is signed any more, and says whether that is news. It is looked at again all the same: the loss may be
// accepted, or the right stream brought back.
func (l *Log) stop(err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	news := l.failure == nil || l.failure.Error() != err.Error()
	l.failure = err
	l.wake()
	return news
}

// finish signs what the last checkpoint has not seen.
func (l *Log) finish(ctx context.Context) error {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.sign(last); err != nil {
		l.cfg.Logger.Warn("the last events have no checkpoint yet; the next start signs one", "error", err)
	}
	return nil
}

// follow takes up the tree and follows the events.
func (l *Log) follow(ctx context.Context, anew bool, going func()) error {
	expect, err := l.takeUp(ctx, anew)
	if err != nil {
		return err
	}
	l.mu.Lock()
	head := l.head
	l.mu.Unlock()
	for _, err := range es.VerifyChain(&head, l.cfg.Events.Follow(ctx, head.Sequence)) {
		if err != nil {
			return err
		}
		going()
		if err := l.take(ctx, head, expect); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// takeUp finds the newest checkpoint, makes sure that the events still say what it says, and opens the tree below it. It gives the
// checkpoint that the tree is to be compared with on the way.
func (l *Log) takeUp(ctx context.Context, anew bool) (Checkpoint, error) {
	signed, place, err := l.cfg.Checkpoints.Newest(ctx)
	if err != nil {
		return Checkpoint{}, err
	}
	var c Checkpoint
	if place > 0 {
		if c, err = Peek(signed); err != nil {
			return c, errors.Wrap(err, "the newest stored checkpoint")
		}
	}
	if len(l.cfg.Signers) > 0 && place > 0 && c.Origin != l.cfg.Signers[0].Name() {
		return c, markf(ErrOrigin, "the stored checkpoints are those of the chain %s, the key is that of %s: give this projector the key of the chain", c.Origin, l.cfg.Signers[0].Name())
	}
	expect := c
	if place > 0 {
		fits := Fits(ctx, l.cfg.Events, c)
		if errors.IsAny(fits, ErrShortened, ErrForked) {
			accepted, err := l.cfg.Accepted(ctx)
			if err != nil {
				return c, err
			}
			if !accepted(c) {
				return c, fits
			}
			l.cfg.Logger.Warn("the newest checkpoint is of a record whose loss was accepted; proofs begin anew", "checkpoint", c.Size)
			expect, anew = Checkpoint{}, true
		} else if fits != nil {
			return c, fits
		}
	}
	from := int64(expect.Size)
	if anew {
		from = 0
	}
	t, err := openTree(ctx, l.cfg.Tiles, from)
	if errors.Is(err, es.ErrNotFound) {
		return c, errors.Mark(err, errTiles)
	}
	if err != nil {
		return c, err
	}
	head, err := es.HeadAt(ctx, l.cfg.Events, uint64(t.size))
	if err != nil {
		return c, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tree, l.head, l.place, l.failure = t, head, place, nil
	l.newest, l.signed = expect, signed
	if expect.Size == 0 {
		l.signed = nil
	}
	return expect, nil
}

// Fits says whether the events still are what a checkpoint has seen, by its last event. It gives errors marked [ErrShortened] or
// [ErrForked], and those of the store.
func Fits(ctx context.Context, events es.Store, c Checkpoint) error {
	if c.Size == 0 {
		return nil
	}
	tail, err := events.Tail(ctx)
	if err != nil {
		return err
	}
	if tail < c.Size {
		return markf(ErrShortened, "a checkpoint was signed over %d events, but the stream ends at event %d", c.Size, tail)
	}
	head, err := es.HeadAt(ctx, events, c.Size)
	if err != nil {
		return err
	}
	if !c.matches(head) {
		return markf(ErrForked, "a checkpoint was signed over event %d with the hash %.16s…, but the stream's event %d has the hash %.16s…", c.Size, c.Head, c.Size, head.Hash)
	}
	return nil
}

// take puts an event into the tree, compares the tree with the expected checkpoint when it is there, and signs when it is time.
func (l *Log) take(ctx context.Context, head es.Head, expect Checkpoint) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.tree.add(ctx, LeafHash(head)); err != nil {
		return err
	}
	l.head = head
	if head.Sequence == expect.Size {
		root, err := l.tree.root(ctx, l.tree.size)
		if err != nil {
			return err
		}
		if root != expect.Root {
			return errors.Mark(markf(ErrForked, "the events up to %d have the root %s, but a checkpoint was signed over %s", expect.Size, root, expect.Root), errTiles)
		}
	}
	if l.waiting {
		l.wake()
	}
	if head.Sequence >= l.newest.Size+l.cfg.AfterEvents {
		return l.sign(ctx)
	}
	return nil
}

func (l *Log) wake() {
	close(l.moved)
	l.moved, l.waiting = make(chan struct{}), false
}

// signInTime signs what has waited long enough.
func (l *Log) signInTime(ctx context.Context) {
	tick := time.NewTicker(l.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		l.mu.Lock()
		err := l.sign(ctx)
		l.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			l.cfg.Logger.Warn("a checkpoint could not be signed; it is tried again", "error", err)
		}
	}
}

// sign signs and keeps a checkpoint over all events in the tree, if there are any that the newest has not seen, or new keys that are to be
// put on record. It MUST be called
// with the lock held.
func (l *Log) sign(ctx context.Context) error {
	if l.failure != nil || l.tree == nil || l.head.Sequence < l.newest.Size || l.head.Sequence == l.newest.Size && l.cfg.New == nil {
		return nil
	}
	if len(l.cfg.Signers) == 0 {
		return nil
	}
	root, err := l.tree.root(ctx, l.tree.size)
	if err != nil {
		return err
	}
	c := Checkpoint{Origin: l.cfg.Signers[0].Name(), Size: l.head.Sequence, Root: root, Head: l.head.Hash, Time: l.cfg.Now()}
	if l.cfg.New != nil {
		c.New = *l.cfg.New
	}
	signed, err := c.Sign(l.cfg.Signers...)
	if err != nil {
		return err
	}
	err = l.cfg.Checkpoints.Append(ctx, l.place, signed)
	if errors.IsAny(err, es.ErrConflict, es.ErrUnclear) {
		return l.adopt(ctx, err)
	}
	if err != nil {
		return err
	}
	l.newest, l.signed, l.place, l.cfg.New = c, signed, l.place+1, nil
	l.wake()
	return nil
}

// renew gets a newer checkpoint: its own, or without a key that of another. It MUST be called with the lock held.
func (l *Log) renew(ctx context.Context) error {
	if len(l.cfg.Signers) == 0 {
		return l.adopt(ctx, nil)
	}
	return l.sign(ctx)
}

// adopt takes up the checkpoint that another log has signed, or that this one has without hearing of it. When there is none it gives
// the cause back.
func (l *Log) adopt(ctx context.Context, cause error) error {
	signed, place, err := l.cfg.Checkpoints.Newest(ctx)
	if err != nil {
		return err
	}
	if place <= l.place {
		return cause
	}
	c, err := Peek(signed)
	if err != nil {
		return errors.Wrap(err, "the newest stored checkpoint")
	}
	if c.Size <= l.head.Sequence {
		root, err := l.tree.root(ctx, int64(c.Size))
		if err != nil {
			return err
		}
		if root != c.Root {
			err := markf(ErrForked, "another projector has signed the root %s over %d events, which have %s here", c.Root, c.Size, root)
			l.failure = err
			return err
		}
	}
	l.newest, l.signed, l.place = c, signed, place
	return nil
}

// Latest gives a checkpoint that has seen all events up to the present end of the stream, and the public keys. A log without keys
// gives the newest there is. It gives errors marked [ErrShortened], [ErrForked], [es.ErrNotFound] when nothing is recorded or
// signed yet, [es.ErrUnavailable], and the context's.
func (l *Log) Latest(ctx context.Context) (signed []byte, keys []string, err error) {
	tail, err := l.cfg.Events.Tail(ctx)
	if err != nil {
		return nil, nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.cover(ctx, tail)
	return l.signed, l.cfg.Public, err
}

// cover waits until the tree has an event, and gives the checkpoint over it. It MUST be called with the lock held.
func (l *Log) cover(ctx context.Context, sequence uint64) (Checkpoint, error) {
	for {
		switch {
		case l.failure != nil:
			return Checkpoint{}, l.failure
		case l.cfg.New == nil && l.newest.Size >= sequence && l.newest.Size > 0 && l.head.Sequence >= l.newest.Size:
			return l.newest, nil
		case l.tree != nil && l.head.Sequence >= sequence && sequence > 0:
			if err := l.renew(ctx); err != nil {
				return Checkpoint{}, err
			}
			if l.newest.Size < sequence && len(l.cfg.Signers) == 0 {
				return Checkpoint{}, errors.Mark(errors.Newf("event %d has no checkpoint yet, and this projector has no key to sign one; start one with --checkpoint-key", sequence), es.ErrNotFound)
			}
			if l.newest.Size <= l.head.Sequence {
				continue // either it is enough now, or another log was faster with too little
			}
		case sequence == 0:
			return Checkpoint{}, errors.Mark(errors.New("nothing is recorded yet"), es.ErrNotFound)
		}
		l.waiting = true
		moved := l.moved
		l.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
		}
		l.mu.Lock()
		if err := ctx.Err(); err != nil {
			return Checkpoint{}, errors.Wrapf(err, "waiting for the checkpoint over event %d", sequence)
		}
	}
}

// Prove gives the proof of an event. It gives errors marked [es.ErrNotFound], and those of [Log.Latest].
func (l *Log) Prove(ctx context.Context, sequence uint64) (Inclusion, error) {
	m, err := l.cfg.Events.Get(ctx, sequence)
	if err != nil {
		return Inclusion{}, err
	}
	before, err := es.HeadAt(ctx, l.cfg.Events, sequence-1)
	if err != nil {
		return Inclusion{}, err
	}
	record, err := NewRecord(before, m)
	if err != nil {
		return Inclusion{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c, err := l.cover(ctx, sequence)
	if err != nil {
		return Inclusion{}, err
	}
	path, err := tlog.ProveRecord(int64(c.Size), int64(sequence-1), l.tree.reader(ctx))
	return Inclusion{Event: record, Size: c.Size, Path: path, Checkpoint: string(l.signed), Keys: l.cfg.Public}, errors.Wrapf(err, "prove event %d", sequence)
}

// Growth proves that a chain has only been added to since an earlier checkpoint.
type Growth struct {
	// Path is the hashes that lead from the earlier root to the later one.
	Path tlog.TreeProof `json:"path"`
	// Checkpoint is the later one, signed.
	Checkpoint string   `json:"checkpoint"`
	Keys       []string `json:"keys,omitempty"`
}

// Grown proves that what stood when there were so many events still stands. It gives errors marked [ErrShortened] when there are
// fewer now, and those of [Log.Latest].
func (l *Log) Grown(ctx context.Context, size uint64) (Growth, error) {
	tail, err := l.cfg.Events.Tail(ctx)
	if err != nil {
		return Growth{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c, err := l.cover(ctx, tail)
	if err != nil {
		return Growth{}, err
	}
	g := Growth{Checkpoint: string(l.signed), Keys: l.cfg.Public, Path: tlog.TreeProof{}}
	if size == 0 || size >= c.Size {
		return g, nil // there is nothing to prove, or nothing that can be: whoever asked sees which
	}
	g.Path, err = tlog.ProveTree(int64(c.Size), int64(size), l.tree.reader(ctx))
	return g, errors.Wrapf(err, "prove the growth from %d to %d events", size, c.Size)
}

// Status is how a log is.
type Status struct {
	// Events counts the events that the tree has, Signed those that the newest checkpoint has seen.
	Events, Signed uint64
	// Signs says that this log signs at all.
	Signs bool
	// Failure is why nothing is signed any more; nil while it goes on.
	Failure error
}

// Status tells how the log is.
func (l *Log) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Status{Events: l.head.Sequence, Signed: l.newest.Size, Signs: len(l.cfg.Signers) > 0, Failure: l.failure}
}

package dispatch

import (
	"context"
	"sync"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
)

// BucketDirectory is a [Directory] in a key-value bucket: one entry per id, one value per entry. It is safe for many
// goroutines.
type BucketDirectory struct {
	name   string
	js     jetstream.JetStream
	bucket jetstream.KeyValue

	// EraseCopies erases what copies of the bucket's stream hold at a sequence, before the bucket forgets it too. Nil means that there
	// are none, or none that keep what was overwritten.
	EraseCopies func(ctx context.Context, sequence uint64) error

	mu sync.Mutex
	// seen is a sequence of the bucket's stream up to which all entries are known.
	seen uint64
}

// OpenDirectory opens the directory in a bucket that exists.
func OpenDirectory(ctx context.Context, js jetstream.JetStream, bucket string) (*BucketDirectory, error) {
	kv, err := js.KeyValue(ctx, bucket)
	return &BucketDirectory{name: bucket, js: js, bucket: kv}, errors.Wrapf(err, "open the actor directory %s", bucket)
}

// Load gives every entry that was not erased.
func (d *BucketDirectory) Load(ctx context.Context) (map[string]Who, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	// Asked first: an entry that is made meanwhile may be missed, and then refuses the next Put.
	stream, err := d.js.Stream(ctx, "KV_"+d.name)
	if err != nil {
		return nil, errors.Wrap(err, "look at the actor directory")
	}
	w, err := d.bucket.WatchAll(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "watch the actor directory")
	}
	entries, last, err := readEntries(ctx, w)
	if err == nil {
		d.seen = max(stream.CachedInfo().State.LastSeq, last)
	}
	return entries, errors.CombineErrors(err, errors.Wrap(w.Stop(), "stop watching the actor directory"))
}

// readEntries gives the entries that stand, and the sequence of the last one.
func readEntries(ctx context.Context, w jetstream.KeyWatcher) (map[string]Who, uint64, error) {
	entries, last := map[string]Who{}, uint64(0)
	for {
		select {
		case <-ctx.Done():
			return nil, 0, errors.Wrap(ctx.Err(), "read the actor directory")
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return nil, 0, errors.New("read the actor directory: the watch ended")
			case e == nil: // all that stood when the watch began has come
				return entries, last, nil
			}
			last = e.Revision()
			if e.Operation() != jetstream.KeyValuePut {
				continue
			}
			who, err := DecodeWho(e.Value())
			if err != nil {
				return nil, 0, errors.Wrapf(err, "actor %s", e.Key())
			}
			if who.Name != "" {
				entries[e.Key()] = who
			}
		}
	}
}

// Erase implements [Directory]. What the entry held is overwritten on the disk, and then replaced by an empty entry. Between the two
// the process may die: the name is gone then, and so is the entry.
func (d *BucketDirectory) Erase(ctx context.Context, id string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	failed := func(err error) error { return errors.Wrapf(err, "erase actor %s", id) }
	stream, err := d.js.Stream(ctx, "KV_"+d.name)
	if err != nil {
		return failed(err)
	}
	subject := "$KV." + d.name + "." + es.EscapeToken(id)
	m, err := stream.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return failed(errors.Mark(err, es.ErrNotFound))
	}
	if err != nil {
		return failed(err)
	}
	if who, err := DecodeWho(m.Data); err == nil && who == (Who{}) {
		return nil
	}
	if d.EraseCopies != nil {
		if err := d.EraseCopies(ctx, m.Sequence); err != nil {
			return failed(errors.Wrap(err, "copies"))
		}
	}
	if err := stream.SecureDeleteMsg(ctx, m.Sequence); err != nil {
		return failed(err)
	}
	ack, err := d.js.Publish(ctx, subject, []byte("{}"))
	if err != nil {
		return failed(err)
	}
	if ack.Sequence == d.seen+1 {
		d.seen = ack.Sequence
	}
	return nil
}

// Follow takes out of the actors whoever another process has erased, until the context ends, which is its only end without an
// error.
func (d *BucketDirectory) Follow(ctx context.Context, a *Actors) error {
	d.mu.Lock()
	seen := d.seen
	d.mu.Unlock()
	w, err := d.bucket.WatchAll(ctx, jetstream.ResumeFromRevision(seen+1))
	if err != nil {
		return errors.Wrap(err, "follow the actor directory")
	}
	for {
		select {
		case <-ctx.Done():
			if !d.js.Conn().IsConnected() {
				return nil // the server would be waited for in vain; its consumer ends by itself
			}
			if err := w.Stop(); err != nil && d.js.Conn().IsConnected() && !errors.IsAny(err, nats.ErrConnectionClosed, nats.ErrBadSubscription, nats.ErrConsumerNotFound) {
				return errors.Wrap(err, "stop following the actor directory")
			}
			return nil
		case e, ok := <-w.Updates():
			switch {
			case !ok && ctx.Err() != nil:
				return nil
			case !ok:
				return errors.New("follow the actor directory: the watch ended")
			case e == nil:
				continue
			}
			if who, err := DecodeWho(e.Value()); err == nil && who.Name != "" {
				continue
			}
			a.mu.Lock()
			a.drop(e.Key())
			a.mu.Unlock()
		}
	}
}

// Put stores a new entry. It gives errors marked [ErrDirectoryChanged], also when an earlier Put whose answer was lost is what
// has changed it.
func (d *BucketDirectory) Put(ctx context.Context, id string, who Who) error {
	value, err := EncodeWho(who)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	m := nats.NewMsg("$KV." + d.name + "." + id)
	m.Data = value
	ack, err := d.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequence(d.seen))
	if isConflict(err) {
		err = errors.Mark(err, ErrDirectoryChanged)
	}
	if err != nil {
		return errors.Wrapf(err, "create actor %s", id)
	}
	d.seen = ack.Sequence
	return nil
}

package backup

import (
	"context"
	"iter"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/audit/proof"
	"catenary/es"
	"catenary/es/natsstore"
	"catenary/internal/topology"
)

// Chunk is a compressed piece of the events.
type Chunk struct {
	First, Last uint64
	Data        []byte
}

// Source gives what is backed up. All methods give errors marked [es.ErrUnavailable] when it can't be reached; what was asked for may be
// asked again.
type Source interface {
	// Tail gives the last event's sequence.
	Tail(ctx context.Context) (uint64, error)
	// Events gives events after one, up to a last one, in order and at least one chunk; a window at a time.
	Events(ctx context.Context, after, last uint64, take func(Chunk) error) error
	// Checkpoints gives all signed checkpoints, oldest first.
	Checkpoints(ctx context.Context) iter.Seq2[string, error]
	// Actors gives the directory of actors.
	Actors(ctx context.Context) iter.Seq2[Actor, error]
	// Waiting gives the commands that wait: all that were taken to be kept before it was called, but those that are done.
	Waiting(ctx context.Context) iter.Seq2[Waiting, error]
}

// Ledger is the source itself, over a connection in the ledger's account.
type Ledger struct {
	nc    *nats.Conn
	js    jetstream.JetStream
	store es.Store
}

var _ Source = (*Ledger)(nil)

// NewLedger gives the source of a chain whose event stream is open.
func NewLedger(nc *nats.Conn, store es.Store) (*Ledger, error) {
	js, err := jetstream.New(nc)
	return &Ledger{nc: nc, js: js, store: store}, errors.Wrap(err, "the source of backups")
}

// Tail implements [Source].
func (l *Ledger) Tail(ctx context.Context) (uint64, error) { return l.store.Tail(ctx) }

// Events implements [Source].
func (l *Ledger) Events(ctx context.Context, after, last uint64, take func(Chunk) error) error {
	p, err := newPacker()
	if err != nil {
		return err
	}
	next, chunks := Chunk{First: after + 1}, 0
	hand := func() error {
		if next.Data = p.chunk(); next.Data == nil {
			return nil
		}
		chunks++
		handed := next
		next = Chunk{First: next.Last + 1}
		return take(handed)
	}
	for m, err := range l.store.Read(ctx, after) {
		if err != nil {
			return err
		}
		if m.Sequence > last {
			break
		}
		full, err := p.add(lineOf(m))
		if err != nil {
			return err
		}
		next.Last = m.Sequence
		if full {
			if err := hand(); err != nil {
				return err
			}
			if chunks == windowChunks {
				return nil
			}
		}
	}
	return hand()
}

// Checkpoints implements [Source].
func (l *Ledger) Checkpoints(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		kept, err := proof.OpenCheckpoints(ctx, l.nc)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return // no projector has run yet
		}
		if err != nil {
			yield("", err)
			return
		}
		for k, err := range kept.After(ctx, 0) {
			if !yield(string(k.Signed), err) || err != nil {
				return
			}
		}
	}
}

// Waiting implements [Source]. What is put from one stream into the other meanwhile is in one of them when that is read, since what is parked comes
// before the inbox, and what was parked since then after it.
func (l *Ledger) Waiting(ctx context.Context) iter.Seq2[Waiting, error] {
	return func(yield func(Waiting, error) bool) {
		passed := map[string]uint64{}
		for _, name := range []string{topology.ParkedStream, topology.InboxStream, topology.ParkedStream} {
			for m, err := range l.messages(ctx, name, passed[name]) {
				if err != nil {
					yield(Waiting{}, err)
					return
				}
				passed[name] = m.Sequence
				if !yield(Waiting{Stream: name, Subject: m.Subject, Header: ours(m.Header), Body: m.Data}, nil) {
					return
				}
			}
		}
	}
}

// ours gives the headers but those that told the server under which conditions to store a message: they hold for the place it had.
func ours(h nats.Header) map[string][]string {
	kept := map[string][]string{}
	for name, values := range h {
		if !strings.HasPrefix(name, "Nats-") {
			kept[name] = values
		}
	}
	return kept
}

// messages gives what stands in a stream after a message. It makes no consumer: a work queue has one only.
func (l *Ledger) messages(ctx context.Context, name string, after uint64) iter.Seq2[*jetstream.RawStreamMsg, error] {
	return func(yield func(*jetstream.RawStreamMsg, error) bool) {
		stream, err := l.js.Stream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return // no writer has run yet
		}
		for err == nil {
			var m *jetstream.RawStreamMsg
			m, err = stream.GetMsg(ctx, after+1, jetstream.WithGetMsgSubject(">"))
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				return
			}
			if err == nil {
				after = m.Sequence
				if !yield(m, nil) {
					return
				}
			}
		}
		yield(nil, natsstore.ReadError(errors.Wrapf(err, "read what waits in stream %s", name)))
	}
}

// Actors implements [Source].
func (l *Ledger) Actors(ctx context.Context) iter.Seq2[Actor, error] {
	return func(yield func(Actor, error) bool) {
		kv, err := l.js.KeyValue(ctx, topology.BucketActors)
		if errors.Is(err, jetstream.ErrBucketNotFound) {
			return // no writer has run yet
		}
		var watch jetstream.KeyWatcher
		if err == nil {
			watch, err = kv.WatchAll(ctx)
		}
		if err != nil {
			yield(Actor{}, natsstore.ReadError(errors.Wrap(err, "read the directory of actors")))
			return
		}
		defer func() { _ = watch.Stop() }() // its consumer goes by itself when the server can't be told
		for {
			select {
			case <-ctx.Done():
				yield(Actor{}, errors.Mark(errors.Wrap(ctx.Err(), "read the directory of actors"), es.ErrUnavailable))
				return
			case e, ok := <-watch.Updates():
				switch {
				case !ok:
					yield(Actor{}, errors.Mark(errors.New("read the directory of actors: the watch ended"), es.ErrUnavailable))
					return
				case e == nil:
					return // all that stood when the watch began has come
				case e.Operation() != jetstream.KeyValuePut:
					continue
				case !yield(Actor{Key: e.Key(), Value: e.Value()}, nil):
					return
				}
			}
		}
	}
}

package natsstore

import (
	"context"
	"encoding/hex"
	"strconv"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
)

// guard is what the server holds an append against: it is stored only if the stream ends with this event.
//
// The sequence alone counts events, it does not know them: when an append in flight fails and a rival's of the same length
// takes its place, the next one in flight fits again. So the sequence is enough only after an event that is known to stand;
// after one that is still in flight the server also compares the last message's id, which is made of its hash.
type guard struct {
	sequence uint64
	id       string // empty when the sequence is enough
}

// messageID gives an event's id for the server: 64 bits of its hash, which covers all that stands before it.
func messageID(h es.Hash) string { return hex.EncodeToString(h[:8]) }

func (g guard) set(h *serverHeaders) {
	h.set(jetstream.ExpectedLastSeqHeader, strconv.FormatUint(g.sequence, 10))
	if g.id != "" {
		h.set(jetstream.ExpectedLastMsgIDHeader, g.id)
	}
}

// standing is a head that is known to stand in the stream.
type standing struct {
	head       es.Head
	identified bool // its message carries an id for the server
	doubtful   bool // the server was away since: it may have lost its last events
}

// guardOf says how to guard an append, one message or a batch, so that it stands directly after a head or nowhere. The
// caller MUST have the turn.
//
// Only a single message on one server can be compared by id. The server takes no such comparison in a batch; with replicas
// each of them compares by itself, and one that has caught up from a copy has no last id, so that replicas would come to
// differ. These appends wait until the head is known to stand. A head that this store has not handed over is looked up.
//
// It gives errors marked [es.ErrConflict] when the head does not stand, without anything sent, and [es.ErrUnavailable].
func (s *Store) guardOf(ctx context.Context, after es.Head, messages int) (guard, error) {
	g := guard{sequence: after.Sequence}
	byID := messages == 1 && !s.replicated.Load()
	s.mu.Lock()
	before, stands := s.byEnd[after], s.stands
	s.mu.Unlock()
	switch {
	case before != nil && byID:
		g.id = messageID(after.Hash)
		return g, nil
	case before != nil:
		return g, s.await(ctx, before)
	case after == es.Head{}:
		return g, nil
	}
	if compared := byID && stands.identified; after != stands.head || stands.doubtful && !compared {
		var err error
		if stands, err = s.look(ctx, after); err != nil {
			return g, err
		}
	}
	if byID && stands.identified {
		g.id = messageID(after.Hash)
	}
	return g, nil
}

// await waits until an append in flight is stored.
func (s *Store) await(ctx context.Context, before *appending) error {
	select {
	case <-before.Done():
	case <-ctx.Done():
		return errors.Mark(errors.Wrapf(ctx.Err(), "not sent, since event %d is not answered", before.end.Sequence), es.ErrUnavailable)
	}
	if err := before.Err(); err != nil {
		return errors.Mark(errors.Newf("not sent, since event %d before it was not stored: %v", before.end.Sequence, err), es.ErrConflict)
	}
	return nil
}

// look asks the leader whether a head stands, and remembers that it does.
func (s *Store) look(ctx context.Context, head es.Head) (standing, error) {
	raw, err := s.get(ctx, head.Sequence)
	if err != nil && !errors.Is(err, es.ErrNotFound) {
		return standing{}, errors.Wrap(err, "not sent")
	}
	if err == nil {
		if hash, bad := fromRaw(raw).Hash(); bad == nil && hash == head.Hash {
			found := standing{head: head, identified: raw.Header.Get(jetstream.MsgIDHeader) == messageID(head.Hash)}
			s.mu.Lock()
			s.stands = found
			s.mu.Unlock()
			return found, nil
		}
	}
	return standing{}, errors.Mark(errors.Newf("not sent, since the event %d (%.16s…) that it follows is not in the stream", head.Sequence, head.Hash), es.ErrConflict)
}

// doubt makes the next append that the server can't compare by id look first.
func (s *Store) doubt() {
	s.mu.Lock()
	s.stands.doubtful = true
	s.mu.Unlock()
}

package run

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/audit/proof"
	"catenary/audit/store"
	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/natskv"
	"catenary/es/natsstore"
	"catenary/es/project"
	"catenary/events"
	"catenary/internal/streams"
	"catenary/internal/topology"
)

// ErrContradicted means that the event stream is not the one that its witnesses have seen: it ends earlier, or holds other events. Nothing
// is recorded over it.
var ErrContradicted = errors.New("the event stream is not the one that was recorded")

// AcceptedLoss is what somebody says who goes on although the stream has lost events.
type AcceptedLoss struct {
	// At is the last event that stands. It must be exactly that: what is accepted is what was looked at.
	At uint64
	// Reason says why; it is recorded.
	Reason string
}

// witnesses gives all that is known in the same server, outside the event stream, of how far it had come: the newest checkpoint, the newest
// value of each bucket, and the newest snapshot. They are read before the stream: what honestly came from it is never ahead of it.
func witnesses(ctx context.Context, nc *nats.Conn, snapshots dispatch.Snapshots) ([]events.Witness, error) {
	var all []events.Witness
	checkpoints, err := proof.OpenCheckpoints(ctx, nc)
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, err
	}
	if err == nil {
		signed, place, err := checkpoints.Newest(ctx)
		if err != nil {
			return nil, err
		}
		if place > 0 {
			c, err := proof.Peek(signed)
			if err != nil {
				return nil, errors.Wrapf(err, "checkpoint %d of stream %s", place, topology.CheckpointStream)
			}
			all = append(all, checkpointWitness(c))
		}
	}
	names, err := chainBuckets(ctx, nc)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		w, err := bucketWitness(ctx, nc, name)
		if err != nil {
			return nil, err
		}
		if w.Sequence > 0 {
			all = append(all, w)
		}
	}
	sequence, base, err := snapshots.Load(ctx, 0)
	switch {
	case errors.Is(err, es.ErrNotFound):
		return all, nil
	case err != nil:
		return nil, err
	}
	all = append(all, events.Witness{Name: "snapshot", Sequence: sequence})
	return all, errors.Wrap(base.Close(), "look at the newest snapshot")
}

// chainBuckets gives the buckets of views that there are, every generation of them.
func chainBuckets(ctx context.Context, nc *nats.Conn) ([]string, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, errors.Wrap(err, "list the buckets")
	}
	var buckets []string
	list := js.StreamNames(ctx)
	for name := range list.Name() {
		bucket, isBucket := strings.CutPrefix(name, topology.BucketStream(""))
		if _, _, ours := topology.GenerationOf(bucket); isBucket && ours {
			buckets = append(buckets, bucket)
		}
	}
	slices.Sort(buckets)
	return buckets, natsstore.ReadError(errors.Wrap(list.Err(), "list the buckets"))
}

func checkpointWitness(c proof.Checkpoint) events.Witness {
	return events.Witness{Name: "checkpoint of " + c.Origin, Sequence: c.Size, Hash: c.Head.String()}
}

// bucketWitness gives the event that the newest value of a bucket comes from; the zero witness when there is none, or when the value
// is not a projector's, which the view itself stops at.
func bucketWitness(ctx context.Context, nc *nats.Conn, name string) (events.Witness, error) {
	bucket, err := natskv.Open(ctx, nc, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return events.Witness{}, nil
	}
	if err != nil {
		return events.Witness{}, err
	}
	tail, err := bucket.Tail(ctx)
	switch {
	case errors.IsAny(err, es.ErrNotFound, project.ErrForeign):
		return events.Witness{}, nil
	case err != nil:
		return events.Witness{}, err
	}
	// A value that was written again to mend the bucket stands at the event that came last then.
	w := events.Witness{Name: events.BucketWitness(name), Sequence: tail.Meta.Position.Sequence}
	if tail.Meta.Source.Sequence == w.Sequence {
		w.Event = tail.Meta.Source.ID
	}
	return w, nil
}

// against says how a witness contradicts the stream, and nothing when it does not.
func against(ctx context.Context, store es.Store, tail uint64, w events.Witness) (string, error) {
	if w.Sequence > tail {
		return fmt.Sprintf("%s has seen event %d%s, but the stream ends at event %d", w.Name, w.Sequence, named(w), tail), nil
	}
	if w.Hash == "" && w.Event == "" {
		return "", nil
	}
	m, err := store.Get(ctx, w.Sequence)
	if errors.Is(err, es.ErrNotFound) {
		return fmt.Sprintf("%s has seen event %d%s, which is missing in the stream", w.Name, w.Sequence, named(w)), nil
	}
	if err != nil {
		return "", err
	}
	e, err := es.ReadEvent(m)
	if err != nil {
		return fmt.Sprintf("%s has seen event %d%s, but what stands there now is none: %v", w.Name, w.Sequence, named(w), err), nil
	}
	if w.Hash != "" && e.Hash.String() != w.Hash || w.Event != "" && e.ID != w.Event {
		return fmt.Sprintf("%s has seen event %d%s, but the stream's event %d has the hash %.16s… and the id %s", w.Name, w.Sequence, named(w), w.Sequence, e.Hash, e.ID), nil
	}
	return "", nil
}

func named(w events.Witness) string {
	switch {
	case w.Hash != "":
		return fmt.Sprintf(" with the hash %.16s…", w.Hash)
	case w.Event != "":
		return " with the id " + w.Event
	}
	return ""
}

// acceptedWitnesses gives the witnesses that were looked at when somebody accepted a loss. Their word counts no more.
func acceptedWitnesses(ctx context.Context, store es.Store, registry *es.Registry) (map[events.Witness]bool, error) {
	accepted := map[events.Witness]bool{}
	for m, err := range store.ReadAggregate(ctx, commands.StartWriter{}.Ref()) {
		if err != nil {
			return nil, err
		}
		e, err := registry.Decode(m)
		if err != nil {
			continue // what this program can't read accepts nothing here
		}
		if loss, ok := e.Data.(events.WriterLossAccepted); ok {
			for _, w := range loss.Witnesses {
				accepted[w] = true
			}
		}
	}
	return accepted, nil
}

// auditWitness gives what an audit store has seen. A file that can't be read bears witness to nothing: its own part deals with it.
func auditWitness(ctx context.Context, file string, log *slog.Logger) []events.Witness {
	if file == "" {
		return nil
	}
	seen, err := store.Seen(ctx, file)
	if err != nil {
		log.Warn("the audit store can't say how far the event stream had come", "file", file, "reason", err)
		return nil
	}
	if seen.Sequence == 0 {
		return nil
	}
	return []events.Witness{{Name: "audit store", Sequence: seen.Sequence, Hash: seen.Hash.String()}}
}

// askWitnesses compares the stream with its witnesses, which were asked before it, before anything is recorded over it. When they
// contradict it, and somebody has accepted just that, it gives what is to be recorded. It gives errors marked [ErrContradicted], and those
// of the stores.
func askWitnesses(ctx context.Context, nc *nats.Conn, store es.Store, all []events.Witness, accept *AcceptedLoss) (*events.WriterLossAccepted, error) {
	if err := AskForHoles(ctx, nc); err != nil {
		return nil, err
	}
	tail, err := store.Tail(ctx)
	if err != nil {
		return nil, err
	}
	var contradicting []events.Witness
	var how []string
	for _, w := range all {
		words, err := against(ctx, store, tail, w)
		if err != nil {
			return nil, err
		}
		if words != "" {
			contradicting, how = append(contradicting, w), append(how, words)
		}
	}
	if len(contradicting) == 0 {
		return nil, nil
	}
	accepted, err := acceptedWitnesses(ctx, store, events.Registry())
	if err != nil {
		return nil, err
	}
	loss := &events.WriterLossAccepted{Found: tail}
	var open []string
	for i, w := range contradicting {
		if !accepted[w] {
			loss.Witnesses, open = append(loss.Witnesses, w), append(open, how[i])
		}
	}
	if len(open) == 0 {
		return nil, nil
	}
	head, err := es.HeadAt(ctx, store, tail)
	if err != nil {
		return nil, err // a loss over a damaged stream can't be accepted
	}
	loss.FoundHash = head.Hash.String()
	if accept != nil && accept.At == tail && accept.Reason != "" {
		loss.Reason = accept.Reason
		return loss, nil
	}
	refused := errors.Mark(errors.Newf("%s: it ends at event %d with the hash %.16s…, but: %s; nothing is recorded over it", ErrContradicted, tail, head.Hash, strings.Join(open, "; ")), ErrContradicted)
	if accept != nil && accept.At != tail {
		return nil, errors.WithHintf(refused, "a loss was accepted at event %d, but the stream ends at event %d: look again at what is there", accept.At, tail)
	}
	return nil, errors.WithHintf(refused,
		"bring back the stream from a replica or a backup that has these events; if they are lost for good, start once with --accept-truncated-at %d --accept-reason TEXT, which puts the loss on record", tail)
}

// AskForHoles makes sure that no event is missing inside the stream: a writer that starts from a snapshot does not read what lies before
// it. It gives errors marked [es.ErrBrokenChain].
func AskForHoles(ctx context.Context, nc *nats.Conn) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return errors.Wrap(err, "look at the event stream")
	}
	stream, err := js.Stream(ctx, topology.EventStream)
	if err != nil {
		return natsstore.ReadError(errors.Wrap(err, "look at the event stream"))
	}
	state := stream.CachedInfo().State
	missing := streams.Missing(state)
	if missing == 0 {
		return nil
	}
	first := state.FirstSeq - 1 // when it is the beginning that is missing
	if info, err := stream.Info(ctx, jetstream.WithDeletedDetails(true)); err == nil && len(info.State.Deleted) > 0 {
		first = info.State.Deleted[0]
	}
	return errors.WithHint(errors.Mark(errors.Newf("the event stream has events 1 to %d, but %d of them are missing, such as event %d: its files were damaged", state.LastSeq, missing, first), es.ErrBrokenChain), errDamagedHint)
}

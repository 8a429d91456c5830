package backup

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/audit/proof"
	"catenary/es"
	"catenary/es/natskv"
	"catenary/es/natsstore"
	"catenary/internal/streams"
	"catenary/internal/topology"
)

const (
	// batchBytes bounds one append while events are restored.
	batchBytes = 4 << 20
	// settlePatience bounds the wait for an append that is not answered: a server whose disk is full never answers.
	settlePatience = time.Minute
	// setTimeout bounds a change of the stream.
	setTimeout = 30 * time.Second
)

// ErrNotEmpty means that a store holds something already.
var ErrNotEmpty = errors.New("the store is not empty")

// Target is where a backup is restored.
type Target struct {
	// Conn is a connection in the ledger's account.
	Conn *nats.Conn
	// Streams are the limits of what is made.
	Streams topology.Options
	// Artifacts restores the artifacts, and goes on where it was interrupted; nil when there are none.
	Artifacts func(context.Context) error
	// Progress may be nil.
	Progress func(Progress)
}

// Restore puts the record of a backup into an empty store, and reads it back: its events with their sequences, byte for byte, its checkpoints,
// the directory of actors, and the commands that waited. The files MUST have been checked. A restore of the same backup that was interrupted
// is gone on with. It gives errors marked [ErrNotEmpty], [ErrDamaged], [es.ErrFull], [es.ErrUnavailable] or [es.ErrUnclear].
func Restore(ctx context.Context, m Manifest, dir string, to Target) error {
	if to.Progress == nil {
		to.Progress = func(Progress) {}
	}
	if to.Artifacts == nil {
		to.Artifacts = func(context.Context) error { return nil }
	}
	js, err := jetstream.New(to.Conn)
	if err != nil {
		return errors.Wrap(err, "restore the backup")
	}
	r := &restoring{Target: to, js: js, manifest: m, dir: dir, mark: fmt.Sprintf("%d events, %.16s", m.Head.Sequence, m.Head.Hash)}
	if err := r.begin(ctx); err != nil {
		return err
	}
	if r.store, err = natsstore.Open(ctx, to.Conn, natsstore.Config{Restoring: r.mark}); err != nil {
		return err
	}
	defer r.store.Close()
	for _, step := range []func(context.Context) error{r.events, r.checkpoints, r.actors, r.commands, r.verify, to.Artifacts, r.end} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// restoring is a restore on its way.
type restoring struct {
	Target
	js       jetstream.JetStream
	manifest Manifest
	dir      string
	mark     string // what the event stream bears meanwhile
	store    *natsstore.Store
}

// begin makes sure that nothing is there but what an earlier try has left, and makes the event stream, marked.
func (r *restoring) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, setTimeout)
	defer cancel()
	want := topology.Events(r.Streams)
	if room := want.MaxBytes; r.manifest.EventBytes > room {
		return errors.WithHint(errors.Mark(errors.Newf("the backup's events need about %d bytes, the event stream's limit is %d", r.manifest.EventBytes, room), es.ErrFull), "raise --event-store-bytes, or give the server a larger store")
	}
	stream, err := r.js.Stream(ctx, want.Name)
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return natsstore.ReadError(errors.Wrap(err, "look at the event stream"))
	}
	resumed := err == nil && stream.CachedInfo().Config.Metadata[streams.RestoringKey] == r.mark
	if err := r.checkEmpty(ctx, resumed); err != nil || resumed {
		return err
	}
	want.Metadata = map[string]string{streams.RestoringKey: r.mark}
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		_, err = streams.Create(ctx, r.js, want)
	case err == nil:
		found := stream.CachedInfo().Config
		found.MaxBytes = max(found.MaxBytes, want.MaxBytes)
		err = r.update(ctx, found, r.mark)
	}
	return natsstore.EnsureError(errors.Wrap(err, "make the event stream"))
}

// checkEmpty makes sure that no stream of the account, which is the chain's alone, holds anything that what is restored does not fit to: values
// and marks of views, commands that wait, receipts of what is lost. When a restore is gone on with, what it has stored is there.
func (r *restoring) checkEmpty(ctx context.Context, resumed bool) error {
	restored := []string{topology.EventStream, topology.CheckpointStream, topology.BucketStream(topology.BucketActors), topology.ObjectsStream(topology.ObjectsArtifacts),
		topology.InboxStream, topology.ParkedStream}
	list := r.js.ListStreams(ctx)
	for info := range list.Info() {
		if info.State.LastSeq == 0 || resumed && slices.Contains(restored, info.Config.Name) {
			continue
		}
		return errors.WithHint(errors.Mark(errors.Newf("stream %s was written already, and holds %d messages", info.Config.Name, info.State.Msgs), ErrNotEmpty),
			"restore into a new store; to use this server, stop every process of the chain and remove all streams of its account with: nats stream rm")
	}
	return natsstore.ReadError(errors.Wrap(list.Err(), "look at what is in the store"))
}

// update sets the mark of the event stream; empty takes it off.
func (r *restoring) update(ctx context.Context, c jetstream.StreamConfig, mark string) error {
	ctx, cancel := context.WithTimeout(ctx, setTimeout)
	defer cancel()
	metadata := map[string]string{}
	for name, value := range c.Metadata {
		if name != streams.RestoringKey {
			metadata[name] = value
		}
	}
	if mark != "" {
		metadata[streams.RestoringKey] = mark
	}
	c.Metadata = metadata
	_, err := r.js.UpdateStream(ctx, c)
	return err
}

// events appends what is not there yet.
func (r *restoring) events(ctx context.Context) error {
	tail, err := r.store.Tail(ctx)
	if err != nil {
		return err
	}
	if tail > r.manifest.Head.Sequence {
		return errors.Mark(errors.Newf("the event stream ends at event %d, the backup at event %d", tail, r.manifest.Head.Sequence), ErrNotEmpty)
	}
	there, err := es.HeadAt(ctx, r.store, tail)
	if err != nil {
		return err
	}
	var head es.Head
	appended := batch{restoring: r, after: there}
	for _, f := range r.manifest.files(Events) {
		err := linesOf(r.dir, f, func(l line) (err error) {
			m := l.message()
			if head, err = head.Verify(m); err != nil {
				return errors.Mark(errors.Wrapf(err, "%s in the backup", f.Name), ErrDamaged)
			}
			switch {
			case m.Sequence > tail:
				return appended.add(ctx, m, head)
			case m.Sequence == tail && head != there:
				return errors.Mark(errors.Newf("the event stream's event %d has another hash than the backup's", tail), ErrNotEmpty)
			}
			return ctx.Err()
		})
		if err != nil {
			return err
		}
		appended.read += f.Bytes
	}
	if err := appended.flush(ctx); err != nil {
		return err
	}
	if head != r.manifest.Head {
		return errors.Mark(errors.Newf("the backup's events end at event %d with the hash %.16s…, its manifest says %d with %.16s…", head.Sequence, head.Hash, r.manifest.Head.Sequence, r.manifest.Head.Hash), ErrDamaged)
	}
	return nil
}

// batch is what is appended together.
type batch struct {
	*restoring
	// after is the last event in the store, head the last in the batch.
	after, head es.Head
	messages    []es.Message
	bytes       int
	read        int64 // bytes of the files before
}

// add takes an event in, which comes to a head, after appending what is there when it would become too much.
func (b *batch) add(ctx context.Context, m es.Message, head es.Head) error {
	size := m.Size()
	if len(b.messages) == es.MaxAppendMessages || len(b.messages) > 0 && b.bytes+size > batchBytes {
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	b.messages, b.bytes, b.head = append(b.messages, m), b.bytes+size, head
	return ctx.Err()
}

// flush appends what is there.
func (b *batch) flush(ctx context.Context) error {
	if len(b.messages) == 0 {
		return nil
	}
	if err := b.append(ctx, b.after, b.messages); err != nil {
		return err
	}
	b.after, b.messages, b.bytes = b.head, nil, 0
	b.Progress(Progress{Events: b.head.Sequence, All: b.manifest.Head.Sequence, Bytes: b.read})
	return nil
}

// append stores a batch, and finds out what became of it when no answer comes.
func (r *restoring) append(ctx context.Context, after es.Head, batch []es.Message) error {
	err := es.Wait(ctx, r.store.Append(ctx, after, batch))
	if errors.IsAny(err, es.ErrUnclear, es.ErrUnavailable, es.ErrConflict) && ctx.Err() == nil {
		bounded, cancel := context.WithTimeout(ctx, settlePatience)
		defer cancel()
		err = es.Settle(bounded, r.store, after, batch)
	}
	return errors.WithHint(errors.Wrapf(err, "restore the events after %d", after.Sequence), "make room if the disk is full, and start the server again if it does not answer")
}

// linesOf reads a file of the backup.
func linesOf[T any](dir string, f File, take func(T) error) error {
	in, closer, err := f.open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = closer.Close() }() // it was only read
	for v, err := range unpacked[T](in) {
		if err != nil {
			return errors.Mark(errors.Wrapf(err, "%s in the backup", f.Name), ErrDamaged)
		}
		if err := take(v); err != nil {
			return err
		}
	}
	return nil
}

// checkpoints stores those that are not there yet.
func (r *restoring) checkpoints(ctx context.Context) error {
	if err := proof.EnsureCheckpoints(ctx, r.Conn, r.Streams); err != nil {
		return err
	}
	kept, err := proof.OpenCheckpoints(ctx, r.Conn)
	if err != nil {
		return err
	}
	_, there, err := kept.Newest(ctx)
	if err != nil {
		return err
	}
	place := uint64(0)
	for _, f := range r.manifest.files(Checkpoints) {
		err := linesOf(r.dir, f, func(c checkpoint) error {
			place++
			if place <= there {
				return nil
			}
			return kept.Append(ctx, place-1, []byte(c.Signed))
		})
		if err != nil {
			return errors.Wrap(err, "restore the checkpoints")
		}
	}
	return nil
}

// actors stores the directory of actors.
func (r *restoring) actors(ctx context.Context) error {
	if err := natskv.Ensure(ctx, r.Conn, topology.Actors(r.Streams)); err != nil {
		return err
	}
	kv, err := r.js.KeyValue(ctx, topology.BucketActors)
	if err != nil {
		return natsstore.ReadError(errors.Wrap(err, "open the directory of actors"))
	}
	for _, f := range r.manifest.files(Actors) {
		err := linesOf(r.dir, f, func(a Actor) error {
			_, err := kv.Put(ctx, a.Key, a.Value)
			return natsstore.AnswerError(errors.Wrapf(err, "restore actor %s", a.Key))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// commands stores the commands that waited, behind those that are there from an earlier try.
func (r *restoring) commands(ctx context.Context) error {
	there, place := map[string]uint64{}, map[string]uint64{}
	for _, want := range []jetstream.StreamConfig{topology.Inbox(r.Streams), topology.Parked(r.Streams)} {
		stream, err := streams.Ensure(ctx, r.js, streams.Plan{Want: want, Keeps: "commands", Kind: natsstore.EnsureError})
		if err != nil {
			return err
		}
		there[want.Name] = stream.CachedInfo().State.LastSeq
	}
	for _, f := range r.manifest.files(Commands) {
		err := linesOf(r.dir, f, func(w Waiting) error {
			last, ok := there[w.Stream]
			if !ok {
				return errors.Mark(errors.Newf("%s in the backup: there is no stream %q for commands", f.Name, w.Stream), ErrDamaged)
			}
			if place[w.Stream]++; place[w.Stream] <= last {
				return nil
			}
			_, err := r.js.PublishMsg(ctx, &nats.Msg{Subject: w.Subject, Header: w.Header, Data: w.Body})
			return natsstore.AnswerError(errors.Wrapf(err, "restore a command that waits on %s", w.Subject))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// verify reads the events back, and holds the newest checkpoint against them.
func (r *restoring) verify(ctx context.Context) error {
	var head es.Head
	for m, err := range es.VerifyChain(&head, r.store.Read(ctx, 0)) {
		if err != nil {
			return errors.Wrap(err, "read back what was restored")
		}
		if m.Sequence%10_000 == 0 {
			r.Progress(Progress{Events: m.Sequence, All: r.manifest.Head.Sequence})
		}
	}
	if head != r.manifest.Head {
		return errors.Mark(errors.Newf("what was restored ends at event %d with the hash %.16s…, the backup at event %d with %.16s…", head.Sequence, head.Hash, r.manifest.Head.Sequence, r.manifest.Head.Hash), ErrDamaged)
	}
	kept, err := proof.OpenCheckpoints(ctx, r.Conn)
	if err != nil {
		return err
	}
	signed, place, err := kept.Newest(ctx)
	if err != nil || place == 0 {
		return err
	}
	c, err := proof.Peek(signed)
	if err != nil {
		return err
	}
	return errors.Wrap(proof.Fits(ctx, r.store, c), "the newest checkpoint of the backup")
}

// end takes the mark off: from now on a writer may begin.
func (r *restoring) end(ctx context.Context) error {
	stream, err := r.js.Stream(ctx, topology.EventStream)
	if err == nil {
		err = r.update(ctx, stream.CachedInfo().Config, "")
	}
	return natsstore.EnsureError(errors.Wrap(err, "end the restore"))
}

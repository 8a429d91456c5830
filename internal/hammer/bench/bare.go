package main

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"catenary/es"
	"catenary/internal/hammer"
	"catenary/internal/topology"
)

// The stream that bare nats.go writes to is configured as the event stream is.
const (
	bareStream  = "BARE"
	barePrefix  = "bare"
	bareTimeout = 30 * time.Second
	// samples is how many of our own messages bare nats.go sends again and again: the same subjects, headers and bodies.
	samples = 2_000
	// batchSize is how many messages a bare atomic batch has.
	batchSize = 500
)

// baseline is a way in which a program with nats.go alone appends with the guard of the last sequence.
type baseline string

const (
	// oneByOne is what any number of callers can do that guard each publish: who does not know the sequence that the one before
	// led to can't send.
	oneByOne baseline = "guarded publish, one after another"
	// pipelined is what one program can do that knows all sequences beforehand.
	pipelined baseline = "guarded publishes, pipelined"
	// batches is what one program can do that has 500 messages at hand all the time.
	batches baseline = "guarded atomic batches of 500"
)

// run appends in one of the ways, for so long.
func (b *bare) run(ctx context.Context, way baseline, d time.Duration) (figure, error) {
	send := map[baseline]func(context.Context, func() bool, *hammer.Latency) (int, error){
		oneByOne: b.oneByOne, pipelined: b.pipelined, batches: b.batches,
	}[way]
	watch, err := startWatch()
	if err != nil {
		return figure{}, err
	}
	var waited hammer.Latency
	n, err := send(ctx, func() bool { return watch.elapsed() < d }, &waited)
	if err != nil {
		return figure{}, errors.Wrapf(err, "bare nats.go, %s", way)
	}
	return watch.figure(n, &waited)
}

// bare is a program that appends with nats.go alone.
type bare struct {
	nc       *nats.Conn
	js       jetstream.JetStream
	messages []*nats.Msg
	tail     uint64
	next     int
	last     jetstream.PubAckFuture // of the last one published
}

// newBare makes the bare stream, and takes the newest messages of the event stream to send.
func newBare(ctx context.Context, nc *nats.Conn, o topology.Options) (*bare, error) {
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(4096), jetstream.WithPublishAsyncTimeout(bareTimeout), jetstream.WithDefaultTimeout(bareTimeout))
	if err != nil {
		return nil, errors.Wrap(err, "bare nats.go")
	}
	c := topology.Events(o)
	c.Name, c.Subjects = bareStream, []string{barePrefix + ".>"}
	stream, err := js.CreateOrUpdateStream(ctx, c)
	if err != nil {
		return nil, errors.Wrap(err, "make the bare stream")
	}
	return &bare{nc: nc, js: js, tail: stream.CachedInfo().State.LastSeq}, nil
}

// take makes the messages that stand in the event stream from a sequence on those that are sent.
func (b *bare) take(ctx context.Context, s es.Store, after uint64) error {
	b.messages, b.next = nil, 0
	for m, err := range s.Read(ctx, after) {
		if err != nil {
			return err
		}
		_, rest, _ := strings.Cut(m.Subject, ".")
		b.messages = append(b.messages, &nats.Msg{Subject: barePrefix + "." + rest, Header: m.Header, Data: m.Body})
		if len(b.messages) == samples {
			break
		}
	}
	if len(b.messages) == 0 {
		return errors.Newf("no event after %d: there is nothing for bare nats.go to send", after)
	}
	return nil
}

func (b *bare) message() *nats.Msg {
	b.next++
	return b.messages[b.next%len(b.messages)]
}

func (b *bare) oneByOne(ctx context.Context, more func() bool, waited *hammer.Latency) (n int, err error) {
	for ; more(); n++ {
		sent := time.Now()
		if _, err := b.js.PublishMsg(ctx, b.message(), jetstream.WithExpectLastSequence(b.tail)); err != nil {
			return n, err
		}
		waited.Add(time.Since(sent))
		b.tail++
	}
	return n, nil
}

// pipelined tells no latency: nobody waits for a single answer.
func (b *bare) pipelined(ctx context.Context, more func() bool, _ *hammer.Latency) (n int, err error) {
	for ; more(); n++ {
		if err := b.publish(); err != nil {
			return n, err
		}
	}
	return n, b.settled(ctx)
}

// publish sends the next message, to stand after the one before it, and waits only while too many are unanswered.
func (b *bare) publish() (err error) {
	b.last, err = b.js.PublishMsgAsync(b.message(), jetstream.WithExpectLastSequence(b.tail), jetstream.WithStallWait(bareTimeout))
	if err == nil {
		b.tail++
	}
	return err
}

// settled waits until all that was published stands. Each was guarded by the one before it: so the last one's sequence tells.
func (b *bare) settled(ctx context.Context) error {
	select {
	case <-b.js.PublishAsyncComplete():
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-b.last.Err():
		return err
	case ack := <-b.last.Ok():
		if ack.Sequence != b.tail {
			return errors.Newf("the last one is at %d, not at %d", ack.Sequence, b.tail)
		}
	}
	return nil
}

func (b *bare) batches(ctx context.Context, more func() bool, waited *hammer.Latency) (n int, err error) {
	for more() {
		sent := time.Now()
		if err := b.batch(ctx); err != nil {
			return n, err
		}
		waited.Add(time.Since(sent))
		n += batchSize
	}
	return n, nil
}

func (b *bare) batch(ctx context.Context) error {
	p, err := jetstreamext.NewBatchPublisher(b.js, jetstreamext.BatchFlowControl{AckFirst: false})
	if err != nil {
		return err
	}
	for i := range batchSize - 1 {
		var guard []jetstreamext.BatchMsgOpt
		if i == 0 {
			guard = append(guard, jetstreamext.WithBatchExpectLastSequence(b.tail))
		}
		if err := p.AddMsg(clone(b.message()), guard...); err != nil {
			return err
		}
	}
	ack, err := p.CommitMsg(ctx, clone(b.message()))
	if err != nil {
		return err
	}
	b.tail = ack.Sequence
	return nil
}

// clone copies a message whose headers get those of a batch, which must not stay on it.
func clone(m *nats.Msg) *nats.Msg {
	return &nats.Msg{Subject: m.Subject, Header: maps.Clone(m.Header), Data: m.Data}
}

package pull

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es/estest"
)

const patience = 30 * time.Second

// consumer gives a stream of so many messages, with a consumer of all of them.
func consumer(t *testing.T, nc *nats.Conn, messages, size int) jetstream.Consumer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(messages+1))
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range messages {
		m := nats.NewMsg("s." + strconv.Itoa(i%10))
		m.Header.Set("Number", strconv.Itoa(i+1))
		m.Data = make([]byte, size)
		if _, err := js.PublishMsgAsync(m); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-ctx.Done():
		t.Fatal("the stream was not filled")
	}
	c, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func from(t *testing.T, nc *nats.Conn, c jetstream.Consumer) *Messages {
	t.Helper()
	m, err := From(nc, "S", c.CachedInfo().Name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Stop)
	return m
}

// What is asked for runs out several times, by number and by size, and nothing is left out.
func TestMessagesComeInOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ messages, size int }{{3*most + 1, 10}, {300, 200 << 10}} {
		t.Run(fmt.Sprintf("%d of %d bytes", c.messages, c.size), func(t *testing.T) {
			t.Parallel()
			nc := estest.Server(t, false).Connect(t)
			m := from(t, nc, consumer(t, nc, c.messages, c.size))
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			before := time.Now().Add(-patience).UnixNano()
			for i := range uint64(c.messages) {
				got, err := m.Next(ctx)
				if err != nil {
					t.Fatalf("message %d: %v", i+1, err)
				}
				if got.Sequence != i+1 || got.Header.Get("Number") != strconv.FormatUint(i+1, 10) || len(got.Data) != c.size || got.Stored < before ||
					got.Subject != "s."+strconv.FormatUint(i%10, 10) {
					t.Fatalf("message %d: got %d on %s, number %s, of %d bytes, stored at %d", i+1, got.Sequence, got.Subject, got.Header.Get("Number"), len(got.Data), got.Stored)
				}
			}
			if n := nc.Stats().Reconnects; n != 0 {
				t.Errorf("the server dropped the connection %d times", n)
			}
		})
	}
}

func TestNextEnds(t *testing.T) {
	t.Parallel()
	cause := errors.New("enough")
	for name, c := range map[string]struct {
		end  func(*testing.T, *nats.Conn, jetstream.Consumer, context.CancelCauseFunc)
		want error
	}{
		"with the context": {func(_ *testing.T, _ *nats.Conn, _ jetstream.Consumer, cancel context.CancelCauseFunc) { cancel(cause) }, cause},
		"with the consumer": {func(t *testing.T, nc *nats.Conn, c jetstream.Consumer, _ context.CancelCauseFunc) {
			js, err := jetstream.New(nc)
			if err == nil {
				err = js.DeleteConsumer(t.Context(), "S", c.CachedInfo().Name)
			}
			if err != nil {
				t.Error(err)
			}
		}, ErrEnded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nc := estest.Server(t, false).Connect(t)
			gives := consumer(t, nc, 3, 10)
			m := from(t, nc, gives)
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			for range 3 {
				if _, err := m.Next(ctx); err != nil {
					t.Fatal(err)
				}
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				c.end(t, nc, gives, cancel)
			}()
			if got, err := m.Next(ctx); !errors.Is(err, c.want) {
				t.Errorf("got %v, %v, want an error marked %v", got, err, c.want)
			}
			<-ended
		})
	}
}

// A consumer that takes the question and says nothing is not waited for.
func TestSilence(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	asked, err := nc.SubscribeSync("$JS.API.CONSUMER.MSG.NEXT.S.c")
	if err != nil {
		t.Fatal(err)
	}
	m, err := From(nc, "S", "c")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Stop()
	if got, err := m.Next(t.Context()); !errors.Is(err, ErrSilent) {
		t.Errorf("got %v, %v, want silence", got, err)
	}
	if _, err := asked.NextMsg(patience); err != nil {
		t.Errorf("nothing was asked for: %v", err)
	}
}

// A message that was lost between the consumer and here is missed, and a server that goes too.
func TestLossIsNoticed(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	nc := bus.Connect(t)
	m := from(t, nc, consumer(t, nc, 10, 10))
	if _, err := m.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-m.came
	if got, err := m.Next(t.Context()); !errors.Is(err, ErrGap) {
		t.Errorf("got %v, %v after a message was lost, want a gap", got, err)
	}
	for m.taken = 3; m.taken < 10; {
		if _, err := m.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	bus.Stop()
	if got, err := m.Next(t.Context()); !errors.IsAny(err, ErrEnded, ErrSilent) {
		t.Errorf("got %v, %v from a server that is gone, want its end", got, err)
	}
}

func TestTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status, description, pending string
		asked                        int
		ends                         bool
	}{
		{"100", "Idle Heartbeat", "", 100, false},
		{"408", "Request Timeout", "40", 60, false},
		{"409", "Message Size Exceeds MaxBytes", "100", 0, false},
		{"409", "Batch Completed", "0", 100, false},
		{"408", "Request Timeout", "400", 0, false},
		{"408", "Request Timeout", "", 100, true},
		{"408", "Request Timeout", "-1", 100, true},
		{"409", "Consumer Deleted", "40", 100, true},
		{"409", "Server Shutdown", "40", 100, true},
		{"503", "", "", 100, true},
		{"", "", "", 100, true},
	} {
		m := &Messages{asked: 100}
		err := m.told(&nats.Msg{Header: nats.Header{headerStatus: {c.status}, headerDescription: {c.description}, headerPending: {c.pending}}})
		if errors.Is(err, ErrEnded) != c.ends || m.asked != c.asked {
			t.Errorf("%s %s (%s): %v, %d are asked for, want %d", c.status, c.description, c.pending, err, m.asked, c.asked)
		}
	}
}

func TestPlaceOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		subject string
		want    place
		ok      bool
	}{
		{"$JS.ACK.S.c.1.17.5.1700000000000000001.3", place{delivered: 5, sequence: 17, stored: 1700000000000000001}, true},
		{"$JS.ACK._.hash.S.c.1.17.5.1700000000000000001.3", place{delivered: 5, sequence: 17, stored: 1700000000000000001}, true},
		{"$JS.ACK.hub.hash.S.c.1.17.5.1700000000000000001.3.token", place{delivered: 5, sequence: 17, stored: 1700000000000000001}, true},
		{"$JS.ACK.S.c.1.17.5.1700000000000000001", place{}, false},
		{"$JS.ACK.hash.S.c.1.17.5.1700000000000000001.3", place{}, false},
		{"$JS.ACK.S.c.1.x.5.1700000000000000001.3", place{}, false},
		{"_INBOX.S.c.1.17.5.1700000000000000001.3", place{}, false},
		{"", place{}, false},
	} {
		if got, ok := placeOf(c.subject); got != c.want || ok != c.ok {
			t.Errorf("place of %q: %+v, %v", c.subject, got, ok)
		}
	}
}

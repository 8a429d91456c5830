package pull

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// most is how many messages are asked for ahead. From 2,000 on it is as fast as the server sends.
	most = 4000
	// mostBytes bounds one request's answer: two may be under way, and the server drops a client that lets 64 MiB pile up.
	mostBytes = 16 << 20
	// heartbeat is how often a consumer that has nothing to give says that it is there.
	heartbeat = 2 * time.Second
	// silence is how long nothing may come: two heartbeats are missing then.
	silence = 2 * heartbeat
	// expires is how long a question stands at the server.
	expires = 30 * time.Second
	// statuses is the room for what the server says beside the messages. When there is more of it unread, what is lost is noticed
	// as silence.
	statuses = 64
)

// Why a consumer gives no more.
var (
	// ErrGap means that messages were lost between the consumer and here.
	ErrGap = errors.New("messages were lost on the way")
	// ErrSilent means that the consumer, or the server, is not there any more.
	ErrSilent = errors.New("the consumer says nothing")
	// ErrEnded means that the server has ended the consumer; the error says why.
	ErrEnded = errors.New("the consumer has ended")
)

// Message is a message as the stream holds it.
type Message struct {
	Subject string
	// Header is the message's own: whoever takes it may change it.
	Header nats.Header
	Data   []byte
	// Sequence is the message's place in the stream.
	Sequence uint64
	// Stored is when the server took it, in nanoseconds since 1970.
	Stored int64
}

// Messages are what one consumer gives. One goroutine takes them.
type Messages struct {
	nc       *nats.Conn
	sub      *nats.Subscription
	came     chan *nats.Msg
	next     string // the subject that asks for more
	asked    int    // messages asked for that have not come
	taken    uint64 // the consumer's own count of the last message taken
	patience *time.Timer
}

// From takes what a consumer of a stream gives, from its first message on. Nobody else MUST ask that consumer. It gives the errors of
// the client.
func From(nc *nats.Conn, stream, consumer string) (*Messages, error) {
	m := &Messages{
		nc: nc, came: make(chan *nats.Msg, most+statuses),
		next: jetstream.DefaultAPIPrefix + "CONSUMER.MSG.NEXT." + stream + "." + consumer,
	}
	var err error
	if m.sub, err = nc.ChanSubscribe(nc.NewInbox(), m.came); err != nil {
		return nil, errors.Wrapf(err, "listen to consumer %s of stream %s", consumer, stream)
	}
	m.patience = time.NewTimer(silence)
	return m, nil
}

// Stop ends it. What has come and was not taken is dropped.
func (m *Messages) Stop() {
	m.patience.Stop()
	// A connection that is closed has no subscriptions.
	_ = m.sub.Unsubscribe()
}

// AtHand says whether something has come that was not taken, so that Next does not wait for it.
func (m *Messages) AtHand() bool { return len(m.came) > 0 }

// Next waits for the next message. It gives errors marked [ErrGap], [ErrSilent] or [ErrEnded], the context's cause, and those of
// the client; it gives no more after the first. A connection that is lost or closed is silent: who hears of that sooner ends the
// context.
func (m *Messages) Next(ctx context.Context) (Message, error) {
	for {
		if ctx.Err() != nil {
			return Message{}, context.Cause(ctx)
		}
		if err := m.ask(); err != nil {
			return Message{}, err
		}
		came, err := m.await(ctx)
		if err != nil {
			return Message{}, err
		}
		place, ok := placeOf(came.Reply)
		if !ok {
			if err := m.told(came); err != nil {
				return Message{}, err
			}
			continue
		}
		m.asked--
		if m.taken++; place.delivered != m.taken {
			return Message{}, errors.Mark(errors.Newf("message %d of the consumer came in the place of message %d", place.delivered, m.taken), ErrGap)
		}
		return Message{Subject: came.Subject, Header: came.Header, Data: came.Data, Sequence: place.sequence, Stored: place.stored}, nil
	}
}

// ask asks for more when half of what was asked for has come.
func (m *Messages) ask() error {
	if m.asked > most/2 {
		return nil
	}
	request := fmt.Appendf(nil, `{"batch":%d,"max_bytes":%d,"expires":%d,"idle_heartbeat":%d}`, most-m.asked, mostBytes, expires, heartbeat)
	if err := m.nc.PublishRequest(m.next, m.sub.Subject, request); err != nil {
		return errors.Wrap(err, "ask for more messages")
	}
	m.asked = most
	return nil
}

// await waits until something comes.
func (m *Messages) await(ctx context.Context) (*nats.Msg, error) {
	select {
	case came := <-m.came:
		return came, nil
	default:
	}
	m.patience.Reset(silence)
	select {
	case came := <-m.came:
		return came, nil
	case <-m.patience.C:
		return nil, errors.Wrapf(ErrSilent, "for %v", silence)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// What the server says beside the messages.
const (
	statusHere     = "100" // the consumer is there
	statusExpired  = "408" // a question's time is over
	statusConflict = "409" // the consumer is gone, or an answer is as large as it may be

	headerStatus      = "Status"
	headerDescription = "Description"
	headerPending     = "Nats-Pending-Messages"
)

// told takes in what the server says: that the consumer is there, or that it will not send all that was asked for.
func (m *Messages) told(came *nats.Msg) error {
	status, description := came.Header.Get(headerStatus), came.Header.Get(headerDescription)
	over := status == statusExpired || status == statusConflict && (strings.EqualFold(description, "Message Size Exceeds MaxBytes") || strings.EqualFold(description, "Batch Completed"))
	switch {
	case status == statusHere:
		return nil
	case !over:
		return errors.Mark(errors.Newf("the server says %q (status %q)", description, status), ErrEnded)
	}
	rest, err := strconv.Atoi(came.Header.Get(headerPending))
	if err != nil || rest < 0 {
		return errors.Mark(errors.Newf("the server says %q and not how many messages it leaves out", description), ErrEnded)
	}
	m.asked = max(m.asked-rest, 0)
	return nil
}

// place is where a message stands.
type place struct {
	delivered, sequence uint64
	stored              int64
}

// ackPrefix begins the subject that a message of a consumer is acknowledged on. The rest says what was delivered.
const ackPrefix = "$JS.ACK."

// placeOf reads the subject that a message is acknowledged on, and says whether it is one:
//
//	$JS.ACK.<stream>.<consumer>.<tries>.<sequence>.<delivered>.<stored>.<pending>
//	$JS.ACK.<domain>.<account>.<stream>.<consumer>.<tries>.<sequence>.<delivered>.<stored>.<pending>[.<token>]
func placeOf(subject string) (place, bool) {
	rest, ok := strings.CutPrefix(subject, ackPrefix)
	if !ok {
		return place{}, false
	}
	skip := 3
	if tokens := strings.Count(rest, ".") + 1; tokens >= 9 {
		skip = 5
	} else if tokens != 7 {
		return place{}, false
	}
	for range skip {
		_, rest, _ = strings.Cut(rest, ".")
	}
	var numbers [3]uint64
	for i := range numbers {
		var token string
		token, rest, _ = strings.Cut(rest, ".")
		n, err := strconv.ParseUint(token, 10, 63)
		if err != nil {
			return place{}, false
		}
		numbers[i] = n
	}
	return place{sequence: numbers[0], delivered: numbers[1], stored: int64(numbers[2])}, true
}

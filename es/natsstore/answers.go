package natsstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// answers brings the server's answers to the appends that wait for them, on one subscription. It is to the store what the
// client's own asynchronous publisher would be, at half of the cost: all appends wait equally long, so one timer serves
// them, and nobody waits but the append itself.
type answers struct {
	nc      *nats.Conn
	stream  string
	inbox   string
	timeout time.Duration
	// plain is how the confirmation of a single message begins; its sequence follows. Nearly all answers are such.
	plain []byte
	// done takes what an append has come to: stored, or the server's refusal, or why there is no answer.
	done func(*appending, error)
	sub  *nats.Subscription

	mu      sync.Mutex
	waiting map[uint64]*appending
	// All numbers below oldest are answered; next is the next append's.
	oldest, next uint64
	timer        *time.Timer
	closed       error // why no more is taken
}

func newAnswers(nc *nats.Conn, stream string, timeout time.Duration, done func(*appending, error)) (*answers, error) {
	w := &answers{
		nc: nc, stream: stream, inbox: nc.NewInbox() + ".", timeout: timeout, plain: fmt.Appendf(nil, `{"stream":%q,"seq":`, stream), done: done,
		waiting: map[uint64]*appending{},
	}
	sub, err := nc.Subscribe(w.inbox+"*", w.take)
	w.sub = sub
	return w, err
}

// expect gives the subject that the answer to an append comes to. It gives an error once the answers are closed.
func (w *answers) expect(a *appending) (string, error) {
	a.deadline, a.connection = time.Now().Add(w.timeout), w.connection()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed != nil {
		return "", w.closed
	}
	number := w.next
	w.next++
	w.waiting[number] = a
	if w.timer == nil {
		w.timer = time.AfterFunc(w.timeout, w.expire)
	}
	return w.inbox + strconv.FormatUint(number, 10), nil
}

// forget gives up the append whose answer comes to a subject, and says whether it still waited.
func (w *answers) forget(subject string) *appending {
	number, err := strconv.ParseUint(strings.TrimPrefix(subject, w.inbox), 10, 64)
	if err != nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.waiting[number]
	delete(w.waiting, number)
	for w.oldest < w.next && w.waiting[w.oldest] == nil {
		w.oldest++
	}
	return a
}

// take takes an answer in. One whose append is given up already is dropped. A confirmation of a message that was sent again,
// and stood already, is as good as the first when it names the right place: the message's id covers its content and all
// before it.
func (w *answers) take(m *nats.Msg) {
	a := w.forget(m.Subject)
	if a == nil {
		return
	}
	if sequence, ok := w.confirmed(m.Data); ok && sequence == a.end.Sequence {
		w.done(a, nil)
		return
	}
	ack, err := readAnswer(m)
	if err == nil && (ack.Sequence != a.end.Sequence || ack.Stream != w.stream) {
		err = errors.Newf("the answer names event %d of stream %s", ack.Sequence, ack.Stream)
	}
	w.done(a, err)
}

// confirmed reads the confirmation of a single message, at a tenth of what any other answer takes.
func (w *answers) confirmed(data []byte) (uint64, bool) {
	rest, ok := bytes.CutPrefix(data, w.plain)
	if !ok {
		return 0, false
	}
	digits, ok := bytes.CutSuffix(rest, []byte("}"))
	if !ok {
		return 0, false
	}
	sequence, err := strconv.ParseUint(string(digits), 10, 64)
	return sequence, err == nil
}

// readAnswer gives the server's confirmation, or a *[jetstream.APIError] or [nats.ErrNoResponders].
func readAnswer(m *nats.Msg) (*jetstream.PubAck, error) {
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return nil, nats.ErrNoResponders
	}
	var answer struct {
		*jetstream.PubAck
		Error *jetstream.APIError `json:"error"`
	}
	switch err := json.Unmarshal(m.Data, &answer); {
	case err != nil:
		return nil, err
	case answer.Error != nil:
		return nil, answer.Error
	case answer.PubAck == nil:
		return nil, jetstream.ErrInvalidJSAck
	}
	return answer.PubAck, nil
}

// expire gives up what has waited long enough.
func (w *answers) expire() {
	var over []*appending
	now := time.Now()
	w.mu.Lock()
	w.timer = nil
	for ; w.oldest < w.next; w.oldest++ {
		a := w.waiting[w.oldest]
		if a == nil {
			continue
		}
		if wait := a.deadline.Sub(now); wait > 0 {
			w.timer = time.AfterFunc(wait, w.expire)
			break
		}
		delete(w.waiting, w.oldest)
		over = append(over, a)
	}
	w.mu.Unlock()
	for _, a := range over {
		w.done(a, jetstream.ErrAsyncPublishTimeout)
	}
}

// connection counts the connections to the bus: the number of the present one, or of the next while there is none. What is
// sent while there is none is kept by the client for the next.
func (w *answers) connection() uint64 {
	n := w.nc.Stats().Reconnects
	if !w.nc.IsConnected() {
		n++
	}
	return n
}

// disconnected gives up the appends that went out on connections which are gone: the answers to them went there too.
func (w *answers) disconnected() {
	now := w.connection()
	w.giveUpIf(func(a *appending) bool { return a.connection < now }, nats.ErrDisconnected)
}

// giveUp ends the waiting of all appends.
func (w *answers) giveUp(cause error) {
	w.giveUpIf(func(*appending) bool { return true }, cause)
}

func (w *answers) giveUpIf(lost func(*appending) bool, cause error) {
	var over []*appending
	w.mu.Lock()
	for number := w.oldest; number < w.next; number++ {
		if a := w.waiting[number]; a != nil && lost(a) {
			delete(w.waiting, number)
			over = append(over, a)
		}
	}
	w.mu.Unlock()
	for _, a := range over {
		w.done(a, cause)
	}
}

// close takes no more appends, and gives up those that wait.
func (w *answers) close(cause error) {
	w.mu.Lock()
	w.closed = cause
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	// The connection may be closed already, and the subscription with it.
	_ = w.sub.Unsubscribe()
	w.giveUp(cause)
}

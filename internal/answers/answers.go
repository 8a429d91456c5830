package answers

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Answers are the answers of one stream. T is what waits for one. They are safe for concurrent use.
type Answers[T any] struct {
	nc      *nats.Conn
	inbox   string
	timeout time.Duration
	reader  reader
	done    func(T, Answer, error)
	sub     *nats.Subscription

	mu      sync.Mutex
	waiting map[uint64]waiting[T]
	// All numbers below oldest are answered; next is the next one's.
	oldest, next uint64
	timer        *time.Timer
	closed       error // why no more is taken
}

// waiting is one that waits.
type waiting[T any] struct {
	who        T
	deadline   time.Time
	connection uint64 // which connection to the bus it went out on
	why        error  // what the server has said of it before the answer
}

// Listen begins to take the answers to what is published into a stream. Done is told what each has come to: the server's answer;
// its refusal, a [*jetstream.APIError]; or why there is none, an error of the client. It MUST not block. The answers MUST be closed, or
// the connection.
func Listen[T any](nc *nats.Conn, stream string, timeout time.Duration, done func(T, Answer, error)) (*Answers[T], error) {
	w := &Answers[T]{nc: nc, inbox: nc.NewInbox() + ".", timeout: timeout, reader: newReader(stream), done: done, waiting: map[uint64]waiting[T]{}}
	sub, err := nc.Subscribe(w.inbox+">", w.take)
	w.sub = sub
	return w, err
}

// Expect gives the subject that an answer comes to. Tokens may be added to it. It gives an error once the answers are closed.
func (w *Answers[T]) Expect(who T) (string, error) {
	is := waiting[T]{who: who, deadline: time.Now().Add(w.timeout), connection: w.connection()}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed != nil {
		return "", w.closed
	}
	number := w.next
	w.next++
	w.waiting[number] = is
	if w.timer == nil {
		w.timer = time.AfterFunc(w.timeout, w.expire)
	}
	return w.inbox + strconv.FormatUint(number, 10), nil
}

// Forget gives up the answer that comes to a subject, and says whether it was still waited for: nobody is told of it then.
func (w *Answers[T]) Forget(subject string) bool {
	number, ok := w.numberOf(subject)
	if !ok {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok = w.drop(number)
	return ok
}

func (w *Answers[T]) numberOf(subject string) (uint64, bool) {
	digits, _, _ := strings.Cut(strings.TrimPrefix(subject, w.inbox), ".")
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, err == nil
}

// drop takes out one that waits. The lock is held.
func (w *Answers[T]) drop(number uint64) (waiting[T], bool) {
	is, ok := w.waiting[number]
	delete(w.waiting, number)
	for w.oldest < w.next {
		if _, waits := w.waiting[w.oldest]; waits {
			break
		}
		w.oldest++
	}
	return is, ok
}

// take takes an answer in. One that is given up already is dropped. What the server says before the answer is kept for it.
func (w *Answers[T]) take(m *nats.Msg) {
	number, ok := w.numberOf(m.Subject)
	if !ok {
		return
	}
	answer, over, err := w.reader.read(m)
	w.mu.Lock()
	if !over {
		if is, waits := w.waiting[number]; waits && err != nil {
			is.why = err
			w.waiting[number] = is
		}
		w.mu.Unlock()
		return
	}
	is, waits := w.drop(number)
	w.mu.Unlock()
	if waits {
		answer.Why = is.why
		w.done(is.who, answer, err)
	}
}

// expire gives up what has waited long enough.
func (w *Answers[T]) expire() {
	var over []T
	now := time.Now()
	w.mu.Lock()
	w.timer = nil
	for ; w.oldest < w.next; w.oldest++ {
		is, waits := w.waiting[w.oldest]
		if !waits {
			continue
		}
		if wait := is.deadline.Sub(now); wait > 0 {
			w.timer = time.AfterFunc(wait, w.expire)
			break
		}
		delete(w.waiting, w.oldest)
		over = append(over, is.who)
	}
	w.mu.Unlock()
	w.tell(over, jetstream.ErrAsyncPublishTimeout)
}

func (w *Answers[T]) tell(whom []T, cause error) {
	for _, who := range whom {
		w.done(who, Answer{}, cause)
	}
}

// connection counts the connections to the bus: the number of the present one, or of the next while there is none. What is
// sent while there is none is kept by the client for the next.
func (w *Answers[T]) connection() uint64 {
	n := w.nc.Stats().Reconnects
	if !w.nc.IsConnected() {
		n++
	}
	return n
}

// Disconnected gives up what went out on connections that are gone.
func (w *Answers[T]) Disconnected() {
	now := w.connection()
	w.giveUpIf(func(is waiting[T]) bool { return is.connection < now }, nats.ErrDisconnected)
}

// GiveUp gives up all.
func (w *Answers[T]) GiveUp(cause error) {
	w.giveUpIf(func(waiting[T]) bool { return true }, cause)
}

func (w *Answers[T]) giveUpIf(lost func(waiting[T]) bool, cause error) {
	var over []T
	w.mu.Lock()
	for number := w.oldest; number < w.next; number++ {
		if is, waits := w.waiting[number]; waits && lost(is) {
			delete(w.waiting, number)
			over = append(over, is.who)
		}
	}
	w.mu.Unlock()
	w.tell(over, cause)
}

// Close takes no more, and gives up those that wait.
func (w *Answers[T]) Close(cause error) {
	w.mu.Lock()
	w.closed = cause
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	// The connection may be closed already, and the subscription with it.
	_ = w.sub.Unsubscribe()
	w.GiveUp(cause)
}

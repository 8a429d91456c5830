package answers

import (
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es/estest"
)

func TestMain(m *testing.M) { estest.VerifyTestMain(m) }

// told is what one that waits was told.
type told struct {
	who    string
	answer Answer
	err    error
}

// listen begins to take the answers of stream S, and gives what is told.
func listen(t *testing.T, nc *nats.Conn, timeout time.Duration) (*Answers[string], <-chan told) {
	t.Helper()
	out := make(chan told, 100)
	w, err := Listen(nc, "S", timeout, func(who string, a Answer, err error) { out <- told{who, a, err} })
	if err != nil {
		t.Fatal(err)
	}
	return w, out
}

func expect(t *testing.T, w *Answers[string], who string) string {
	t.Helper()
	subject, err := w.Expect(who)
	if err != nil {
		t.Fatal(err)
	}
	return subject
}

func next(t *testing.T, out <-chan told) told {
	t.Helper()
	select {
	case got := <-out:
		return got
	case <-time.After(time.Minute):
		t.Fatal("nobody was told anything")
		return told{}
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	w, out := listen(t, nc, time.Minute)
	a, b, c := expect(t, w, "a"), expect(t, w, "b"), expect(t, w, "c")
	for _, m := range []struct{ subject, data string }{
		{b + ".batch.3", `{"type":"ack","seq":0,"msgs":500}`},
		{b + ".batch.3", `{"type":"err","seq":3,"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 9"}}`},
		{c, `{"stream":"S","seq":1}`},
		{c, `{"stream":"S","seq":2}`}, // once is enough
		{b + ".batch.3", `{"stream":"S","seq":8,"batch":"batch","count":2}`},
		{a, `{"stream":"S","seq":0,"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 9"}}`},
	} {
		if err := nc.Publish(m.subject, []byte(m.data)); err != nil {
			t.Fatal(err)
		}
	}
	if got := next(t, out); got.who != "c" || got.answer.Sequence != 1 || got.err != nil {
		t.Errorf("%+v", got)
	}
	var why *jetstream.APIError
	if got := next(t, out); got.who != "b" || got.answer.Count != 2 || got.err != nil || !errors.As(got.answer.Why, &why) {
		t.Errorf("%+v", got)
	}
	if got := next(t, out); got.who != "a" || !errors.As(got.err, &why) {
		t.Errorf("%+v", got)
	}
	forgotten := expect(t, w, "forgotten")
	if !w.Forget(forgotten) || w.Forget(forgotten) || w.Forget("elsewhere") {
		t.Error("it is not forgotten once")
	}
	last := expect(t, w, "last")
	if err := errors.CombineErrors(nc.Publish(forgotten, []byte(`{"stream":"S","seq":3}`)), nc.Publish(last, []byte(`{"stream":"S","seq":4}`))); err != nil {
		t.Fatal(err)
	}
	if got := next(t, out); got.who != "last" {
		t.Errorf("%+v was told after it was forgotten", got)
	}
	expect(t, w, "late")
	closed := errors.New("closed")
	w.Close(closed)
	if got := next(t, out); got.who != "late" || !errors.Is(got.err, closed) {
		t.Errorf("%+v", got)
	}
	if _, err := w.Expect("after the end"); !errors.Is(err, closed) {
		t.Errorf("after the end: %v", err)
	}
}

func TestAnswersThatDoNotCome(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	nc := bus.Connect(t)
	w, out := listen(t, nc, 50*time.Millisecond)
	for _, who := range []string{"a", "b"} {
		expect(t, w, who)
	}
	for range 2 {
		if got := next(t, out); !errors.Is(got.err, jetstream.ErrAsyncPublishTimeout) {
			t.Errorf("%+v", got)
		}
	}
	w, out = listen(t, nc, time.Minute)
	reconnected := nc.StatusChanged(nats.CONNECTED)
	expect(t, w, "gone")
	bus.Stop()
	bus.Start(t)
	<-reconnected
	expect(t, w, "there")
	w.Disconnected()
	if got := next(t, out); got.who != "gone" || !errors.Is(got.err, nats.ErrDisconnected) {
		t.Errorf("%+v", got)
	}
	w.GiveUp(nats.ErrConnectionClosed)
	if got := next(t, out); got.who != "there" || !errors.Is(got.err, nats.ErrConnectionClosed) {
		t.Errorf("%+v", got)
	}
}

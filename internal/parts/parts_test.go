package parts_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"catenary/es/estest"
	"catenary/internal/parts"
)

// question is what the tests ask.
type question struct {
	Count int `json:"count"`
}

// count answers with as many numbers as are asked for.
func count(_ context.Context, r *parts.Request) error {
	var q question
	if err := r.Read(&q); err != nil {
		return err
	}
	var numbers []int
	for n := range q.Count {
		numbers = append(numbers, n)
	}
	return parts.Each(r, numbers)
}

// TestOrder: all parts come, in the order in which they were sent, to each of many who ask at once.
func TestOrder(t *testing.T) {
	t.Parallel()
	s := serve(t, count)
	ended := make(chan error)
	for asks := range 8 {
		go func() {
			want := 0
			for n, err := range parts.Values[int](t.Context(), s.client, subject, question{Count: 100 * asks}) {
				if err == nil && n != want {
					err = errors.Newf("part %d has %d", want, n)
				}
				if err != nil {
					ended <- err
					return
				}
				want++
			}
			if want != 100*asks {
				ended <- errors.Newf("%d parts came of %d", want, 100*asks)
				return
			}
			ended <- nil
		}()
	}
	for range 8 {
		if err := await(t, ended); err != nil {
			t.Error(err)
		}
	}
}

// TestEnough: who has read enough gets no error and no further value, and asks again as before.
func TestEnough(t *testing.T) {
	t.Parallel()
	s := serve(t, count)
	for range 2 {
		var read []int
		for n, err := range parts.Values[int](t.Context(), s.client, subject, question{Count: 50}) {
			if err != nil {
				t.Fatal(err)
			}
			if read = append(read, n); len(read) == 3 {
				break
			}
		}
		if !slices.Equal(read, []int{0, 1, 2}) {
			t.Errorf("it read %v", read)
		}
	}
}

// TestOneValue: an answer of one part is its last one.
func TestOneValue(t *testing.T) {
	t.Parallel()
	s := serve(t, func(_ context.Context, r *parts.Request) error { return r.Value("this", true) })
	if answer, err := s.ask(t.Context()); err != nil || answer != "this" {
		t.Errorf("it gives %q, error %v", answer, err)
	}
}

// TestErrorsTravel: a handler's error is the last part, under the code that the service gives it, also after other parts.
func TestErrorsTravel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handler    parts.Handler
		body       string
		code, says string
	}{
		"of the handler":      {code: codeFailed, says: "it broke", handler: func(context.Context, *parts.Request) error { return errors.New("it broke") }},
		"after a part":        {code: codeFailed, says: "it broke", handler: failAfterPart},
		"an unknown field":    {code: codeRequest, says: "unknown field", body: `{"counts":1}`, handler: count},
		"no JSON":             {code: codeRequest, says: "the request's body", body: `{`, handler: count},
		"a header not there":  {code: codeRequest, says: "header Part", handler: number},
		"what can't be coded": {code: codeFailed, says: "encode the answer", handler: func(_ context.Context, r *parts.Request) error { return r.Value(func() {}, true) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, c.handler)
			translated := errors.New("translated")
			client := parts.NewClient(s.asking, nil, func(err error) error { return errors.Mark(err, translated) })
			m := nats.NewMsg(subject)
			m.Data = []byte(c.body)
			taken := 0
			err := client.Ask(t.Context(), m, func(*nats.Msg) error { taken++; return nil })
			var refused *parts.Refused
			if !errors.As(err, &refused) || refused.Code != c.code || !strings.Contains(refused.Text, c.says) {
				t.Errorf("got %+v, want the code %s and %q", err, c.code, c.says)
			}
			if !errors.Is(err, translated) || errors.Is(err, parts.ErrUnreachable) {
				t.Errorf("the client's user is not asked what %v means", err)
			}
			if want := map[string]int{"after a part": 1}[name]; taken != want {
				t.Errorf("%d parts are taken, want %d", taken, want)
			}
		})
	}
}

func failAfterPart(_ context.Context, r *parts.Request) error {
	if err := r.Value("a part", false); err != nil {
		return err
	}
	return errors.New("it broke")
}

func number(_ context.Context, r *parts.Request) error {
	n, err := r.Number("Part")
	if err != nil {
		return err
	}
	return r.Value(n, true)
}

// TestNumber reads a header.
func TestNumber(t *testing.T) {
	t.Parallel()
	s := serve(t, number)
	m := nats.NewMsg(subject)
	m.Header.Set("Part", "-7")
	if err := s.client.Ask(t.Context(), m, func(part *nats.Msg) error {
		if string(part.Data) != "-7" {
			t.Errorf("it has %q", part.Data)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// TestNothingAfterTheLast: whatever a handler sends or fails with after the last part, nobody gets.
func TestNothingAfterTheLast(t *testing.T) {
	t.Parallel()
	s := serve(t, func(_ context.Context, r *parts.Request) error {
		return errors.CombineErrors(errors.CombineErrors(r.Value("last", true), r.Value("more", false)), errors.New("too late"))
	})
	came := s.raw(t)
	if m := await(t, came); string(m.Data) != `"last"` || len(m.Header) > 0 {
		t.Errorf("first comes %q with %v", m.Data, m.Header)
	}
	if err := s.service.Stop(); err != nil { // the handler has ended
		t.Error(err)
	}
	if err := errors.CombineErrors(s.serving.Flush(), s.asking.Flush()); err != nil {
		t.Error(err)
	}
	if len(came) > 0 {
		t.Errorf("then comes %+v", <-came)
	}
}

// TestTakeFails: an error of who takes the parts ends the answer, untranslated.
func TestTakeFails(t *testing.T) {
	t.Parallel()
	s := serve(t, func(_ context.Context, r *parts.Request) error { return parts.Each(r, []string{"a", "b"}) })
	client := parts.NewClient(s.asking, nil, func(error) error { return errors.New("translated") })
	full, taken := errors.New("full"), 0
	err := client.Ask(t.Context(), nats.NewMsg(subject), func(*nats.Msg) error { taken++; return full })
	if !errors.Is(err, full) || taken != 1 {
		t.Errorf("got %v after %d parts", err, taken)
	}
	// What is no value of the type that is asked for is an error too.
	for _, err := range parts.Values[int](t.Context(), s.client, subject, nil) {
		if err == nil || !strings.Contains(err.Error(), "the answer on "+subject) {
			t.Errorf("a text as a number: %v", err)
		}
	}
}

// TestAlive: a request that takes long is said to be worked at, and the client reads no part out of that.
func TestAlive(t *testing.T) {
	t.Parallel()
	slow, asked := make(chan struct{}), make(chan struct{}, 2)
	s := serve(t, func(ctx context.Context, r *parts.Request) error {
		return r.Alive(ctx, func(context.Context) error {
			asked <- struct{}{}
			<-slow
			return r.Value("done", true)
		})
	})
	type answered struct {
		text string
		err  error
	}
	answers := make(chan answered, 1)
	go func() {
		text, err := s.ask(t.Context())
		answers <- answered{text, err}
	}()
	await(t, asked)
	came := s.raw(t)
	if sign := await(t, came); len(sign.Data) > 0 || len(sign.Header) != 1 {
		t.Errorf("the sign of life is %q with %v", sign.Data, sign.Header)
	}
	close(slow)
	if a := await(t, answers); a.err != nil || a.text != "done" {
		t.Errorf("the client gets %+v", a)
	}
}

// TestAliveEndsWithItsError: the error of the work is that of the answer.
func TestAliveEndsWithItsError(t *testing.T) {
	t.Parallel()
	s := serve(t, func(ctx context.Context, r *parts.Request) error {
		return r.Alive(ctx, func(context.Context) error { return errors.New("it broke") })
	})
	if _, err := s.ask(t.Context()); err == nil || !strings.Contains(err.Error(), "it broke") {
		t.Errorf("got %v", err)
	}
}

// TestBusy: what is more than the bound is told so at once, and is answered again when a slot is free.
func TestBusy(t *testing.T) {
	t.Parallel()
	s, asked, free := held(t, func(c *parts.Config) { c.Most = 1 })
	came := s.raw(t)
	await(t, asked)
	_, err := s.ask(t.Context())
	var refused *parts.Refused
	if !errors.As(err, &refused) || refused.Code != codeBusy || refused.Text != errBusy.Error() {
		t.Errorf("one more gets %v", err)
	}
	close(free)
	await(t, came)
	for refused != nil { // the slot is given back after the last part
		refused = nil
		if _, err = s.ask(t.Context()); !errors.As(err, &refused) && err != nil {
			t.Fatal(err)
		}
	}
}

// TestNotAdmitted: a request that must not be answered gets no answer, and the guard says why.
func TestNotAdmitted(t *testing.T) {
	t.Parallel()
	var handled atomic.Int64
	s := serve(t, func(_ context.Context, r *parts.Request) error {
		handled.Add(1)
		return r.Value("", true)
	}, func(c *parts.Config) {
		c.Admit = func(micro.Request) error { return errors.New("a stranger") }
	})
	ctx, forbid := context.WithCancelCause(t.Context())
	defer forbid(nil)
	denied, guarded := errors.New("denied"), make(chan string, 1)
	client := parts.NewClient(s.asking, func(asking context.Context, subjects ...string) (context.Context, context.CancelFunc) {
		guarded <- strings.Join(subjects, " ")
		return ctx, func() {}
	}, untranslated)
	ended := make(chan error, 1)
	go func() { ended <- client.For(t.Context(), subject, nil, new(string)) }()
	if on := await(t, guarded); on != subject {
		t.Errorf("it is guarded on %s", on)
	}
	s.log.Await(t, func() bool { return strings.Contains(s.log.String(), "a stranger") })
	forbid(denied)
	if err := await(t, ended); !errors.Is(err, denied) || errors.Is(err, parts.ErrUnreachable) {
		t.Errorf("got %v", err)
	}
	if handled.Load() > 0 {
		t.Error("it was handled")
	}
}

// TestCancelled: who does not wait any longer gets the context's error, and not that no answer comes.
func TestCancelled(t *testing.T) {
	t.Parallel()
	s, asked, free := held(t)
	defer close(free)
	ctx, cancel := context.WithCancel(t.Context())
	ended := s.begin(ctx)
	await(t, asked)
	cancel()
	if err := await(t, ended); !errors.Is(err, context.Canceled) || errors.Is(err, parts.ErrUnreachable) {
		t.Errorf("got %v", err)
	}
}

// TestConnectionLost: nobody waits for an answer that went with its connection.
func TestConnectionLost(t *testing.T) {
	t.Parallel()
	s, asked, free := held(t)
	defer close(free)
	ended := s.begin(t.Context())
	await(t, asked)
	s.bus.Stop()
	if err := await(t, ended); !errors.Is(err, parts.ErrUnreachable) || !strings.Contains(err.Error(), "lost") {
		t.Errorf("got %v", err)
	}
}

// TestStop ends what is at work, waits for it, and takes nothing more.
func TestStop(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 1)
	var over atomic.Bool
	s := serve(t, func(ctx context.Context, _ *parts.Request) error {
		asked <- struct{}{}
		<-ctx.Done()
		over.Store(true)
		return ctx.Err()
	})
	ended := s.begin(t.Context())
	await(t, asked)
	if err := s.service.Stop(); err != nil {
		t.Error(err)
	}
	if !over.Load() {
		t.Error("a handler is still at work")
	}
	var refused *parts.Refused
	if err := await(t, ended); !errors.As(err, &refused) || refused.Code != codeFailed {
		t.Errorf("who was waiting gets %v", err)
	}
	if _, err := s.ask(t.Context()); !errors.Is(err, parts.ErrUnreachable) || !strings.Contains(err.Error(), "nobody answers on "+subject) {
		t.Errorf("who asks afterwards gets %v", err)
	}
}

// TestStopWithoutConnection: a service whose connection is ending, or has ended, stops without an error.
func TestStopWithoutConnection(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*nats.Conn) error{
		"ending": (*nats.Conn).Drain,
		"ended":  func(nc *nats.Conn) error { nc.Close(); return nil },
	} {
		asked := make(chan struct{}, 1)
		s := serve(t, func(ctx context.Context, _ *parts.Request) error {
			asked <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		})
		s.raw(t)
		await(t, asked)
		if err := end(s.serving); err != nil {
			t.Fatal(err)
		}
		if err := s.service.Stop(); err != nil {
			t.Errorf("with its connection %s: %v", name, err)
		}
	}
}

// TestServeRefuses: a service that can't be made leaves nothing behind.
func TestServeRefuses(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	for name, c := range map[string]parts.Config{
		"of no name":           {Name: "", Version: "0.0.1"},
		"of an endpoint twice": {Name: "parts", Version: "0.0.1", Endpoints: []parts.Endpoint{{Name: "good", Subject: subject, Handler: count}, {Name: "no name", Subject: subject, Handler: count}}},
	} {
		c.Conn, c.Admit, c.Code, c.Busy = bus.Connect(t), func(micro.Request) error { return nil }, code, errBusy
		if _, err := parts.Serve(c); err == nil {
			t.Errorf("a service %s is made", name)
		}
	}
	client := parts.NewClient(bus.Connect(t), nil, untranslated)
	if err := client.For(t.Context(), subject, nil, new(string)); !errors.Is(err, parts.ErrUnreachable) {
		t.Errorf("somebody answers: %v", err)
	}
}

// TestMessage: what can't be encoded is not sent.
func TestMessage(t *testing.T) {
	t.Parallel()
	if _, err := parts.Message(subject, func() {}); err == nil || !strings.Contains(err.Error(), subject) {
		t.Errorf("got %v", err)
	}
	s := serve(t, count)
	for _, err := range parts.Values[int](t.Context(), s.client, subject, func() {}) {
		if err == nil {
			t.Error("a function was asked for")
		}
	}
	if err := s.client.For(t.Context(), subject, func() {}, nil); err == nil {
		t.Error("a function was asked for")
	}
}

// TestClosedConnection: over a connection that is closed, no answer comes.
func TestClosedConnection(t *testing.T) {
	t.Parallel()
	s := serve(t, count)
	s.asking.Close()
	if _, err := s.ask(t.Context()); !errors.Is(err, parts.ErrUnreachable) {
		t.Errorf("got %v", err)
	}
}

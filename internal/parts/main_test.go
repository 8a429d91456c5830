package parts_test

import (
	"context"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"catenary/es/estest"
	"catenary/internal/parts"
)

func TestMain(m *testing.M) { estest.VerifyTestMain(m) }

// patience bounds every wait. It is reached only when something is broken.
const patience = 30 * time.Second

const subject = "ask.this"

// Codes and errors as a user of the package has them.
const (
	codeRequest = "request"
	codeBusy    = "busy"
	codeFailed  = "failed"
)

var errBusy = errors.New("too many at once")

func code(err error) string {
	switch {
	case errors.Is(err, parts.ErrRequest):
		return codeRequest
	case errors.Is(err, errBusy):
		return codeBusy
	}
	return codeFailed
}

// scene is a service with one handler, and a client of it over another connection.
type scene struct {
	bus     *estest.Bus
	log     estest.Log
	service *parts.Service
	// serving and asking are the connections of the service and of the client.
	serving, asking *nats.Conn
	client          *parts.Client
}

// serve answers with a handler until the test ends. More changes the configuration.
func serve(t *testing.T, handler parts.Handler, more ...func(*parts.Config)) *scene {
	t.Helper()
	s := &scene{bus: estest.Server(t, false)}
	s.serving, s.asking = s.bus.Connect(t), s.bus.Connect(t)
	c := parts.Config{
		Conn: s.serving, Name: "parts", Version: "0.0.1", About: "answers in parts", Most: 8,
		Endpoints: []parts.Endpoint{{Name: "this", Subject: subject, Handler: handler}},
		Admit:     func(micro.Request) error { return nil }, Code: code, Busy: errBusy, Logger: s.log.Logger(0),
	}
	for _, change := range more {
		change(&c)
	}
	var err error
	if s.service, err = parts.Serve(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.service.Stop(); err != nil {
			t.Error(err)
		}
	})
	s.client = parts.NewClient(s.asking, nil, untranslated)
	return s
}

func untranslated(err error) error { return err }

// raw asks without the client, and gives what comes.
func (s *scene) raw(t *testing.T) <-chan *nats.Msg {
	t.Helper()
	inbox, came := s.asking.NewInbox(), make(chan *nats.Msg, 16)
	if _, err := s.asking.ChanSubscribe(inbox, came); err != nil {
		t.Fatal(err)
	}
	if err := s.asking.PublishRequest(subject, inbox, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	return came
}

// await gives the next of a channel.
func await[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatal("it does not come")
		panic("unreachable")
	}
}

// ask asks for one value.
func (s *scene) ask(ctx context.Context) (string, error) {
	var answer string
	err := s.client.For(ctx, subject, struct{}{}, &answer)
	return answer, err
}

// begin asks, and gives how that ends.
func (s *scene) begin(ctx context.Context) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := s.ask(ctx)
		ended <- err
	}()
	return ended
}

// held serves what is answered only when it is freed, and tells when it was asked.
func held(t *testing.T, more ...func(*parts.Config)) (s *scene, asked, free chan struct{}) {
	t.Helper()
	asked, free = make(chan struct{}, 1), make(chan struct{})
	return serve(t, func(_ context.Context, r *parts.Request) error {
		asked <- struct{}{}
		<-free
		return r.Value("done", true)
	}, more...), asked, free
}

package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/project"
	"catenary/events"
	"catenary/internal/topology"
)

func TestMain(m *testing.M) { estest.VerifyTestMain(m) }

// asked is a service on a real bus, and a client that asks it.
type asked struct {
	*recorded
	bus    *estest.Bus
	nc     *nats.Conn
	client *Client
}

// serve starts a service; change may vary its configuration.
func serve(t *testing.T, change func(*Config)) *asked {
	t.Helper()
	a := &asked{recorded: newRecorded(), bus: estest.Server(t, false)}
	a.nc = a.bus.Connect(t)
	a.client = NewClient(a.nc, nil)
	c := Config{
		Store: a.store, Registry: events.Registry(), Version: "1.2.3", Logger: slog.New(slog.DiscardHandler),
		Positions: func(context.Context, uint64) ([]ViewPosition, uint64, error) { return nil, 0, nil },
		Verify:    func(context.Context, es.Store) (project.Report, error) { return project.Report{}, nil },
	}
	if change != nil {
		change(&c)
	}
	s, err := Serve(a.bus.Connect(t), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return a
}

func TestPosition(t *testing.T) {
	t.Parallel()
	views := []ViewPosition{{View: "chain-nodes", Bucket: "chain-nodes-g2", Event: 7, Revision: 3}, {Bucket: "chain-freezes", Event: 6, Stopped: "broken"}}
	a := serve(t, func(c *Config) {
		c.Positions = func(_ context.Context, sequence uint64) ([]ViewPosition, uint64, error) {
			if sequence == 99 {
				return nil, 0, errors.New("out of order")
			}
			return views, 9, nil
		}
	})
	for _, c := range []struct {
		sequence uint64
		reached  bool
	}{{0, true}, {6, true}, {7, false}} {
		found, err := a.client.Position(t.Context(), PositionQuestion{Sequence: c.sequence, Wait: Duration(time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Positions{Sequence: c.sequence, Tail: 9, Reached: c.reached, Views: views}, found); diff != "" {
			t.Errorf("position at %d (-want +found):\n%s", c.sequence, diff)
		}
	}
	_, err := a.client.Position(t.Context(), PositionQuestion{Sequence: 99})
	if !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), "out of order") {
		t.Errorf("error %v, want ErrFailed with the service's words", err)
	}
}

// TestByHand asks as a person does with the nats tool: a subject, a body, one message back.
func TestByHand(t *testing.T) {
	t.Parallel()
	a := serve(t, nil)
	a.add(t, es.Event{Ref: es.Ref{Aggregate: "node", Key: "n1"}}, events.NodeRetired{Reason: "old"})
	ask := func(subject, body string) *nats.Msg {
		t.Helper()
		m, err := a.nc.Request(subject, []byte(body), waitLimit)
		if err != nil {
			t.Fatalf("%s %s: %v", subject, body, err)
		}
		return m
	}
	var page LogPage
	if err := json.Unmarshal(ask("catenary.query.log", `{"limit":1}`).Data, &page); err != nil || len(page.Items) != 1 || page.Items[0].Key != "n1" {
		t.Errorf("log gave %+v (%v), want the event of n1", page, err)
	}
	if err := json.Unmarshal(ask("catenary.query.log", "").Data, &page); err != nil || len(page.Items) != 1 {
		t.Errorf("log without a body gave %+v (%v), want all events", page, err)
	}
	for _, body := range []string{`{"limti":1}`, `{"limit":"1"}`, `{"limit":-1}`, `{} {}`, `[`, `{"wait":"soon"}`} {
		m := ask("catenary.query.log", body)
		if code := m.Header.Get("Nats-Service-Error-Code"); code != codeInvalid {
			t.Errorf("body %s: error code %q, want %s", body, code, codeInvalid)
		}
	}
	var info struct {
		Endpoints []struct{ Subject string }
	}
	if err := json.Unmarshal(ask("$SRV.INFO."+topology.QueryService, "").Data, &info); err != nil || len(info.Endpoints) != 13 {
		t.Errorf("service info %+v (%v), want thirteen endpoints", info, err)
	}
}

// waitLimit bounds every wait. It is reached only when something is broken.
const waitLimit = 30 * time.Second

func TestLogTravelsInParts(t *testing.T) {
	t.Parallel()
	a := serve(t, nil)
	var want []uint64
	for n := range 40 {
		// A reason of 60 KiB that grows sixfold in JSON would not fit a message with many others.
		e := a.add(t, es.Event{Ref: es.Ref{Aggregate: "node", Key: fmt.Sprint("n", n)}}, events.NodeRetired{Reason: strings.Repeat("\x01", 60<<10)})
		want = append([]uint64{e.Sequence}, want...)
	}
	huge := a.add(t, es.Event{Ref: es.Ref{Aggregate: "node", Key: "huge"}}, events.NodeRetired{Reason: strings.Repeat("\x01", 200<<10)})
	want = append([]uint64{huge.Sequence}, want...)
	var found []uint64
	for item, err := range a.client.Events(t.Context(), LogQuestion{}) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, item.Sequence)
		switch {
		case item.Sequence == huge.Sequence && !strings.Contains(item.Problem, "too long"):
			t.Errorf("the event of 1.2 MB says %q, want that it is too long", item.Problem)
		case item.Sequence != huge.Sequence && len(item.Data) < 360<<10:
			t.Errorf("event %d has %d bytes of data", item.Sequence, len(item.Data))
		}
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("events (-want +found):\n%s", diff)
	}
}

func TestEventsEndsAtItsLimit(t *testing.T) {
	t.Parallel()
	a := serve(t, nil)
	a.chain.Append(t, a.store, 2*MaxPageItems+10)
	for limit, want := range map[int]int{0: 2*MaxPageItems + 10, 3: 3, MaxPageItems + 5: MaxPageItems + 5} {
		for _, oldest := range []bool{false, true} {
			count := 0
			for _, err := range a.client.Events(t.Context(), LogQuestion{Limit: limit, Oldest: oldest}) {
				if err != nil {
					t.Fatal(err)
				}
				count++
			}
			if count != want {
				t.Errorf("limit %d, oldest first %v: %d events, want %d", limit, oldest, count, want)
			}
		}
	}
}

func TestFollow(t *testing.T) {
	t.Parallel()
	a := serve(t, nil)
	a.chain.Append(t, a.store, 5)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	next := uint64(3)
	for item, err := range a.client.Follow(ctx, LogQuestion{After: 2}, nil) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			break
		}
		if item.Sequence != next {
			t.Fatalf("event %d, want %d", item.Sequence, next)
		}
		next++
		switch item.Sequence {
		case 5:
			go a.chain.Append(t, a.store, 3)
		case 8:
			cancel()
		}
	}
	if next != 9 {
		t.Errorf("followed up to %d, want 8", next-1)
	}
}

func TestVerifyTellsProgress(t *testing.T) {
	t.Parallel()
	told := make(chan struct{})
	want := project.Report{Events: 3, Buckets: []project.BucketReport{{Name: "chain-nodes", Keys: 1, Differences: []project.Difference{}}}}
	a := serve(t, func(c *Config) {
		c.Verify = func(ctx context.Context, read es.Store) (project.Report, error) {
			for _, err := range read.Read(ctx, 0) {
				if err != nil {
					return project.Report{}, err
				}
			}
			// The report is held back until progress was told: no clock decides this test.
			<-told
			return want, nil
		}
	})
	a.chain.Append(t, a.store, 3)
	once := atomic.Bool{}
	found, err := a.client.Verify(t.Context(), func(events uint64) {
		if events == 3 && once.CompareAndSwap(false, true) {
			// While one check runs, another is refused.
			if _, err := a.client.Verify(t.Context(), nil); !errors.Is(err, ErrBusy) {
				t.Errorf("a second verify gave %v, want ErrBusy", err)
			}
			close(told)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("report (-want +found):\n%s", diff)
	}
}

// Answers leave from other goroutines than the one that the library reads a request in, which must not meet in it: the race detector
// sees it if they do.
func TestAnswersShareNothingWithTheirRequests(t *testing.T) {
	t.Parallel()
	a := serve(t, func(c *Config) {
		c.Positions = func(context.Context, uint64) ([]ViewPosition, uint64, error) {
			return nil, 0, errors.New("out of order")
		}
	})
	const questions = 200
	replies := a.nc.NewInbox()
	answers, err := a.nc.SubscribeSync(replies)
	if err != nil {
		t.Fatal(err)
	}
	for range questions {
		if err := a.nc.PublishRequest(subjectOf("position"), replies, []byte(`{"sequence":1}`)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range questions {
		m, err := answers.NextMsg(30 * time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if m.Header.Get(micro.ErrorCodeHeader) == "" || m.Header.Get(micro.ErrorHeader) == "" {
			t.Errorf("answer %d is %q with the headers %v", i, m.Data, m.Header)
		}
	}
	stats, err := a.nc.Request("$SRV.STATS."+topology.QueryService, nil, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var found struct {
		Endpoints []micro.EndpointStats `json:"endpoints"`
	}
	if err := json.Unmarshal(stats.Data, &found); err != nil {
		t.Fatal(err)
	}
	for _, e := range found.Endpoints {
		if e.NumErrors != 0 {
			t.Errorf("the library has noted %d errors of the endpoint %s", e.NumErrors, e.Name)
		}
	}
}

func TestStopEndsWhatIsAsked(t *testing.T) {
	t.Parallel()
	r := newRecorded()
	bus := estest.Server(t, false)
	began := make(chan struct{})
	s, err := Serve(bus.Connect(t), Config{
		Store: r.store, Registry: events.Registry(), Version: "1.2.3", Logger: slog.New(slog.DiscardHandler),
		Positions: func(ctx context.Context, _ uint64) ([]ViewPosition, uint64, error) {
			close(began)
			<-ctx.Done()
			return nil, 0, ctx.Err()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	client := NewClient(bus.Connect(t), nil)
	go func() {
		_, err := client.Position(context.Background(), PositionQuestion{Sequence: 1, Wait: Duration(MaxWait)})
		ended <- err
	}()
	<-began
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, ErrNoService) || !strings.Contains(err.Error(), "the service stops") {
		t.Errorf("error %v, want ErrNoService: the service stops", err)
	}
}

// TestFollowOutlivesTheService: whoever follows the log does not have to know that a server was restarted.
func TestFollowOutlivesTheService(t *testing.T) {
	t.Parallel()
	r := newRecorded()
	bus := estest.Server(t, false)
	start := func() *Service {
		s, err := Serve(bus.Connect(t), Config{Store: r.store, Registry: events.Registry(), Version: "1.2.3", Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	stop := func(s *Service) {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	}
	add := func() {
		r.add(t, es.Event{Ref: es.Ref{Aggregate: "node", Key: "n1"}}, events.NodeRetired{Reason: "old"})
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	client := NewClient(bus.Connect(t), nil)
	s := start()
	add()
	var found []uint64
	for item, err := range client.Follow(ctx, LogQuestion{}, nil) {
		if err != nil {
			t.Fatalf("after %v: %v", found, err)
		}
		if found = append(found, item.Sequence); len(found) == 3 {
			break
		}
		stop(s)
		add()
		s = start()
	}
	stop(s)
	if diff := cmp.Diff([]uint64{1, 2, 3}, found); diff != "" {
		t.Errorf("followed (-want +found):\n%s", diff)
	}
	cancel()
	for _, err := range client.Follow(ctx, LogQuestion{}, nil) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted while nobody answers, it gave %v", err)
		}
	}
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	client := NewClient(estest.Server(t, false).Connect(t), nil)
	if _, err := client.Position(t.Context(), PositionQuestion{}); !errors.Is(err, ErrNoService) {
		t.Errorf("error %v, want ErrNoService", err)
	}
}

// TestLostPart answers as a service whose second part was lost.
func TestLostPart(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	nc := bus.Connect(t)
	sub, err := nc.Subscribe(topology.QuerySubject(QuestionLog), func(m *nats.Msg) {
		for _, part := range []string{"1", "3"} {
			answer := nats.NewMsg(m.Reply)
			answer.Header.Set(headerPart, part)
			answer.Data = []byte(`{"items":[]}`)
			if err := nc.PublishMsg(answer); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sub.Unsubscribe(); err != nil {
			t.Error(err)
		}
	}()
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := NewClient(bus.Connect(t), nil).Log(t.Context(), LogQuestion{}); !errors.Is(err, ErrIncomplete) {
		t.Errorf("error %v, want ErrIncomplete", err)
	}
}

// TestGuardEndsTheWait: what the bus refuses only times out, unless the connection tells.
func TestGuardEndsTheWait(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	sub, err := nc.SubscribeSync(topology.QuerySubject(QuestionPosition)) // somebody listens and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sub.Unsubscribe(); err != nil {
			t.Error(err)
		}
	}()
	denied := errors.New("denied")
	var subjects []string
	client := NewClient(nc, func(ctx context.Context, s ...string) (context.Context, context.CancelFunc) {
		subjects = s
		ctx, cancel := context.WithCancelCause(ctx)
		cancel(denied)
		return ctx, func() { cancel(nil) }
	})
	if _, err := client.Position(t.Context(), PositionQuestion{}); !errors.Is(err, denied) {
		t.Errorf("error %v, want the guard's", err)
	}
	if len(subjects) == 0 || subjects[0] != "catenary.query.position" {
		t.Errorf("the guard watches %v, want the query's subject", subjects)
	}
}

// TestNoAnswerInTime: who asks learns whose time was over, and what that means.
func TestNoAnswerInTime(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	sub, err := nc.SubscribeSync(topology.QuerySubject(QuestionPosition)) // somebody listens and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sub.Unsubscribe(); err != nil {
			t.Error(err)
		}
	}()
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = NewClient(nc, nil).Position(ctx, PositionQuestion{})
	if !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), "in the time that was given") || strings.Contains(err.Error(), "deadline") {
		t.Errorf("error %v, want that the time which was given is over", err)
	}
	if err := late(t.Context()); !strings.Contains(err.Error(), "said nothing for 10s") || len(errors.GetAllHints(err)) == 0 {
		t.Errorf("error %v, want how long the service said nothing, and what to do", err)
	}
}

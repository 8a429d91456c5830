package logs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/es/estest"
	"catenary/internal/topology"
)

func TestMain(m *testing.M) { estest.VerifyTestMain(m) }

// waitLimit bounds every wait. It is reached only when something is broken.
const waitLimit = 60 * time.Second

func bounded(t testing.TB) context.Context {
	t.Helper()
	return estest.Bounded(t, waitLimit)
}

var quiet = slog.New(slog.DiscardHandler)

// names gives ids.
func names() func() string {
	var n atomic.Int64
	return func() string { return fmt.Sprint("span-", n.Add(1)) }
}

func start(t *testing.T) (*estest.Bus, *Client) {
	t.Helper()
	bus := estest.Server(t, false)
	nc := bus.Connect(t)
	if err := Ensure(bounded(t), nc, topology.Options{BucketBytes: 128 << 20}); err != nil {
		t.Fatal(err)
	}
	if err := Ensure(bounded(t), nc, topology.Options{}); err != nil {
		t.Fatal(err)
	}
	service, err := Serve(nc, "0.1.0", quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := service.Stop(); err != nil {
			t.Error(err)
		}
	})
	return bus, NewClient(bus.Connect(t), nil)
}

func write(t testing.TB, w io.Writer, text string) {
	t.Helper()
	if n, err := io.WriteString(w, text); err != nil || n != len(text) {
		t.Fatalf("wrote %d bytes: %v", n, err)
	}
}

func closeAll(t testing.TB, k *Keeper, writers ...io.Closer) {
	t.Helper()
	for _, w := range writers {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := k.Close(bounded(t)); err != nil {
		t.Error(err)
	}
}

// told reads what there is, by span.
func told(t *testing.T, c *Client, q Question) (spans []Part, texts []string) {
	t.Helper()
	for p, err := range c.Read(bounded(t), q) {
		if err != nil {
			t.Fatal(err)
		}
		if len(spans) == 0 || spans[len(spans)-1].ID != p.ID {
			spans, texts = append(spans, p), append(texts, "")
		}
		texts[len(texts)-1] += p.Text
	}
	return spans, texts
}

func TestLogsBySpan(t *testing.T) {
	t.Parallel()
	_, client := start(t)
	k := NewKeeper(client.Put, names(), quiet)
	web := Span{Node: "n 1", Module: "web/front", Rollout: "r1", Source: 7, Attempt: 1, Deed: "apply"}
	first := k.Open(web)
	write(t, first, "one\ntwo\nthr")
	write(t, first, "ee")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Write([]byte("late")); err == nil {
		t.Error("a closed log takes more")
	}
	closeAll(t, k)
	k = NewKeeper(client.Put, func() string { return "another" }, quiet)
	db := k.Open(Span{Node: "n 1", Module: "db", Rollout: "r2", Source: 9, Attempt: 2, Deed: "remove"})
	closeAll(t, k, db)

	spans, texts := told(t, client, Question{Node: "n 1"})
	if len(spans) != 2 || texts[0] != "one\ntwo\nthree" || texts[1] != "" {
		t.Fatalf("%d spans say %q", len(spans), texts)
	}
	if spans[0].Span != web || spans[1].Deed != "remove" || !spans[1].Last || spans[0].At.IsZero() {
		t.Errorf("the spans are %+v", spans)
	}
	for q, want := range map[Question]int{
		{Node: "n 1", Module: "db"}: 1, {Node: "n 1", Rollout: "r1"}: 1, {Node: "n 1", Rollout: "r3"}: 0, {Node: "n2"}: 0, {Node: "n 1", After: spans[1].Sequence}: 0,
	} {
		if spans, _ := told(t, client, q); len(spans) != want {
			t.Errorf("%+v: %d spans, want %d", q, len(spans), want)
		}
	}
	for _, err := range client.Read(bounded(t), Question{}) {
		if !errors.Is(err, es.ErrName) {
			t.Errorf("without a node: %v", err)
		}
	}
}

// TestPartsHaveWholeLines: whatever is written in whatever pieces comes in order, whole, in parts that end with lines where they can.
func TestPartsHaveWholeLines(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var parts []Part
	k := NewKeeper(func(_ context.Context, p Part) error {
		mu.Lock()
		defer mu.Unlock()
		parts = append(parts, p)
		return nil
	}, names(), quiet)
	w := k.Open(Span{Node: "n1", Module: "web"})
	var said strings.Builder
	for i := range 400 {
		text := fmt.Sprintf("line %d %s\n", i, strings.Repeat("x", i*3))
		if i == 200 {
			text = strings.Repeat("y", 3*topology.LogPartBytes) + "\n"
		}
		said.WriteString(text)
		write(t, w, text[:len(text)/2])
		write(t, w, text[len(text)/2:])
	}
	said.WriteString("an open end")
	write(t, w, "an open end")
	closeAll(t, k, w)
	var text strings.Builder
	long := 0
	for i, p := range parts {
		text.WriteString(p.Text)
		if p.Number != i+1 || len(p.Text) > topology.LogPartBytes || p.Cut > 0 || p.Last != (i == len(parts)-1) {
			t.Errorf("part %d of %d: number %d, %d bytes, %d cut, last %v", i+1, len(parts), p.Number, len(p.Text), p.Cut, p.Last)
		}
		if !strings.HasSuffix(p.Text, "\n") && !p.Last {
			long++
		}
	}
	if text.String() != said.String() || long > 3 {
		t.Errorf("%d of %d bytes came, %d parts end within a line", text.Len(), said.Len(), long)
	}
}

// TestCutIsMarked: of a log that is too long the beginning and the end are kept, and how much is not is said.
func TestCutIsMarked(t *testing.T) {
	t.Parallel()
	var kept, cut int64
	var text, last string
	k := NewKeeper(func(_ context.Context, p Part) error {
		if kept += int64(len(p.Text)); p.Cut > 0 {
			cut += p.Cut
		}
		if p.Number == 1 {
			text = p.Text[:20]
		}
		last = p.Text
		return nil
	}, names(), quiet)
	w := k.Open(Span{Node: "n1", Module: "web"})
	line := strings.Repeat("z", 999) + "\n"
	write(t, w, "this is the beginning\n")
	total := int64(len("this is the beginning\n"))
	for total < SpanBytes+5<<20 {
		if k.waiting.Load() > WaitingBytes/2 {
			continue // the test writes faster than anything is handed in
		}
		write(t, w, line)
		total += int64(len(line))
	}
	write(t, w, "this is the end\n")
	total += int64(len("this is the end\n"))
	closeAll(t, k, w)
	if kept+cut != total || cut < 4<<20 || kept < SpanBytes {
		t.Errorf("of %d bytes %d are kept and %d cut", total, kept, cut)
	}
	if text != "this is the beginnin" || !strings.HasSuffix(last, "this is the end\n") || !strings.HasPrefix(last, "z") {
		t.Errorf("it begins with %q and ends with %q", text, last[max(0, len(last)-40):])
	}
}

// TestAwayBusFailsNothing: while the bus is away writing goes on, what does not fit is cut and marked, and all comes when it is there again.
func TestAwayBusFailsNothing(t *testing.T) {
	t.Parallel()
	back := make(chan struct{})
	var kept, cut int64
	k := NewKeeper(func(context.Context, Part) error {
		select {
		case <-back:
			return nil
		default:
			return es.ErrUnavailable
		}
	}, names(), quiet)
	put := k.put
	k.put = func(ctx context.Context, p Part) error {
		err := put(ctx, p)
		if err == nil {
			kept += int64(len(p.Text))
			cut += p.Cut
		}
		return err
	}
	w := k.Open(Span{Node: "n1", Module: "web"})
	line := strings.Repeat("z", 999) + "\n"
	total := int64(0)
	for total < 2*WaitingBytes {
		write(t, w, line)
		total += int64(len(line))
	}
	if waiting := k.waiting.Load(); waiting > WaitingBytes+int64(len(line)) {
		t.Errorf("%d bytes wait", waiting)
	}
	close(back)
	closeAll(t, k, w)
	if kept+cut != total || cut == 0 || k.waiting.Load() != 0 {
		t.Errorf("of %d bytes %d are kept and %d cut; %d wait", total, kept, cut, k.waiting.Load())
	}
}

// TestFollow: a follower sees each line once, though the server is stopped and started and parts are handed in twice.
func TestFollow(t *testing.T) {
	t.Parallel()
	bus, client := start(t)
	js, err := jetstream.New(bus.Connect(t))
	if err != nil {
		t.Fatal(err)
	}
	twice := func(ctx context.Context, p Part) error {
		if err := client.Put(ctx, p); err != nil || p.Number%2 == 0 {
			return err
		}
		// It is stored again, as when its answer was lost for longer than the server remembers its id.
		m := nats.NewMsg(topology.LogsStoredSubject("n1", "web"))
		m.Data, p.Text = []byte(p.Text), ""
		said, err := json.Marshal(p)
		if err != nil {
			return err
		}
		m.Header.Set(headerPart, string(said))
		if _, err := js.PublishMsg(ctx, m); err != nil {
			return errors.Mark(err, es.ErrUnavailable)
		}
		return nil
	}
	k := NewKeeper(twice, names(), quiet)
	w := k.Open(Span{Node: "n1", Module: "web", Deed: "apply"})
	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()
	seen := make(chan string, 1000)
	ended := make(chan error, 1)
	follower := NewClient(bus.Connect(t), nil)
	go func() {
		for p, err := range follower.Follow(ctx, Question{Node: "n1"}) {
			if err != nil {
				ended <- err
				return
			}
			for l := range strings.Lines(p.Text) {
				seen <- l
			}
		}
	}()
	next := 0
	await := func(upTo int) {
		t.Helper()
		late := time.After(waitLimit)
		for next < upTo {
			select {
			case l := <-seen:
				if want := fmt.Sprintf("line %d\n", next); l != want {
					t.Fatalf("saw %q, want %q", l, want)
				}
				next++
			case err := <-ended:
				t.Fatal(err)
			case <-late:
				t.Fatalf("line %d is not seen", next)
			}
		}
	}
	for round := range 3 {
		for i := range 10 {
			write(t, w, fmt.Sprintf("line %d\n", round*10+i))
		}
		await(round*10 + 5)
		if round == 1 {
			bus.Stop()
			write(t, w, "line 20\n")
			bus.Start(t)
			await(21)
			for i := 21; i < 30; i++ {
				write(t, w, fmt.Sprintf("line %d\n", i))
			}
			break
		}
	}
	closeAll(t, k, w)
	await(30)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the follower ends with %v", err)
	}
	select {
	case l := <-seen:
		t.Errorf("it saw %q besides", l)
	default:
	}
}

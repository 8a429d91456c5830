package dispatch_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"catenary/es"
	"catenary/es/dispatch"
)

// recorder is a bus that notes what comes, and answers as it is told.
type recorder struct {
	mu     sync.Mutex
	got    []dispatch.Request
	answer func(n int, r dispatch.Request) (es.Answer, error)
}

func (b *recorder) Send(_ context.Context, r dispatch.Request) (es.Answer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = append(b.got, r)
	if b.answer == nil {
		return es.Answer{Status: es.StatusStored, Command: r.ID}, nil
	}
	return b.answer(len(b.got), r)
}

func (b *recorder) requests() []dispatch.Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]dispatch.Request{}, b.got...)
}

func outbox(t testing.TB, dir string, bus dispatch.Bus, change ...func(*dispatch.OutboxConfig)) *dispatch.Outbox {
	t.Helper()
	cfg := dispatch.OutboxConfig{Dir: dir, Bus: bus}
	for _, f := range change {
		f(&cfg)
	}
	o, err := dispatch.OpenOutbox(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

// run sends until the outbox is empty.
func run(t testing.TB, o *dispatch.Outbox) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for o.Pending() > 0 {
		select {
		case <-tick.C:
		case err := <-done:
			cancel()
			t.Fatalf("ended by itself: %v", err)
		case <-deadline.C:
			cancel()
			t.Fatalf("%d commands still wait", o.Pending())
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func keepIn(t testing.TB, o *dispatch.Outbox, r dispatch.Request) {
	t.Helper()
	if a, err := o.Send(context.Background(), r); err != nil || a.Status != es.StatusStored || a.Command != r.ID {
		t.Fatalf("%+v, %v", a, err)
	}
}

// What was taken is sent in order after the process has ended and another one goes on, with all that was said of it.
func TestOutboxGoesOnAfterAnEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bus := &recorder{}
	o := outbox(t, dir, bus)
	var want []dispatch.Request
	for i := range 5 {
		r := payment("shop", i, func(r *dispatch.Request) {
			r.ContentType, r.Effective, r.Deadline = dispatch.ContentTypeJSON, time.Date(2026, 5, 1, 7, 0, 0, 5, time.UTC), time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC)
			r.Expected, r.OnBehalfOf, r.Correlation, r.Fence, r.Backfill = at(uint64(i)), "Zoë 100%", "a\nb", 7, true
		})
		want = append(want, r)
		keepIn(t, o, r)
	}
	if _, err := dispatch.OpenOutbox(dispatch.OutboxConfig{Dir: dir, Bus: bus}); !errors.Is(err, dispatch.ErrOutboxLocked) {
		t.Errorf("opened twice: %v", err)
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Send(t.Context(), payment("shop", 1)); !errors.Is(err, dispatch.ErrOutboxClosed) {
		t.Errorf("taken when closed: %v", err)
	}
	o = outbox(t, dir, bus)
	run(t, o)
	if diff := cmp.Diff(want, bus.requests()); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(filepath.Join(dir, "outbox")); err != nil || info.Size() != 0 {
		t.Errorf("the file of an empty outbox: %v, %v", info, err)
	}
}

// Cut off after any number of bytes, as by a kill, the file holds all commands whose record is whole, and takes more.
func TestOutboxSurvivesAKillAtAnyMoment(t *testing.T) {
	t.Parallel()
	whole := t.TempDir()
	o := outbox(t, whole, &recorder{})
	file := filepath.Join(whole, "outbox")
	var ends []int64
	var sent []dispatch.Request
	for i := range 3 {
		r := payment(name(i), i)
		sent = append(sent, r)
		keepIn(t, o, r)
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, info.Size())
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for step, tail := range [][]byte{nil, make([]byte, 64), bytes.Repeat([]byte("x"), 9)} {
		for cut := 0; cut <= len(data); cut += 1 + 12*step { // every place without what a power loss may leave behind it
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "outbox"), append(append([]byte{}, data[:cut]...), tail...), 0o600); err != nil {
				t.Fatal(err)
			}
			bus := &recorder{}
			o := outbox(t, dir, bus)
			want := 0
			for _, end := range ends {
				if int64(cut) >= end {
					want++
				}
			}
			if o.Pending() != want {
				t.Fatalf("cut after %d bytes: %d commands wait, want %d", cut, o.Pending(), want)
			}
			if cut%37 != 0 {
				if err := o.Close(); err != nil {
					t.Fatal(err)
				}
				continue
			}
			more := payment("more", cut)
			keepIn(t, o, more)
			run(t, o)
			if diff := cmp.Diff(append(append([]dispatch.Request{}, sent[:want]...), more), bus.requests()); diff != "" {
				t.Fatalf("cut after %d bytes (-want +got):\n%s", cut, diff)
			}
		}
	}
}

// One changed byte in the middle is no crash: the outbox is not opened, so that nothing is lost in silence.
func TestOutboxFindsDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := outbox(t, dir, &recorder{})
	for i := range 3 {
		// The body of one holds what looks like a record.
		keepIn(t, o, payment("shop", i, func(r *dispatch.Request) { r.Body = append([]byte("CoB1"), bytes.Repeat([]byte{0}, 40)...) }))
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "outbox")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := dispatch.OpenOutbox(dispatch.OutboxConfig{Dir: dir, Bus: &recorder{}}); !errors.Is(err, dispatch.ErrOutboxDamaged) || !strings.Contains(err.Error(), "byte") {
			t.Errorf("opened: %v", err)
		}
	}
}

// A command stays until the bus has it, and keeps the ones behind it waiting; what is refused for good is put aside.
func TestOutboxInsists(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	trouble := []func() (es.Answer, error){
		func() (es.Answer, error) {
			return es.Answer{}, errors.Mark(errors.New("no writer"), dispatch.ErrNoWriter)
		},
		func() (es.Answer, error) { return es.Answer{}, errors.Mark(errors.New("late"), dispatch.ErrTimeout) },
		func() (es.Answer, error) {
			return es.Answer{Status: es.StatusBusy, Error: &es.AnswerError{Code: "inbox-full"}}, nil
		},
	}
	bus := &recorder{answer: func(n int, r dispatch.Request) (es.Answer, error) {
		switch {
		case n <= len(trouble):
			return trouble[n-1]()
		case strings.Contains(string(r.Body), "bad"):
			return es.Answer{Status: es.StatusInvalid, Command: r.ID, Error: &es.AnswerError{Code: "bad-body", Message: "no"}}, nil
		}
		return es.Answer{Status: es.StatusStored, Command: r.ID}, nil
	}}
	o := outbox(t, dir, bus)
	first, bad, last := payment("a", 1), payment("bad", 1), payment("c", 1)
	for _, r := range []dispatch.Request{first, bad, last} {
		keepIn(t, o, r)
	}
	run(t, o)
	var ids []string
	for _, r := range bus.requests() {
		ids = append(ids, r.ID)
	}
	if diff := cmp.Diff([]string{first.ID, first.ID, first.ID, first.ID, bad.ID, last.ID}, ids); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	refused, err := os.ReadFile(filepath.Join(dir, "refused.ndjson"))
	if err != nil || bytes.Count(refused, []byte("\n")) != 1 || !bytes.Contains(refused, []byte(bad.ID)) || !bytes.Contains(refused, []byte("bad-body")) {
		t.Errorf("refused: %s, %v", refused, err)
	}
}

func TestOutboxIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bus := &recorder{}
	const limit = 4000
	o := outbox(t, dir, bus, func(c *dispatch.OutboxConfig) { c.MaxBytes = limit })
	for round := range 40 {
		var err error
		for err == nil {
			_, err = o.Send(t.Context(), payment("shop", round))
		}
		if !errors.Is(err, dispatch.ErrOutboxFull) {
			t.Fatal(err)
		}
		if info, err := os.Stat(filepath.Join(dir, "outbox")); err != nil || info.Size() > 3*limit {
			t.Fatalf("the file has %d bytes, %v", info.Size(), err)
		}
		run(t, o)
	}
	if _, err := o.Send(t.Context(), payment("shop", 1, func(r *dispatch.Request) { r.Body = make([]byte, dispatch.MaxBodyBytes+1) })); !errors.Is(err, dispatch.ErrTooLarge) {
		t.Errorf("a huge body: %v", err)
	}
}

// However taking, sending and ends alternate, all that was taken is sent, in order.
func TestOutboxProperty(t *testing.T) {
	t.Parallel()
	dirs := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		dir := filepath.Join(dirs, fmt.Sprint(n))
		var taken, sent []string
		limit := 0
		bus := busFunc(func(ctx context.Context, r dispatch.Request) (es.Answer, error) {
			if limit == 0 {
				<-ctx.Done()
				return es.Answer{}, ctx.Err()
			}
			limit--
			sent = append(sent, r.ID)
			return es.Answer{Status: es.StatusStored, Command: r.ID}, nil
		})
		open := func() *dispatch.Outbox {
			o, err := dispatch.OpenOutbox(dispatch.OutboxConfig{Dir: dir, Bus: bus, MaxBytes: 1500})
			if err != nil {
				rt.Fatal(err)
			}
			return o
		}
		o := open()
		rt.Repeat(map[string]func(*rapid.T){
			"take": func(rt *rapid.T) {
				r := payment("shop", 1)
				switch _, err := o.Send(context.Background(), r); {
				case err == nil:
					taken = append(taken, r.ID)
				case !errors.Is(err, dispatch.ErrOutboxFull):
					rt.Fatal(err)
				}
			},
			"send some": func(rt *rapid.T) {
				limit = min(rapid.IntRange(1, 5).Draw(rt, "limit"), o.Pending())
				left := o.Pending() - limit
				ctx, cancel := context.WithCancel(context.Background())
				done := make(chan error, 1)
				go func() { done <- o.Run(ctx) }()
				for o.Pending() > left {
					select {
					case err := <-done:
						rt.Fatal(err)
					case <-time.After(50 * time.Microsecond):
					}
				}
				cancel()
				if err := <-done; err != nil {
					rt.Fatal(err)
				}
			},
			"end and go on": func(rt *rapid.T) {
				if err := o.Close(); err != nil {
					rt.Fatal(err)
				}
				o = open()
			},
			"": func(rt *rapid.T) {
				if len(sent)+o.Pending() != len(taken) {
					rt.Fatalf("%d taken, %d sent, %d wait", len(taken), len(sent), o.Pending())
				}
				if diff := cmp.Diff(taken[:len(sent)], sent); len(sent) > 0 && diff != "" {
					rt.Fatalf("order (-taken +sent):\n%s", diff)
				}
			},
		})
		if err := o.Close(); err != nil {
			rt.Fatal(err)
		}
	})
}

type busFunc func(context.Context, dispatch.Request) (es.Answer, error)

func (f busFunc) Send(ctx context.Context, r dispatch.Request) (es.Answer, error) { return f(ctx, r) }

package dispatch

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/es"
	"catenary/es/estest"
)

// keeping takes refused commands when it is let to.
type keeping struct {
	gate chan error // gives the outcome of each
	kept chan Refused
}

func (k keeping) keepRefused(ctx context.Context, r Refused) error {
	select {
	case err := <-k.gate:
		if err == nil {
			k.kept <- r
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// names is a directory in memory.
type names map[string]Who

func (n names) Load(context.Context) (map[string]Who, error) {
	all := map[string]Who{}
	for id, who := range n {
		if who.Name != "" {
			all[id] = who
		}
	}
	return all, nil
}

func (n names) Put(_ context.Context, id string, who Who) error {
	n[id] = who
	return nil
}

func (n names) Erase(_ context.Context, id string) error {
	if _, ok := n[id]; !ok {
		return errors.Mark(errors.New("no such entry"), es.ErrNotFound)
	}
	n[id] = Who{}
	return nil
}

func counting(t *testing.T, d Directory) *Actors {
	t.Helper()
	n := 0
	actors, err := NewActors(t.Context(), d, func() string { n++; return "a-" + sequenceText(uint64(n)) })
	if err != nil {
		t.Fatal(err)
	}
	return actors
}

// TestRefusedLog: refused commands are kept beside the work, those of a flood are counted, and nothing of what was sent is repeated.
func TestRefusedLog(t *testing.T) {
	t.Parallel()
	k := keeping{gate: make(chan error), kept: make(chan Refused, 10)}
	l := newRefusedLog(k, counting(t, names{}), estest.Epoch, slog.New(slog.DiscardHandler), 2)
	c := es.Command{
		ID: "0199a0c0-0000-7000-8000-000000000001", Ref: es.Ref{Aggregate: "module", Key: "web"}, Verb: "forget", Digest: "d", Actor: "a-9", OnBehalfOf: "a-8",
		Causation: "c", Correlation: "k",
	}
	refuse := func(status es.Status, message string) es.Answer {
		return es.Answer{Status: status, Error: &es.AnswerError{Code: "code", Message: message, Hint: "hint"}}
	}
	for _, status := range []es.Status{es.StatusAccepted, es.StatusUnchanged, es.StatusBusy, es.StatusUnknown, es.StatusStored, es.StatusParked, es.StatusDiscarded} {
		l.Note(Who{}, c, refuse(status, "none"))
	}
	l.Note(Who{}, c, refuse(es.StatusRejected, "first"))
	l.Note(Who{Name: "ann"}, es.Command{ID: "not an id", Ref: es.Ref{Aggregate: "module"}, Verb: "forget", Causation: "secret"}, refuse(es.StatusInvalid, "field secret is unknown"))
	l.Note(Who{}, c, refuse(es.StatusConflict, "third"))
	l.Note(Who{}, c, refuse(es.StatusConflict, "fourth"))
	if l.Dropped() != 2 {
		t.Errorf("%d were dropped, want the two that found no room", l.Dropped())
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- l.Run(ctx) }()
	k.gate <- errors.New("the store is away") // the first is lost
	k.gate <- nil
	got := <-k.kept
	want := Refused{
		Recorded: estest.Epoch(), Actor: "a-1", Aggregate: "module", Verb: "forget", Status: es.StatusInvalid, Code: "code", Dropped: 3,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("of a malformed command it keeps (-want +found):\n%s", diff)
	}
	l.Note(Who{}, c, refuse(es.StatusFenced, strings.Repeat("ä", 400)))
	cancel()
	k.gate <- nil
	got = <-k.kept
	if len(got.Message) > maxRefusedText+len("…") || !strings.HasSuffix(got.Message, "ä…") || got.Dropped != 0 || got.Digest != "d" || got.OnBehalfOf != "a-8" {
		t.Errorf("at the end it keeps %+v", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	var none *RefusedLog
	none.Note(Who{}, c, refuse(es.StatusRejected, "nobody listens"))
}

// TestActorsAreBounded: names that only stand in commands are bounded, users of the bus and names that are known are not.
func TestActorsAreBounded(t *testing.T) {
	t.Parallel()
	d := names{}
	actors := counting(t, d)
	actors.most = 2
	id := func(who Who) (string, error) { return actors.ID(t.Context(), who) }
	for _, name := range []string{"ann", "ben", "ann"} {
		if _, err := id(Who{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := id(Who{Name: "eve"}); !errors.Is(err, ErrDirectoryFull) {
		t.Errorf("one name more gives %v", err)
	}
	if _, err := id(Who{Name: "eve", Account: "OPS"}); err != nil {
		t.Errorf("a user gives %v", err)
	}
	if err := actors.Forget(t.Context(), "a-1", "request 12"); err != nil {
		t.Fatal(err)
	}
	again, err := id(Who{Name: "ann"})
	if err != nil || again == "a-1" {
		t.Errorf("a forgotten name gets the id %s, %v; want a new one", again, err)
	}
	if _, err := id(Who{Name: "eve"}); !errors.Is(err, ErrDirectoryFull) {
		t.Errorf("when there is no room again it gives %v", err)
	}
	var r *es.Refusal
	for id, reason := range map[string]string{"a-2": "Ben wants it", "nobody": "request 12"} {
		if err := actors.Forget(t.Context(), id, reason); !errors.As(err, &r) {
			t.Errorf("forget %s because %q gives %v, want a refusal", id, reason, err)
		}
	}
}

// TestRefusedStore keeps refused commands in a real stream, shows them newest first, and erases those of one actor.
func TestRefusedStore(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	store, err := OpenRefused(t.Context(), bus.Connect(t), refusedConfig())
	if err != nil {
		t.Fatal(err)
	}
	for n, actor := range []string{"ann", "ben", "ann", "no such.token*", "ben"} {
		if err := store.keepRefused(t.Context(), Refused{Actor: actor, Aggregate: "module", Command: sequenceText(uint64(n)), Recorded: time.Unix(int64(n), 0).UTC(), Status: es.StatusRejected}); err != nil {
			t.Fatal(err)
		}
	}
	page := func(q RefusedQuestion) (commands []string, next uint64) {
		t.Helper()
		p, err := store.Page(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range p.Items {
			commands = append(commands, r.Command)
		}
		return commands, p.Next
	}
	expect := func(q RefusedQuestion, next uint64, want ...string) {
		t.Helper()
		found, n := page(q)
		if diff := cmp.Diff(want, found); diff != "" || n != next {
			t.Errorf("%+v (next %d, want %d; -want +found):\n%s", q, n, next, diff)
		}
	}
	expect(RefusedQuestion{Limit: 2}, 4, "4", "3")
	expect(RefusedQuestion{Limit: 2, Before: 4}, 2, "2", "1")
	expect(RefusedQuestion{Before: 2}, 0, "0")
	expect(RefusedQuestion{Actors: []string{"ann"}}, 0, "2", "0")
	expect(RefusedQuestion{Aggregate: "node"}, 0)
	if err := store.Erase(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	expect(RefusedQuestion{}, 0, "4", "3", "1")

	if earliest, err := store.Earliest(t.Context()); err != nil || earliest != 2 {
		t.Errorf("the oldest is at %d, %v; want 2", earliest, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var followed []string
	for r, err := range store.Follow(ctx, 2) {
		if err != nil {
			t.Fatal(err)
		}
		if followed = append(followed, r.Command); len(followed) == 2 {
			break
		}
	}
	if diff := cmp.Diff([]string{"3", "4"}, followed); diff != "" {
		t.Errorf("followed (-want +found):\n%s", diff)
	}
}

package dispatch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/estest"
	"catenary/es/memstore"
)

// ledgerForm is the form of the ledger's snapshots.
const ledgerForm = "ledger 1"

// written is the ledger as its snapshots have it.
type written struct {
	Versions map[string]uint64
	Balances map[string]int
}

func (l *ledger) Form() string { return ledgerForm }

func (l *ledger) Snapshot(out io.Writer) error {
	w := written{Versions: map[string]uint64{}, Balances: map[string]int{}}
	for ref, v := range l.versions {
		w.Versions[ref.String()] = v
	}
	for ref, b := range l.balances {
		w.Balances[ref.String()] = b
	}
	return json.NewEncoder(out).Encode(w)
}

func (l *ledger) Restore(in io.Reader) error {
	data, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	var w written
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	refOf := func(s string) es.Ref {
		ref, err := es.ParseSubject(es.SubjectPrefix + "." + strings.Replace(s, " ", ".", 1))
		if err != nil {
			panic(err)
		}
		return ref
	}
	for s, v := range w.Versions {
		l.versions[refOf(s)] = v
	}
	for s, b := range w.Balances {
		l.balances[refOf(s)] = b
	}
	return nil
}

// otherRules is a ledger of a program with other rules.
type otherRules struct{ *ledger }

func (otherRules) Form() string { return "ledger 2" }

// readings is a store that notes after which events it was read.
type readings struct {
	es.Store
	mu    sync.Mutex
	after []uint64
}

func (r *readings) Read(ctx context.Context, after uint64) iter.Seq2[es.Message, error] {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.after = append(r.after, after)
	return r.Store.Read(ctx, after)
}

// first says after which event the first reading began, and forgets all.
func (r *readings) first() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.after = nil }()
	if len(r.after) == 0 {
		return 0
	}
	return r.after[0]
}

// kept is Snapshots whose bases a test can change.
type kept struct {
	memstore.Snapshots
	change func([]byte) []byte
	saved  chan uint64
}

func newKept() *kept { return &kept{saved: make(chan uint64, 100)} }

func (k *kept) Save(ctx context.Context, sequence uint64, write func(io.Writer) error) error {
	err := k.Snapshots.Save(ctx, sequence, write)
	if err == nil {
		k.saved <- sequence
	}
	return err
}

func (k *kept) Load(ctx context.Context, below uint64) (uint64, io.ReadCloser, error) {
	sequence, base, err := k.Snapshots.Load(ctx, below)
	if err != nil || k.change == nil {
		return sequence, base, err
	}
	data, err := io.ReadAll(base)
	return sequence, io.NopCloser(bytes.NewReader(k.change(data))), err
}

func keeping(k dispatch.Snapshots, every int) option {
	return func(c *dispatch.Config) { c.Snapshots, c.SnapshotEvery = k, every }
}

func logging(l *estest.Log) option {
	return func(c *dispatch.Config) { c.Logger = slog.New(slog.NewTextHandler(l, nil)) }
}

// Repeats after a restart from a snapshot get their first answer, whatever the kind of their id, and are not done again.
func TestRepeatAfterSnapshotGetsFirstAnswer(t *testing.T) {
	t.Parallel()
	store, k, c := &readings{Store: memory(t)}, newKept(), &clock{now: time.Now()}
	options := []option{keeping(k, 5), func(cfg *dispatch.Config) { cfg.Now = c.Now }}
	b := start(t, store, options...)
	b.send(command(pay{Account: "shop", Amount: 10}))
	var sent []es.Command
	var first []es.Answer
	for _, id := range []string{newID(), uuid.NewString(), "6ba7b810-9dad-81d1-80b4-00c04fd430c8"} {
		sent = append(sent, command(pay{Account: "shop", To: "pay", Amount: 1}, func(c *es.Command) { c.ID = id }))
		first = append(first, b.send(sent[len(sent)-1]))
	}
	base := uint64(0)
	restart := func() {
		t.Helper()
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		base = <-k.saved
		store.first()
		b = start(t, store, options...)
		if after := store.first(); after != base {
			t.Fatalf("the writer read the stream after event %d, want %d, where the snapshot was taken", after, base)
		}
	}
	for range 2 { // the second time what is remembered came with a snapshot itself
		restart()
		for i, c := range sent {
			again := b.send(c)
			if !again.Repeated {
				t.Errorf("the repeat of command %d is not marked", i)
			}
			again.Repeated = false
			if diff := cmp.Diff(first[i], again); diff != "" {
				t.Errorf("the repeat of command %d got another answer (-first +repeat):\n%s", i, diff)
			}
			other := c
			other.Digest = es.Digest([]byte("something else"))
			if a := b.send(other); a.Status != es.StatusRejected || a.Error.Code != "id-reused" {
				t.Errorf("other body, same id: %+v", a)
			}
		}
		for range 5 {
			b.send(command(pay{Account: "shop", Amount: 1}))
		}
	}
	// A month later ids with a time are expired, the others still known.
	c.Add(31*24*time.Hour + time.Hour)
	for range 5 {
		b.send(command(pay{Account: "shop", Amount: 1}, func(cmd *es.Command) { cmd.ID = estest.NewIDs(c.Now).Next(); c.Add(time.Millisecond) }))
	}
	restart()
	if a := b.send(sent[0]); a.Status != es.StatusExpired {
		t.Errorf("a timed id after a month: %+v", a)
	}
	for _, c := range sent[1:] {
		if a := b.send(c); !a.Repeated {
			t.Errorf("a timeless id after a month: %+v", a)
		}
	}
}

// Case C26, and all else that makes a base one that this program can't start from: it reads the whole stream, and says why.
func TestUnusableSnapshotIsIgnored(t *testing.T) {
	t.Parallel()
	reversed := func(data []byte) []byte { slices.Reverse(data); return data }
	tests := []struct {
		name   string
		change func([]byte) []byte
		option option
		reason string
	}{
		{"cut short", func(data []byte) []byte { return data[:len(data)-1] }, nil, "damaged"},
		{"empty", func([]byte) []byte { return nil }, nil, "damaged"},
		{"longer", func(data []byte) []byte { return append(data, 0) }, nil, "more behind its end"},
		{"a flipped bit", func(data []byte) []byte { data[len(data)/2] ^= 4; return data }, nil, "another checksum"},
		{"something else", reversed, nil, "at most"},
		{"other rules", nil, func(c *dispatch.Config) {
			c.NewModel = func() es.Decider { return otherRules{newLedger().(*ledger)} }
		}, `ledger 1`},
		{"events read otherwise", nil, func(c *dispatch.Config) {
			type closed struct{}
			es.Register[closed](c.Registry, "account.closed.v1")
		}, "reads events as"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			store, k, log := &readings{Store: memory(t)}, newKept(), &estest.Log{}
			options := []option{keeping(k, 5), logging(log)}
			b := start(t, store, options...)
			c := command(pay{Account: "shop", Amount: 10})
			for range 10 {
				b.send(command(pay{Account: "shop", Amount: 1}))
			}
			b.send(c)
			if err := b.stop(); err != nil {
				t.Fatal(err)
			}
			k.change = tt.change
			if tt.option != nil {
				options = append(options, tt.option)
			}
			store.first()
			b = start(t, store, options...)
			if after := store.first(); after != 0 {
				t.Errorf("the writer read the stream after event %d, want all of it", after)
			}
			if text := log.String(); !strings.Contains(text, "snapshot ignored") || !strings.Contains(text, tt.reason) {
				t.Errorf("the log does not say %q:\n%s", tt.reason, text)
			}
			if a := b.send(c); !a.Repeated {
				t.Errorf("the repeat got %+v", a)
			}
			if a := b.send(command(pay{Account: "shop", To: "pay", Amount: 20})); a.Status != es.StatusAccepted {
				t.Errorf("the balance is not known: %+v", a)
			}
		})
	}
}

// A base that was written while the clock was weeks ahead has forgotten ids that are still good: it is not started from.
func TestSnapshotOfTheFutureIsIgnored(t *testing.T) {
	t.Parallel()
	store, k, log, c := memory(t), newKept(), &estest.Log{}, &clock{now: time.Now()}
	options := []option{keeping(k, 5), logging(log), func(cfg *dispatch.Config) { cfg.Now = c.Now }}
	b := start(t, store, options...)
	var sent []es.Command
	for range 10 {
		sent = append(sent, command(pay{Account: "shop", Amount: 1}))
		b.send(sent[len(sent)-1])
	}
	const ahead = 40 * 24 * time.Hour
	c.Add(ahead)
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	c.Add(-ahead)
	b = start(t, store, options...)
	if a := b.send(sent[0]); !a.Repeated {
		t.Errorf("the repeat got %+v", a)
	}
	if text := log.String(); !strings.Contains(text, "ahead of this clock") {
		t.Errorf("the log does not say why:\n%s", text)
	}
}

// An older base serves when the newest is damaged.
func TestOlderSnapshotServes(t *testing.T) {
	t.Parallel()
	store, k := &readings{Store: memory(t)}, newKept()
	var bases []uint64
	for range 2 {
		b := start(t, store, keeping(k, 5))
		for range 5 {
			b.send(command(pay{Account: "shop", Amount: 1}))
		}
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		bases = append(bases, <-k.saved)
	}
	damage := true
	k.change = func(data []byte) []byte {
		if damage {
			damage = false
			return data[:20]
		}
		return data
	}
	store.first()
	start(t, store, keeping(k, 100))
	if after := store.first(); after != bases[0] {
		t.Errorf("the writer read the stream after event %d, want %d: the base before the damaged one", after, bases[0])
	}
}

// A base that was taken on another stream is not started from, when that one has an event there.
func TestSnapshotOfAnotherStreamIsIgnored(t *testing.T) {
	t.Parallel()
	k, log := newKept(), &estest.Log{}
	var store *readings
	for _, options := range [][]option{{keeping(k, 5)}, nil} {
		store = &readings{Store: memory(t)}
		b := start(t, store, options...)
		for range 10 {
			b.send(command(pay{Account: "shop", Amount: 1}))
		}
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
	}
	store.first()
	start(t, store, keeping(k, 5), logging(log))
	if after := store.first(); after != 0 {
		t.Errorf("the writer read the other stream after event %d, want all of it", after)
	}
	if text := log.String(); !strings.Contains(text, "is not the one it was taken at") {
		t.Errorf("the log does not say why:\n%s", text)
	}
}

// startAlone runs a writer until it ends by itself, or is ready.
func startAlone(t *testing.T, store es.Store, options ...option) error {
	t.Helper()
	cfg := dispatch.Config{Store: store, Registry: ledgerRegistry(), NewModel: newLedger, Start: begin{}, Now: time.Now, NewID: newID}
	for _, o := range options {
		o(&cfg)
	}
	w, err := dispatch.NewWriter(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	go func() {
		select {
		case <-w.Ready():
			cancel()
		case <-ctx.Done():
		}
	}()
	return w.Run(ctx)
}

// A stream that is shorter than a base was taken at has lost events: commands would be done again.
func TestWriterRefusesAStreamThatLostEvents(t *testing.T) {
	t.Parallel()
	store, k := memory(t), newKept()
	b := start(t, store, keeping(k, 5))
	for range 8 {
		b.send(command(pay{Account: "shop", Amount: 1}))
	}
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	shorter := memory(t)
	var head es.Head
	for i := uint64(1); i <= 4; i++ {
		m, err := store.Get(t.Context(), i)
		if err == nil {
			err = es.Wait(t.Context(), shorter.Append(t.Context(), head, []es.Message{m}))
		}
		if err != nil {
			t.Fatal(err)
		}
		head = estest.HeadOf(t, m)
	}
	for _, damaged := range []bool{false, true} {
		if damaged { // what comes after the first frame matters no more
			k.change = func(data []byte) []byte { return data[:len(data)-1] }
		}
		err := startAlone(t, shorter, keeping(k, 5))
		if !errors.Is(err, dispatch.ErrEventsLost) || !strings.Contains(err.Error(), "ends at event 4") || !strings.Contains(err.Error(), "at event 9") {
			t.Errorf("damaged %v: got %v", damaged, err)
		}
	}
	if tail, err := shorter.Tail(t.Context()); err != nil || tail != 4 {
		t.Errorf("the writer appended to it: tail %d, %v", tail, err)
	}
}

// Bases are made while the writer works, of what stands, and the writer goes on from them.
func TestSnapshotsAreMadeBesideTheWork(t *testing.T) {
	t.Parallel()
	store, k := &readings{Store: memory(t)}, newKept()
	b := start(t, store, keeping(k, 20))
	stop := make(chan struct{})
	var sending sync.WaitGroup
	var answers []es.Answer
	sending.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				answers = append(answers, b.send(command(pay{Account: "shop", Amount: 1})))
			}
		}
	})
	var base uint64
	select {
	case base = <-k.saved:
	case <-time.After(20 * time.Second):
		t.Error("no snapshot was made")
	}
	close(stop)
	sending.Wait()
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	if base < 20 {
		t.Errorf("a snapshot was made at event %d", base)
	}
	// What was made at the stop is the newer one: hide it, to start from the one before.
	store.first()
	b = start(t, store, func(c *dispatch.Config) { c.Snapshots, c.SnapshotEvery = below{k, base + 1}, 1<<30 })
	if after := store.first(); after != base {
		t.Errorf("the writer read the stream after event %d, want %d", after, base)
	}
	all := b.send(command(pay{Account: "shop", To: "pay", Amount: len(answers)}))
	if all.Status != es.StatusAccepted {
		t.Errorf("all that was paid in is not there: %+v", all)
	}
	if a := b.send(command(pay{Account: "shop", To: "pay", Amount: 1})); a.Status != es.StatusRejected {
		t.Errorf("more than was paid in is there: %+v", a)
	}
	checkAnswers(t, history(t, store), append(answers, all))
}

// below shows only the bases below an event.
type below struct {
	dispatch.Snapshots
	limit uint64
}

func (b below) Load(ctx context.Context, under uint64) (uint64, io.ReadCloser, error) {
	if under == 0 || under > b.limit {
		under = b.limit
	}
	return b.Snapshots.Load(ctx, under)
}

// endingAt is a store as it was when it ended at an event.
type endingAt struct {
	es.Store
	last uint64
}

func (u endingAt) Tail(context.Context) (uint64, error) { return u.last, nil }

func (u endingAt) Read(ctx context.Context, after uint64) iter.Seq2[es.Message, error] {
	return func(yield func(es.Message, error) bool) {
		for m, err := range u.Store.Read(ctx, after) {
			if err == nil && m.Sequence > u.last || !yield(m, err) {
				return
			}
		}
	}
}

// A base may end between two events of one command, and one base may be made of another: the command's first answer has both
// events all the same.
func TestSnapshotBetweenTwoEventsOfACommand(t *testing.T) {
	t.Parallel()
	store := memory(t)
	b := start(t, store)
	b.send(command(pay{Account: "shop", Amount: 10}))
	transfer := command(pay{Account: "shop", To: "pay", Amount: 3})
	first := b.send(transfer)
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	k := newKept()
	for last := first.Events[0].Sequence - 1; last <= first.Events[1].Sequence; last++ {
		cfg := dispatch.Config{
			Store: endingAt{store, last}, Registry: ledgerRegistry(), NewModel: newLedger, Start: begin{}, Now: time.Now, NewID: newID, Snapshots: k,
		}
		if head, err := cfg.Compact(t.Context()); err != nil || head.Sequence != last {
			t.Fatalf("made up to %d, %v; want %d", head.Sequence, err, last)
		}
		again := start(t, store, keeping(below{k, last + 1}, 1<<30)).send(transfer)
		again.Repeated = false
		if diff := cmp.Diff(first, again); diff != "" {
			t.Errorf("with a base at event %d the repeat got another answer (-first +repeat):\n%s", last, diff)
		}
	}
}

// Whatever is sent, repeated and restarted in whatever order, from whatever base: answers are those of the stream.
func TestRestartsAnywhere(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(3, seed))
			store, k := memory(t), newKept()
			k.saved = make(chan uint64, 1000)
			k.change = func(data []byte) []byte {
				if random.IntN(6) == 0 {
					data[random.IntN(len(data))] ^= 1
				}
				return data
			}
			b := start(t, store, keeping(k, 10))
			var sent []es.Command
			first := map[string]es.Answer{}
			var answers []es.Answer
			for range 300 {
				switch random.IntN(12) {
				case 0:
					if err := b.stop(); err != nil {
						t.Fatal(err)
					}
					b = start(t, store, keeping(k, 1+random.IntN(40)))
				case 1, 2, 3:
					if len(sent) == 0 {
						continue
					}
					c := sent[random.IntN(len(sent))]
					again := b.send(c)
					if before := first[c.ID]; before.Status == es.StatusAccepted {
						again.Repeated = false
						if diff := cmp.Diff(before, again); diff != "" {
							t.Fatalf("the repeat got another answer (-first +repeat):\n%s", diff)
						}
					} else {
						first[c.ID] = again
						answers = append(answers, again)
					}
				default:
					p := pay{Account: name(random.IntN(4)), Amount: 1 + random.IntN(9)}
					if random.IntN(2) == 0 {
						p.To = name(4 + random.IntN(4))
					}
					c := command(p)
					if random.IntN(3) == 0 {
						c.ID = uuid.NewString()
					}
					a := b.send(c)
					sent, answers, first[c.ID] = append(sent, c), append(answers, a), a
				}
			}
			checkAnswers(t, history(t, store), answers)
		})
	}
}

// A model that can't be written down can't be kept.
func TestSnapshotsNeedARestorableModel(t *testing.T) {
	t.Parallel()
	_, err := dispatch.NewWriter(dispatch.Config{
		Store: memory(t), Registry: ledgerRegistry(), NewModel: func() es.Decider { return struct{ es.Decider }{newLedger()} },
		Start: begin{}, Now: time.Now, NewID: newID, Snapshots: newKept(),
	})
	if err == nil || !strings.Contains(err.Error(), "can't be restored") {
		t.Errorf("got %v", err)
	}
}

// full is Snapshots without room.
type full struct{ memstore.Snapshots }

func (*full) Save(context.Context, uint64, func(io.Writer) error) error {
	return errors.Mark(errors.New("no room"), es.ErrFull)
}

// Without room for snapshots the writer works on, and says so.
func TestWriterWorksWithoutRoomForSnapshots(t *testing.T) {
	t.Parallel()
	log := &estest.Log{}
	store := memory(t)
	for range 2 {
		b := start(t, store, keeping(&full{}, 3), logging(log))
		for range 5 {
			if a := b.send(command(pay{Account: "shop", Amount: 1})); a.Status != es.StatusAccepted {
				t.Fatalf("got %+v", a)
			}
		}
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
	}
	if text := log.String(); !strings.Contains(text, "no room") {
		t.Errorf("the log does not say why no snapshot was made:\n%s", text)
	}
}

package proof_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/audit/proof"
	"catenary/es"
	"catenary/es/estest"
	"catenary/es/memstore"
)

func latest(t *testing.T, log *proof.Log, keys proof.Keys) (proof.Checkpoint, []byte) {
	t.Helper()
	signed, _, err := log.Latest(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	c, err := proof.Open(signed, keys)
	if err != nil {
		t.Fatal(err)
	}
	return c, signed
}

// TestGrowth proves that what stood still stands, between checkpoints of many sizes.
func TestGrowth(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	log, _ := f.run(f.config())
	keys := public(t, f.keys)
	var earlier []proof.Checkpoint
	for _, more := range []int{1, 2, 5, 250, 600} {
		f.append(more)
		c, _ := latest(t, log, keys)
		for _, e := range append(earlier, c) {
			g, err := log.Grown(bounded(t), e.Size)
			if err != nil {
				t.Fatal(err)
			}
			now, err := proof.Open([]byte(g.Checkpoint), keys)
			if err != nil {
				t.Fatal(err)
			}
			if err := now.Follows(e, g.Path); err != nil {
				t.Errorf("from %d to %d: %v", e.Size, now.Size, err)
			}
			forked := e
			forked.Root[3] ^= 1
			wantKind(t, now.Follows(forked, g.Path), proof.ErrForked)
			longer := e
			longer.Size = now.Size + 1
			wantKind(t, now.Follows(longer, g.Path), proof.ErrShortened)
			other := e
			other.Origin = "prod-chain"
			wantKind(t, now.Follows(other, g.Path), proof.ErrOrigin)
		}
		earlier = append(earlier, c)
	}
}

// TestLogGoesOn: what was kept is taken up again, reading no more than the last tile and what is new, and what was lost is made
// again from the events.
func TestLogGoesOn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	keys := public(t, f.keys)
	log, stop := f.run(f.config())
	f.append(1000)
	latest(t, log, keys)
	stop()
	written := f.kept.written

	log, stop = f.run(f.config())
	f.append(1)
	c, _ := latest(t, log, keys)
	if c.Size != 1001 || f.kept.written != written {
		t.Errorf("after a restart the checkpoint has %d events, and %d tiles were written again", c.Size, f.kept.written-written)
	}
	stop()
	if n := len(f.kept.signed); n != 2 {
		t.Errorf("%d checkpoints were signed, want one for each time something was new", n)
	}

	delete(f.kept.tiles, "0.1")
	f.kept.tiles["0.2"][5] ^= 1
	log, _ = f.run(f.config())
	f.append(1)
	latest(t, log, keys)
	for _, sequence := range []uint64{300, 600} {
		p, err := log.Prove(bounded(t), sequence)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Verify(keys); err != nil {
			t.Errorf("after tiles were lost, event %d: %v", sequence, err)
		}
	}
}

// TestLogSigns: checkpoints come after so many events, after so much time, and at the end, without being asked for.
func TestLogSigns(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*proof.Config){
		"events": func(c *proof.Config) { c.AfterEvents = 10 },
		"time":   func(c *proof.Config) { c.Every = time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			c := f.config()
			change(&c)
			f.run(c)
			f.append(25)
			eventually(t, func() bool { _, n, err := f.kept.Newest(bounded(t)); return err == nil && n > 0 })
		})
	}
	t.Run("end", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		signed := f.append(3)
		log, stop := f.run(f.config())
		latest(t, log, public(t, f.keys))
		f.append(1)
		stop()
		if n := len(f.kept.signed); n < 1 || len(signed) != 3 {
			t.Errorf("%d checkpoints", n)
		}
	})
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(waitLimit); !holds(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("it never came to be")
		}
	}
}

// TestTwoLogs: two projectors over one chain take turns, and neither contradicts the other.
func TestTwoLogs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	keys := public(t, f.keys)
	a, _ := f.run(f.config())
	b, _ := f.run(f.config())
	for range 5 {
		f.append(7)
		latest(t, a, keys)
		f.append(3)
		latest(t, b, keys)
		latest(t, a, keys)
	}
}

// TestLogRefusesToSign: over a stream that lost its end, or that is another one, nothing is signed, and whoever asks is told both
// sides; once the loss was accepted it is.
func TestLogRefusesToSign(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	keys := public(t, f.keys)
	log, stop := f.run(f.config())
	f.append(20)
	before, _ := latest(t, log, keys)
	stop()

	shortened := memstore.New(memstore.Config{})
	(&estest.Chain{Label: "a"}).Append(t, shortened, 15)
	forked := memstore.New(memstore.Config{})
	other := estest.Chain{Label: "b"}
	other.Append(t, forked, 30)
	for _, test := range []struct {
		name   string
		events es.Store
		kind   error
		says   []string
	}{
		{"shortened", shortened, proof.ErrShortened, []string{"over 20 events", "ends at event 15"}},
		{"forked", forked, proof.ErrForked, []string{"event 20 with the hash " + before.Head.String()[:16]}},
	} {
		c := f.config()
		c.Events = test.events
		log, stop := f.run(c)
		_, _, err := log.Latest(bounded(t))
		wantKind(t, err, test.kind)
		for _, says := range test.says {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: found %v, want %q in it", test.name, err, says)
			}
		}
		stop()
	}
	if n := len(f.kept.signed); n != 1 {
		t.Errorf("%d checkpoints are kept, want the first one alone", n)
	}

	c := f.config()
	c.Events = forked
	c.Accepted = func(context.Context) (func(proof.Checkpoint) bool, error) {
		return func(c proof.Checkpoint) bool { return c.Size == before.Size && c.Head == before.Head }, nil
	}
	log, stop = f.run(c)
	after, signed := latest(t, log, keys)
	stop()
	if after.Size != 30 || len(f.kept.signed) != 2 {
		t.Errorf("after the loss was accepted the checkpoint has %d events, and %d are kept", after.Size, len(f.kept.signed))
	}
	// Whoever holds the earlier checkpoint still sees what happened.
	export := func(yield func(proof.Record, error) bool) { records(forked)(yield) }
	_, err := proof.VerifyExport(export, [][]byte{f.kept.signed[0], signed}, keys)
	wantKind(t, err, proof.ErrForked)
}

// records gives an export of a store.
func records(s es.Store) func(yield func(proof.Record, error) bool) {
	return func(yield func(proof.Record, error) bool) {
		var head es.Head
		for m, err := range s.Read(context.Background(), 0) {
			var r proof.Record
			if err == nil {
				r, err = proof.NewRecord(head, m)
				head = r.Head()
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// TestLogWithoutAKey gives proofs up to the newest checkpoint of others.
func TestLogWithoutAKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	log, stop := f.run(f.config())
	f.append(5)
	latest(t, log, public(t, f.keys))
	stop()
	c := f.config()
	c.Signers, c.Public = nil, nil
	log, _ = f.run(c)
	if _, err := log.Prove(bounded(t), 5); err != nil {
		t.Error(err)
	}
	f.append(1)
	_, err := log.Prove(bounded(t), 6)
	wantKind(t, err, es.ErrNotFound)
	if _, err := log.Prove(bounded(t), 7); !errors.Is(err, es.ErrNotFound) {
		t.Errorf("of an event that is not there it gives %v", err)
	}
}

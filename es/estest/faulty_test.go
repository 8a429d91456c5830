package estest_test

import (
	"testing"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/memstore"
)

// Without a script a faulty store, and a tampered one that changes nothing, are what they wrap.
func TestWrappersAreStores(t *testing.T) {
	t.Parallel()
	estest.RunStoreSuite(t, func(t *testing.T, l estest.Limits) es.Store {
		s := memstore.New(memstore.Config{MaxMessageBytes: l.MessageBytes, MaxBytes: l.TotalBytes})
		t.Cleanup(s.Close)
		return estest.Tamper(estest.NewFaulty(s), func(m es.Message) (es.Message, bool) { return m, true })
	})
}

func TestHoldAck(t *testing.T) {
	t.Parallel()
	f := estest.NewFaulty(memstore.New(memstore.Config{}))
	release := make(chan struct{})
	f.Script(estest.HoldAck(release))
	chain := estest.Chain{Label: "a"}
	p := chain.Hand(t.Context(), f, 1)
	if tail, err := f.Tail(t.Context()); err != nil || tail != 1 {
		t.Fatalf("the tail is %d (%v)", tail, err)
	}
	select {
	case <-p.Done():
		t.Fatal("the answer came before it was released")
	default:
	}
	close(release)
	if err := es.Wait(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

func TestReadsBreakInTheMiddle(t *testing.T) {
	t.Parallel()
	f := estest.NewFaulty(memstore.New(memstore.Config{}))
	chain := estest.Chain{Label: "a"}
	chain.Append(t, f, 10)
	var found error
	read := 0
	for m, err := range f.Read(t.Context(), 0) {
		if found = err; err == nil {
			read++
		}
		if m.Sequence == 4 {
			f.BreakReads()
		}
	}
	if read != 4 || !errors.Is(found, es.ErrUnavailable) {
		t.Errorf("read %d messages, then %v", read, found)
	}
	if _, err := f.Get(t.Context(), 1); !errors.Is(err, es.ErrUnavailable) {
		t.Errorf("get: %v", err)
	}
	f.MendReads()
	if _, err := f.Get(t.Context(), 1); err != nil {
		t.Errorf("get: %v", err)
	}
}

package chain_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"catenary/chain"
	"catenary/events"
)

// TestEncoderGivesWhatEncodeGives compares the two over records of every type, also such as have no form.
func TestEncoderGivesWhatEncodeGives(t *testing.T) {
	t.Parallel()
	forEachKind(t, map[string]func(*testing.T){
		"module": encodedAlike[chain.Module], "node": encodedAlike[chain.Node], "commit": encodedAlike[chain.Commit],
		"build": encodedAlike[chain.Build], "published": encodedAlike[chain.Published],
		"assignment": encodedAlike[chain.Assignment], "freeze": encodedAlike[chain.Freeze],
		"merge": encodedAlike[chain.Merge], "track": encodedAlike[chain.Track], "strategy": encodedAlike[chain.Strategy],
		"rollout": encodedAlike[chain.Rollout], "step": encodedAlike[chain.Step],
	})
}

func encodedAlike[T any](t *testing.T) {
	e := chain.NewEncoder[T]()
	rapid.Check(t, func(t *rapid.T) {
		r := record[T]().Draw(t, "record")
		want, err := chain.Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.Encode(&r)
		if err != nil || string(got) != string(want) {
			t.Fatalf("gave %s and %v, want %s", got, err, want)
		}
	})
}

func TestEncoderRefusesWhatEncodeRefuses(t *testing.T) {
	t.Parallel()
	e := chain.NewEncoder[chain.Assignment]()
	for name, a := range map[string]chain.Assignment{
		"text that is not UTF-8":       {Node: "n\xff1"},
		"such text in a list":          {Node: "n1", RequiredBy: []string{"a", "\xe2\x80"}},
		"a raw field that is not JSON": {Node: "n1", Provisioning: events.Raw(`{"a":`)},
		"a raw field of more":          {Node: "n1", Provisioning: events.Raw(`1,"build":"b9"`)},
		"a year of five digits":        {Node: "n1", Since: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		_, want := chain.Encode(a)
		if got, err := e.Encode(&a); err == nil || want == nil {
			t.Errorf("%s: gave %s and %v; Encode gives %v", name, got, err, want)
		}
	}
	// What it refused leaves no trace in what comes next.
	a := chain.Assignment{Node: "n1", Module: "web", Observed: &chain.Observed{}}
	if got, err := e.Encode(&a); err != nil || string(got) != `{"node":"n1","module":"web","observed":{}}` {
		t.Errorf("gave %s and %v", got, err)
	}
}

func TestEncoderRefusesTypesThatAreNoRecords(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(){
		"a number with a point": func() {
			chain.NewEncoder[struct {
				F float64 `json:"f"`
			}]()
		},
		"a field without a name": func() { chain.NewEncoder[struct{ F string }]() },
		"a struct left out when empty": func() {
			chain.NewEncoder[struct {
				F events.Selector `json:"f,omitempty"`
			}]()
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is taken", name)
				}
			}()
			make()
		}()
	}
}

func BenchmarkEncode(b *testing.B) {
	at := time.Date(2026, 5, 7, 10, 0, 0, 1, time.UTC)
	a := chain.Assignment{
		Node: "n1.example.org", Module: "web", Assigned: at, Since: at, Build: "b1", Commit: "c1",
		Reference: events.Reference{Package: &events.Package{Name: "web", Version: "1.20"}},
	}
	b.Run("encoder", func(b *testing.B) {
		e := chain.NewEncoder[chain.Assignment]()
		b.ReportAllocs()
		for b.Loop() {
			if _, err := e.Encode(&a); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := chain.Encode(a); err != nil {
				b.Fatal(err)
			}
		}
	})
}

package dispatch

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"runtime"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"catenary/es"
)

// Identities stand in snapshots: they MUST NOT change while the format does not.
func TestIdentityIsPinned(t *testing.T) {
	t.Parallel()
	k := identify(es.Ref{Aggregate: "assignment", Key: "n1.web"}, "0197b1f0-5c3e-7b1a-9a52-3f1f6f5b1a22")
	if got, want := hex.EncodeToString(k[:]), "7bf327a983ff51deef8bfa6ed9a9b2b7"; got != want {
		t.Errorf("identity %s, want %s", got, want)
	}
	parts := map[identity]string{}
	for _, p := range [][3]string{{"a", "b", "c"}, {"ab", "", "c"}, {"a", "", "bc"}, {"a", "bc", ""}} {
		k := identify(es.Ref{Aggregate: p[0], Key: p[1]}, p[2])
		if other, ok := parts[k]; ok {
			t.Errorf("%v and %s have the same identity", p, other)
		}
		parts[k] = fmt.Sprint(p)
	}
}

// TestMemoryIsAMap puts, extends, drops, forgets and writes down in any order, and demands what a plain map remembers.
func TestMemoryIsAMap(t *testing.T) {
	t.Parallel()
	ref := es.Ref{Aggregate: "account", Key: "a"}
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		now, sequence := start, uint64(0)
		m := newMemory()
		m.forget(now)
		want, packed, made := map[string]place{}, map[string]bool{}, map[string]time.Time{}
		var ids []string
		past := func(at time.Time) bool { return !at.IsZero() && day(at) < day(now.Add(-IDRememberedFor)) }
		anyID := func(t *rapid.T) string {
			if len(ids) > 0 && rapid.Bool().Draw(t, "again") {
				return rapid.SampledFrom(ids).Draw(t, "id")
			}
			id, at := uuid.New(), time.Time{}
			if rapid.Bool().Draw(t, "timed") {
				at = now.Add(-time.Duration(rapid.IntRange(0, 40*24).Draw(t, "age")) * time.Hour)
				id = uuid.Must(uuid.NewV7())
				for i, ms := 0, at.UnixMilli(); i < 6; i++ {
					id[i] = byte(ms >> (40 - 8*i))
				}
			}
			ids = append(ids, id.String())
			made[id.String()] = at
			return id.String()
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				id := anyID(t)
				sequence++
				m.put(ref, id, placeOf(sequence, 3))
				if !past(made[id]) {
					want[id] = placeOf(sequence, 3)
				}
				sequence += 2
			},
			"extend": func(t *rapid.T) {
				id := anyID(t)
				sequence++
				m.extend(ref, id, sequence)
				if past(made[id]) {
					return
				}
				p := placeOf(sequence, 1)
				if before, ok := want[id]; ok && before.last()+1 == sequence {
					p = placeOf(before.sequence(), before.count()+1)
				}
				want[id] = p
			},
			"drop": func(t *rapid.T) {
				id := anyID(t)
				if packed[id] {
					return // what came with a snapshot stands in the stream
				}
				m.drop(ref, id)
				delete(want, id)
			},
			"time goes on": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 20*24).Draw(t, "hours")) * time.Hour)
				m.forget(now)
				maps.DeleteFunc(want, func(id string, _ place) bool { return past(made[id]) })
			},
			"write down": func(t *rapid.T) {
				var first, second bytes.Buffer
				if err := m.write(&first); err != nil {
					t.Fatal(err)
				}
				data := bytes.Clone(first.Bytes())
				read, err := readMemory(&first, uint64(len(want)))
				if err != nil {
					t.Fatal(err)
				}
				if err := read.write(&second); err != nil || !bytes.Equal(data, second.Bytes()) {
					t.Fatalf("written again it has other bytes (%v)", err)
				}
				read.forget(now)
				m = read
				for id := range want {
					packed[id] = true
				}
			},
			"": func(t *rapid.T) {
				for _, id := range ids {
					got, ok := m.find(ref, id)
					if p, known := want[id]; ok != known || got != p {
						t.Fatalf("%s: found %v %v, want %v %v", id, got, ok, p, known)
					}
				}
			},
		})
	})
}

func TestReadMemoryRefusesMoreThanEvents(t *testing.T) {
	t.Parallel()
	var data bytes.Buffer
	m := newMemory()
	for range 3 {
		m.put(es.Ref{Aggregate: "a", Key: "b"}, uuid.NewString(), placeOf(1, 1))
	}
	if err := m.write(&data); err != nil {
		t.Fatal(err)
	}
	if _, err := readMemory(&data, 2); err == nil {
		t.Error("three commands of two events were taken")
	}
}

// BenchmarkMemory measures what a remembered command costs: new ones, and those that came with a snapshot.
func BenchmarkMemory(b *testing.B) {
	const commands = 1_000_000
	ref := es.Ref{Aggregate: "assignment", Key: "n1.web"}
	ids := make([]string, commands)
	for i := range ids {
		ids[i] = uuid.NewString()
	}
	heap := func() uint64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	fill := func() *memory {
		m := newMemory()
		for i, id := range ids {
			m.put(ref, id, placeOf(uint64(i+1), 1))
		}
		return m
	}
	measure := func(b *testing.B, m *memory, bytes uint64) {
		i := 0
		for b.Loop() {
			if _, ok := m.find(ref, ids[i%commands]); !ok {
				b.Fatal("forgotten")
			}
			i++
		}
		b.ReportMetric(float64(bytes)/commands, "B/id")
	}
	b.Run("since the start", func(b *testing.B) {
		before := heap()
		m := fill()
		measure(b, m, heap()-before)
	})
	b.Run("from a snapshot", func(b *testing.B) {
		var data bytes.Buffer
		if err := fill().write(&data); err != nil {
			b.Fatal(err)
		}
		before := heap()
		m, err := readMemory(&data, commands)
		if err != nil {
			b.Fatal(err)
		}
		after := heap()
		runtime.KeepAlive(data)
		measure(b, m, after-before)
	})
}

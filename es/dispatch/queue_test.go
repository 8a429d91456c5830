package dispatch

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"catenary/es"
)

// named is a submission of a sender, told apart by its command's id.
func named(sender, id string, bytes int) Submission {
	return Submission{Command: es.Command{ID: id}, Sender: sender, Bytes: bytes}
}

func popAll(q *queue) (ids []string) {
	for {
		item, ok := q.pop()
		if !ok {
			return ids
		}
		ids = append(ids, item.Command.ID)
	}
}

func TestSendersTakeTurns(t *testing.T) {
	t.Parallel()
	q := newQueue(100, 1<<20)
	now := time.Now()
	for _, s := range []struct {
		sender string
		count  int
	}{{"noisy", 5}, {"quiet", 1}, {"other", 2}} {
		for i := range s.count {
			if r := q.push(named(s.sender, s.sender+strconv.Itoa(i), 0), now); r != nil {
				t.Fatal(r)
			}
		}
	}
	want := []string{"noisy0", "quiet0", "other0", "noisy1", "other1", "noisy2", "noisy3", "noisy4"}
	if diff := cmp.Diff(want, popAll(q)); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// A sender gets what is left free at most, in number and in bytes, so that there is always room for another.
func TestShares(t *testing.T) {
	t.Parallel()
	const each = 1000 - submissionBytes
	for _, tt := range []struct {
		name         string
		limit, bytes int
		want         []int // how much each of three senders gets, one after another
	}{
		{"number", 100, 1 << 20, []int{50, 25, 13}},
		{"bytes", 1000, 100_000, []int{50, 25, 13}},
	} {
		q := newQueue(tt.limit, tt.bytes)
		var got []int
		for sender := range 3 {
			n := 0
			for q.push(named(strconv.Itoa(sender), "x", each), time.Now()) == nil {
				n++
			}
			got = append(got, n)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: shares (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestBusySaysWhenToComeAgain(t *testing.T) {
	t.Parallel()
	start := time.Now()
	q := newQueue(4, 1<<20)
	for range 2 {
		if r := q.push(named("a", "x", 0), start); r != nil {
			t.Fatal(r)
		}
	}
	for _, tt := range []struct{ waited, want time.Duration }{
		{0, minRetryAfter}, {300 * time.Millisecond, 300 * time.Millisecond}, {time.Hour, maxRetryAfter},
	} {
		r := q.push(named("a", "x", 0), start.Add(tt.waited))
		if r == nil || r.Status != es.StatusBusy || r.Code != "queue-full" || r.RetryAfter != tt.want || r.Hint == "" {
			t.Errorf("after %s: %+v, want busy and %s", tt.waited, r, tt.want)
		}
		if a := refusal(es.Command{}, r); a.Error.RetryAfterMillis != tt.want.Milliseconds() {
			t.Errorf("the answer says %d ms, want %s", a.Error.RetryAfterMillis, tt.want)
		}
	}
}

func TestOverdueLeaveTheQueue(t *testing.T) {
	t.Parallel()
	start := time.Now()
	q := newQueue(100, 1<<20)
	for i, sender := range []string{"a", "b", "a", "c", "b"} {
		if r := q.push(named(sender, strconv.Itoa(i), 0), start.Add(time.Duration(i)*time.Second)); r != nil {
			t.Fatal(r)
		}
	}
	var gone []string
	for _, item := range q.overdue(start.Add(2500 * time.Millisecond)) {
		gone = append(gone, item.Command.ID)
	}
	if diff := cmp.Diff([]string{"0", "2", "1"}, gone); diff != "" {
		t.Errorf("overdue (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"4", "3"}, popAll(q)); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

func TestClosedQueueTakesNothing(t *testing.T) {
	t.Parallel()
	q := newQueue(10, 1<<20)
	if r := q.push(named("a", "1", 0), time.Now()); r != nil {
		t.Fatal(r)
	}
	if left := q.close(stopping()); len(left) != 1 {
		t.Errorf("%d were left, want 1", len(left))
	}
	if r := q.push(named("a", "2", 0), time.Now()); r == nil || r.Code != "stopping" {
		t.Errorf("pushed into a closed queue: %+v", r)
	}
	if got := popAll(q); got != nil {
		t.Errorf("popped %v from a closed queue", got)
	}
}

// Whatever comes and goes: the order of each sender is kept, nobody waits for more than one of each other sender, and the
// sums are right.
func TestQueueProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 20).Draw(t, "limit")
		q := newQueue(limit, limit*(submissionBytes+10))
		waiting := map[string][]string{}
		since := map[string]map[string]int{} // how often each other sender was served since one began to wait for its turn
		total, next := 0, 0
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				sender := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "sender")
				id := fmt.Sprint(next)
				r := q.push(named(sender, id, rapid.IntRange(0, 20).Draw(t, "bytes")), time.Now())
				if r == nil {
					if len(waiting[sender]) == 0 {
						since[sender] = map[string]int{}
					}
					waiting[sender] = append(waiting[sender], id)
					total++
					next++
				}
				if total > limit {
					t.Fatalf("%d wait, the limit is %d", total, limit)
				}
				if r == nil && 2*len(waiting[sender]) > limit+1 {
					t.Fatalf("%s holds %d of %d", sender, len(waiting[sender]), limit)
				}
			},
			"pop": func(t *rapid.T) {
				item, ok := q.pop()
				if ok != (total > 0) {
					t.Fatalf("popped %v with %d waiting", ok, total)
				}
				if !ok {
					return
				}
				total--
				if first := waiting[item.Sender][0]; item.Command.ID != first {
					t.Fatalf("%s of %s came before %s", item.Command.ID, item.Sender, first)
				}
				waiting[item.Sender] = waiting[item.Sender][1:]
				since[item.Sender] = map[string]int{}
				for other, counts := range since {
					if other != item.Sender && len(waiting[other]) > 0 {
						if counts[item.Sender]++; counts[item.Sender] > 1 {
							t.Fatalf("%s was served twice while %s waited", item.Sender, other)
						}
					}
				}
			},
			"": func(t *rapid.T) {
				sum, bytes := 0, 0
				for _, l := range q.turns {
					sum += len(l.items)
					for _, item := range l.items {
						bytes += item.Bytes
					}
				}
				if sum != total || q.count != total || q.bytes != bytes || len(q.lanes) != len(q.turns) {
					t.Fatalf("%d wait; the queue counts %d, %d bytes of %d, %d lanes, %d turns", total, q.count, q.bytes, bytes, len(q.lanes), len(q.turns))
				}
			},
		})
	})
}

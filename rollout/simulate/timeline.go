package simulate

import (
	"container/heap"
	"time"
)

// timeline is the clock, and what is to happen when. Of two things at the same moment the one that was put down first comes first.
type timeline struct {
	now   time.Time
	order uint64
	queue queue
}

type due struct {
	at    time.Time
	order uint64
	do    func()
}

func (t *timeline) after(d time.Duration, do func()) {
	t.order++
	heap.Push(&t.queue, due{at: t.now.Add(max(0, d)), order: t.order, do: do})
}

// next lets the next thing happen, unless it comes after a moment, and says whether it did.
func (t *timeline) next(until time.Time) bool {
	if len(t.queue) == 0 || t.queue[0].at.After(until) {
		t.now = until
		return false
	}
	d, _ := heap.Pop(&t.queue).(due)
	t.now = d.at
	d.do()
	return true
}

// queue is a heap.
type queue []due

func (q queue) Len() int { return len(q) }

func (q queue) Less(a, b int) bool {
	if c := q[a].at.Compare(q[b].at); c != 0 {
		return c < 0
	}
	return q[a].order < q[b].order
}

func (q queue) Swap(a, b int) { q[a], q[b] = q[b], q[a] }

func (q *queue) Push(x any) {
	if d, ok := x.(due); ok {
		*q = append(*q, d)
	}
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	d := (*q)[last]
	(*q)[last] = due{}
	*q = (*q)[:last]
	return d
}

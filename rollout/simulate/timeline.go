package simulate

import "time"

// timeline is the clock, and what is to happen when. Of two things at the same moment the one that was put down first comes first.
type timeline struct {
	now   time.Time
	order uint64
	queue []due
	// ahead counts what is in the queue besides what is done every so often.
	ahead int
}

// due is a thing that is to happen. Its moment is in nanoseconds since 1970: a run compares very many of them.
type due struct {
	at    int64
	order uint64
	do    func()
	// regular says that it is done every so often, whether there is anything to do or not.
	regular bool
}

func (d due) before(o due) bool { return d.at < o.at || d.at == o.at && d.order < o.order }

// after puts down what is to happen after a time.
func (t *timeline) after(d time.Duration, do func()) { t.plan(d, do, false) }

func (t *timeline) plan(d time.Duration, do func(), regular bool) {
	t.order++
	if !regular {
		t.ahead++
	}
	t.put(due{at: t.now.UnixNano() + int64(max(0, d)), order: t.order, do: do, regular: regular})
}

// skip passes over a stretch of time in which there is nothing to do. What is done every so often goes on after it.
func (t *timeline) skip(to time.Time) {
	by := to.UnixNano() - t.now.UnixNano()
	for i := range t.queue {
		t.queue[i].at += by
	}
	t.now = to
}

// next lets the next thing happen, unless it comes after a moment, and says whether it did.
func (t *timeline) next(until time.Time) bool {
	if len(t.queue) == 0 || t.queue[0].at > until.UnixNano() {
		t.now = until
		return false
	}
	d := t.take()
	if !d.regular {
		t.ahead--
	}
	t.now = time.Unix(0, d.at).UTC()
	d.do()
	return true
}

// put and take keep the queue as a heap. That of the standard library makes garbage of each thing that is put into it.
func (t *timeline) put(d due) {
	t.queue = append(t.queue, d)
	at := len(t.queue) - 1
	for at > 0 {
		above := (at - 1) / 2
		if !d.before(t.queue[above]) {
			break
		}
		t.queue[at] = t.queue[above]
		at = above
	}
	t.queue[at] = d
}

func (t *timeline) take() due {
	first, last := t.queue[0], len(t.queue)-1
	d := t.queue[last]
	t.queue[last] = due{}
	t.queue = t.queue[:last]
	at := 0
	for below := 1; below < last; below = 2*at + 1 {
		if right := below + 1; right < last && t.queue[right].before(t.queue[below]) {
			below = right
		}
		if !t.queue[below].before(d) {
			break
		}
		t.queue[at] = t.queue[below]
		at = below
	}
	if last > 0 {
		t.queue[at] = d
	}
	return first
}

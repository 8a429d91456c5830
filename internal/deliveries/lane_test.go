package deliveries

import (
	"testing"

	"catenary/es"
)

// TestLateBehindALostAnswer: a row is behind one that an earlier run recorded, and this run has sent that one again and lost the answer.
// So it looks like this run's own, but it stood already when the row was found behind.
func TestLateBehindALostAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		version uint64 // of the later row
		want    outcome
	}{
		"recorded by an earlier run": {version: 2, want: repeated},
		"recorded by this run":       {version: 3, want: refused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row, later := &item{step: step{place: 0}}, &item{step: step{place: 1}, last: 1}
			told := map[*item]outcome{}
			tell := func(it *item) { told[it] = it.outcome }
			l := &lane{depth: 1}
			l.add(row)
			l.launch(l.sendable())
			l.land(row, behind, es.AnswerError{}, 2)
			l.add(later)
			// It is asked after in vain, sent, and asked after again, since no answer came.
			for _, o := range []outcome{absent, again, repeated} {
				l.launch(later)
				l.land(later, o, es.AnswerError{}, c.version)
			}
			l.settled(tell)
			if told[row] != c.want {
				t.Errorf("the row is %d, want %d", told[row], c.want)
			}
		})
	}
}

package decision

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// Record gives the facts as events of one instance, in order.
func Record(ref es.Ref, facts ...any) []es.KeyedEvent {
	keyed := make([]es.KeyedEvent, len(facts))
	for i, f := range facts {
		keyed[i] = es.KeyedEvent{Ref: ref, Data: f}
	}
	return keyed
}

// Unknown is the error for a command that the decider of its aggregate has no rule for: a fault of the program.
func Unknown(c es.Command) error {
	return errors.AssertionFailedf("%s can't decide %T", c.Ref.Aggregate, c.Data)
}

// MostNames is how many names a message lists before it only counts.
const MostNames = 10

// Names lists names for a message; total is the number of all of them.
func Names(names []string, total int) string {
	s := strings.Join(names[:min(len(names), MostNames)], ", ")
	if rest := total - min(len(names), MostNames); rest > 0 {
		s += fmt.Sprintf(" and %d more", rest)
	}
	return s
}

// Count gives a number with its noun.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

package dispatch_test

import (
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"catenary/es"
)

// accounts is how many accounts a history's commands touch.
const accounts = 4

// world is the whole ledger: what each account holds and how many events it has.
type world [accounts]struct{ balance, version int }

// call is one command as a client sees it. With to < 0 it is a payment in, else a transfer; of nothing it asks for the version
// alone, and of more than anybody has for the balance.
type call struct {
	from, to, amount int
	expected         int // the version the client expects, or -1
}

// told is what a client was told.
type told struct {
	status  es.Status
	version int
	message string
}

// after gives the world after a call that was answered so, and false when no world is.
func (w world) after(c call, t told) (world, bool) {
	done, refused := w, false
	done[c.from].version++
	if c.to >= 0 {
		refused = w[c.from].balance < c.amount
		done[c.from].balance -= c.amount
		done[c.to].balance += c.amount
		done[c.to].version++
	} else {
		done[c.from].balance += c.amount
	}
	conflict, nothing := c.expected >= 0 && c.expected != w[c.from].version, c.amount == 0
	switch t.status {
	case es.StatusAccepted:
		return done, !conflict && !nothing && !refused && t.version == done[c.from].version
	case es.StatusConflict:
		return w, conflict && t.version == w[c.from].version
	case es.StatusUnchanged:
		return w, !conflict && nothing && t.version == w[c.from].version
	case es.StatusRejected:
		return w, !conflict && !nothing && refused && t.version == w[c.from].version && t.message == overdrawn(name(c.from), w[c.from].balance)
	}
	return w, false
}

// model is the ledger as the checker sees it. Where every command touches one account, each account is checked by itself: that
// is as strict, and far less work.
func model(split bool) porcupine.Model {
	seed := maphash.MakeSeed()
	m := porcupine.Model{
		Init: func() any { return world{} },
		Step: func(state, input, output any) (bool, any) {
			w, ok := state.(world).after(input.(call), output.(told))
			return ok, w
		},
		Hash:              func(state any) uint64 { return maphash.Comparable(seed, state.(world)) },
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v → %+v", input, output) },
	}
	if split {
		m.Partition = func(history []porcupine.Operation) [][]porcupine.Operation {
			parts := make([][]porcupine.Operation, accounts)
			for _, o := range history {
				from := o.Input.(call).from
				parts[from] = append(parts[from], o)
			}
			return parts
		}
	}
	return m
}

// forever is the return of a command whose sender was not told that it was done.
const forever = math.MaxInt64

// The checker itself: what it lets pass and what it does not.
func TestHistoryModel(t *testing.T) {
	t.Parallel()
	payIn := func(from, amount int) call { return call{from: from, to: -1, amount: amount, expected: -1} }
	accepted := func(version int) told { return told{status: es.StatusAccepted, version: version} }
	unchanged := func(version int) told { return told{status: es.StatusUnchanged, version: version} }
	op := func(c call, t told, from, to int64) porcupine.Operation {
		return porcupine.Operation{Input: c, Output: t, Call: from, Return: to}
	}
	tests := []struct {
		name    string
		history []porcupine.Operation
		want    porcupine.CheckResult
	}{
		{"one after another", []porcupine.Operation{op(payIn(0, 1), accepted(1), 1, 2), op(payIn(0, 1), accepted(2), 3, 4), op(payIn(0, 0), unchanged(2), 5, 6)}, porcupine.Ok},
		{"at once, in either order", []porcupine.Operation{op(payIn(0, 1), accepted(2), 1, 4), op(payIn(0, 1), accepted(1), 2, 3)}, porcupine.Ok},
		{"against the order of the clock", []porcupine.Operation{op(payIn(0, 1), accepted(2), 1, 2), op(payIn(0, 1), accepted(1), 3, 4)}, porcupine.Illegal},
		{"lost", []porcupine.Operation{op(payIn(0, 1), accepted(1), 1, 2), op(payIn(0, 0), unchanged(0), 3, 4)}, porcupine.Illegal},
		{"doubled", []porcupine.Operation{op(payIn(0, 1), accepted(1), 1, 2), op(payIn(0, 0), unchanged(2), 3, 4)}, porcupine.Illegal},
		{"done, but nobody was told", []porcupine.Operation{op(payIn(0, 1), accepted(1), 1, forever), op(payIn(0, 0), unchanged(0), 2, 3), op(payIn(0, 0), unchanged(1), 4, 5)}, porcupine.Ok},
		{"done before it was sent", []porcupine.Operation{op(payIn(0, 0), unchanged(1), 1, 2), op(payIn(0, 1), accepted(1), 3, forever)}, porcupine.Illegal},
		{"refused for what was so a moment ago", []porcupine.Operation{
			op(payIn(0, 5), accepted(1), 1, 2), op(call{0, 1, 4, -1}, told{status: es.StatusRejected, version: 0, message: overdrawn("a0", 0)}, 3, 4),
		}, porcupine.Illegal},
		{"write skew", []porcupine.Operation{
			op(payIn(0, 5), accepted(1), 1, 2), op(call{0, 1, 5, -1}, accepted(2), 3, 6), op(call{0, 2, 5, -1}, accepted(2), 4, 5),
		}, porcupine.Illegal},
		{"a conflict that was none", []porcupine.Operation{op(call{0, -1, 1, 0}, told{status: es.StatusConflict, version: 0}, 1, 2)}, porcupine.Illegal},
	}
	for _, tt := range tests {
		if got := porcupine.CheckOperationsTimeout(model(false), tt.history, checkLimit); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		parts := slices.ContainsFunc(tt.history, func(o porcupine.Operation) bool { return o.Input.(call).to >= 0 })
		if parts {
			continue
		}
		if got := porcupine.CheckOperationsTimeout(model(true), tt.history, checkLimit); got != tt.want {
			t.Errorf("%s, split: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// checkLimit bounds the check of one history, which takes milliseconds.
const checkLimit = 30 * time.Second

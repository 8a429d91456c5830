package proof

import (
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"

	"catenary/es"
)

// Accumulator computes roots while events pass, with a few hashes of memory. It rests on nothing that is kept, so that what is
// kept can be checked with it. The zero value is that of the empty chain.
type Accumulator struct {
	Head es.Head `json:"head"`
	// Subtrees are the roots of the full subtrees so far, the largest first: one for each bit of the number of events.
	Subtrees []tlog.Hash `json:"subtrees,omitempty"`
}

// Add takes in the event that the head ends with, which MUST be the next one.
func (a *Accumulator) Add(h es.Head) {
	a.Head = h
	hash := LeafHash(h)
	for range bits.TrailingZeros64(h.Sequence) {
		last := len(a.Subtrees) - 1
		hash = tlog.NodeHash(a.Subtrees[last], hash)
		a.Subtrees = a.Subtrees[:last]
	}
	a.Subtrees = append(a.Subtrees, hash)
}

// Root gives the root over all events so far. Of no events it is the hash of nothing, as RFC 6962 has it.
func (a *Accumulator) Root() tlog.Hash {
	if len(a.Subtrees) == 0 {
		return emptyRoot()
	}
	root := a.Subtrees[len(a.Subtrees)-1]
	for i := len(a.Subtrees) - 2; i >= 0; i-- {
		root = tlog.NodeHash(a.Subtrees[i], root)
	}
	return root
}

// whole says whether there are as many subtrees as the number of events asks for.
func (a *Accumulator) whole() bool { return bits.OnesCount64(a.Head.Sequence) == len(a.Subtrees) }

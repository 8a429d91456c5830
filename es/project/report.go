package project

import "catenary/es"

// Report is what [Verify] found.
type Report struct {
	// Events counts the events whose chain holds and that were folded, from the first one on; Head is the last of them.
	Events uint64  `json:"events"`
	Head   es.Head `json:"head"`
	// Chain says where the stream itself is damaged. Nothing after that is compared.
	Chain   string         `json:"chain,omitempty"`
	Buckets []BucketReport `json:"buckets"`
}

// OK says whether the stream is whole and every bucket equals a fresh fold of it.
func (r Report) OK() bool {
	for _, b := range r.Buckets {
		if !b.OK() {
			return false
		}
	}
	return r.Chain == ""
}

// BucketReport is what one bucket was found to be.
type BucketReport struct {
	// Name is the view's, Bucket that of the generation of its bucket which was compared.
	Name   string `json:"name"`
	Bucket string `json:"bucket"`
	// Keys and Values count what a fresh fold gives.
	Keys   int    `json:"keys"`
	Values uint64 `json:"values"`
	// Revision is the last one that was compared, Digest sums up the bucket up to it (see [Digest]).
	Revision uint64 `json:"revision"`
	Digest   string `json:"digest"`
	// Behind is the first event whose values do not stand at the bucket's end, if so: the projector has not come to it, or
	// the bucket has lost its end.
	Behind uint64 `json:"behind,omitempty"`
	// Unfolded says why the view could not fold an event. Nothing after that is compared.
	Unfolded string `json:"unfolded,omitempty"`
	// Differences lists what is not as a fresh fold has it, at most [MaxDifferences]; More counts the others.
	Differences []Difference `json:"differences"`
	More        int          `json:"more,omitempty"`
	// Mended counts the values that were written again to mend the bucket. What they replace is no difference any more.
	Mended uint64 `json:"mended,omitempty"`
}

// OK says whether the bucket equals a fresh fold.
func (b BucketReport) OK() bool {
	return len(b.Differences) == 0 && b.Behind == 0 && b.Unfolded == ""
}

// Kind says how a value differs.
type Kind string

// The kinds of a difference.
const (
	// KindMissing is a value that the fold gives and the bucket does not have.
	KindMissing Kind = "missing"
	// KindExtra is a value in the bucket that the fold does not give.
	KindExtra Kind = "extra"
	// KindChanged is a value of the fold that stands with other bytes, under another key or with other headers.
	KindChanged Kind = "changed"
	// KindForeign is a message in the bucket that does not say which event it comes from.
	KindForeign Kind = "foreign"
)

// Difference is one value that is not as a fresh fold has it.
type Difference struct {
	Kind Kind   `json:"kind"`
	Key  string `json:"key"`
	// Event is the event that the value comes from, or says it comes from.
	Event uint64 `json:"event,omitempty"`
	// Revision is where it stands in the bucket; zero for a missing one.
	Revision uint64 `json:"revision,omitempty"`
	Detail   string `json:"detail"`
}

// MaxDifferences bounds the differences a report lists for one bucket. A damaged bucket can have millions.
const MaxDifferences = 100

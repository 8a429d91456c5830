package project

import "slices"

// maxFindings bounds the differences that a check holds. A bucket with more of them is not mended value by value, but
// built anew.
const maxFindings = 10_000

// findings are the differences of one bucket, as far as no later value has mended them.
type findings struct {
	open []Difference
	more int
}

func (f *findings) add(d Difference) {
	if len(f.open) == maxFindings {
		f.more++
		return
	}
	f.open = append(f.open, d)
}

// settle takes out the difference at a revision under a key, which a later value mends.
func (f *findings) settle(key string, revision uint64) {
	f.open = slices.DeleteFunc(f.open, func(d Difference) bool { return d.Revision == revision && d.Key == key })
}

// list gives the first of them, and how many others there are.
func (f *findings) list() ([]Difference, int) {
	shown := min(len(f.open), MaxDifferences)
	return append([]Difference{}, f.open[:shown]...), len(f.open) - shown + f.more
}

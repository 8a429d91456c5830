package perkey

import "catenary/chain"

const (
	// maxRecentBytes bounds what the decoded records of one view may take: a few ten thousand of usual size, which is more than
	// change within seconds. Others are decoded again when their next event comes.
	maxRecentBytes = 32 << 20
	// A decoded record takes about twice what it takes as JSON, and so much besides.
	recordOverheadBytes = 256
)

// recent is the list of the slots whose records are at hand, the one used last first. It lets go of the oldest ones when
// they take too much.
type recent[T chain.Record] struct {
	limit          int
	bytes          int
	newest, oldest *slot[T]
}

func (s *slot[T]) recordBytes() int { return 2*len(s.value) + recordOverheadBytes }

// add puts a slot that is not in the list in front.
func (r *recent[T]) add(s *slot[T]) {
	s.newer, s.old = nil, r.newest
	if r.newest != nil {
		r.newest.newer = s
	} else {
		r.oldest = s
	}
	r.newest = s
	for r.bytes += s.recordBytes(); r.bytes > r.limit && r.oldest != s; {
		r.drop(r.oldest)
	}
}

// drop lets go of a slot's record. Its value MUST be the one it was added with.
func (r *recent[T]) drop(s *slot[T]) {
	if s.record == nil {
		return
	}
	r.bytes -= s.recordBytes()
	if s.newer != nil {
		s.newer.old = s.old
	} else {
		r.newest = s.old
	}
	if s.old != nil {
		s.old.newer = s.newer
	} else {
		r.oldest = s.newer
	}
	s.record, s.newer, s.old = nil, nil, nil
}

package journal

import (
	"fmt"
	"slices"

	"catenary/es"
)

// Log remembers how to undo changes, back to the oldest open mark. The zero value is ready for use.
type Log struct {
	// undo holds the changes since the oldest open mark, oldest first; base is the position of its first entry.
	undo []func()
	base uint64
	// marks are the open ones, oldest first. Their numbers and positions never decrease.
	marks []mark
	last  es.Mark
}

type mark struct {
	number   es.Mark
	position uint64
}

// Mark opens a mark: a point to go back to.
func (l *Log) Mark() es.Mark {
	l.last++
	l.marks = append(l.marks, mark{number: l.last, position: l.base + uint64(len(l.undo))})
	return l.last
}

// Rollback undoes all changes since the mark, newest first. The mark stays open, later ones are closed. It panics on a mark
// that is not open: what should be undone may be forgotten already.
func (l *Log) Rollback(m es.Mark) {
	at, ok := l.find(m)
	if !ok {
		panic(fmt.Sprintf("journal: mark %d is not open", m))
	}
	keep := int(l.marks[at].position - l.base)
	undo := l.undo
	l.undo = l.undo[:keep]
	for i := len(undo) - 1; i >= keep; i-- {
		undo[i]()
		undo[i] = nil
	}
	l.marks = l.marks[:at+1]
}

// Release closes the marks up to and including this one, and forgets the changes that no open mark can undo any more. A
// mark that is closed already is left alone.
func (l *Log) Release(m es.Mark) {
	at, ok := l.find(m)
	if ok {
		at++
	}
	l.marks = slices.Delete(l.marks, 0, at)
	end := l.base + uint64(len(l.undo))
	if len(l.marks) > 0 {
		end = l.marks[0].position
	}
	l.undo = slices.Delete(l.undo, 0, int(end-l.base))
	l.base = end
}

// find gives the place of a mark, or of the first later one.
func (l *Log) find(m es.Mark) (int, bool) {
	return slices.BinarySearchFunc(l.marks, m, func(a mark, m es.Mark) int { return int(a.number - m) })
}

// Remember keeps how to undo a change that is about to be made. What it is given MUST restore exactly what was there, and
// MUST NOT change anything through a journaled container. Without an open mark nothing is kept, so whoever makes the
// closure asks [Log.Open] first.
func (l *Log) Remember(undo func()) {
	if l.Open() {
		l.undo = append(l.undo, undo)
	}
}

// Open says whether changes have to be remembered.
func (l *Log) Open() bool { return len(l.marks) > 0 }

package journal

import (
	"cmp"
	"slices"
)

// Index holds a set of members for each key.
type Index[K comparable, M cmp.Ordered] struct {
	log  *Log
	sets map[K]*set[M]
}

// NewIndex returns an empty index whose changes the log remembers.
func NewIndex[K comparable, M cmp.Ordered](log *Log) *Index[K, M] {
	return &Index[K, M]{log: log, sets: map[K]*set[M]{}}
}

// Count gives the number of a key's members.
func (x *Index[K, M]) Count(key K) int {
	if s := x.sets[key]; s != nil {
		return s.len()
	}
	return 0
}

// Has says whether the key has the member.
func (x *Index[K, M]) Has(key K, member M) bool {
	s := x.sets[key]
	return s != nil && s.has(member)
}

// Members gives a key's members in order. It costs a sort.
func (x *Index[K, M]) Members(key K) []M {
	if s := x.sets[key]; s != nil {
		return s.sorted()
	}
	return nil
}

// Each gives a key's members, in no order. The set MUST NOT be changed meanwhile.
func (x *Index[K, M]) Each(key K, visit func(M)) {
	if s := x.sets[key]; s != nil {
		s.each(visit)
	}
}

// First gives the first n of a key's members in order, without sorting all of them.
func (x *Index[K, M]) First(key K, n int) []M {
	s := x.sets[key]
	if s == nil || n <= 0 {
		return nil
	}
	var first []M
	s.each(func(m M) {
		at, _ := slices.BinarySearch(first, m)
		if at == n {
			return
		}
		if len(first) == n {
			first = first[:n-1]
		}
		first = slices.Insert(first, at, m)
	})
	return first
}

// Add puts a member into a key's set. Adding it again changes nothing.
func (x *Index[K, M]) Add(key K, member M) {
	if x.add(key, member) && x.log.Open() {
		x.log.Remember(func() { x.remove(key, member) })
	}
}

// Remove takes a member out of a key's set. Removing one that is not there changes nothing.
func (x *Index[K, M]) Remove(key K, member M) {
	if !x.Has(key, member) {
		return
	}
	if x.log.Open() {
		x.log.Remember(func() { x.add(key, member) })
	}
	x.remove(key, member)
}

// add says whether the member is new.
func (x *Index[K, M]) add(key K, member M) bool {
	s := x.sets[key]
	if s == nil {
		s = &set[M]{}
		x.sets[key] = s
	}
	return s.add(member)
}

func (x *Index[K, M]) remove(key K, member M) {
	if s := x.sets[key]; s != nil {
		if s.remove(member); s.len() == 0 {
			delete(x.sets, key)
		}
	}
}

// fewMembers is how many members a set keeps in a slice: below it, a slice is smaller than a map and as quick.
const fewMembers = 16

// set is a set that is small while it has few members.
type set[M cmp.Ordered] struct {
	few  []M
	many map[M]struct{}
}

func (s *set[M]) len() int { return len(s.few) + len(s.many) }

func (s *set[M]) has(m M) bool {
	if s.many != nil {
		_, ok := s.many[m]
		return ok
	}
	return slices.Contains(s.few, m)
}

// add says whether the member is new.
func (s *set[M]) add(m M) bool {
	if s.many == nil {
		if slices.Contains(s.few, m) {
			return false
		}
		if len(s.few) < fewMembers {
			s.few = append(s.few, m)
			return true
		}
		s.many = make(map[M]struct{}, 2*fewMembers)
		for _, f := range s.few {
			s.many[f] = struct{}{}
		}
		s.few = nil
	}
	before := len(s.many)
	s.many[m] = struct{}{}
	return len(s.many) > before
}

// remove leaves a large set large: one that grew once will grow again.
func (s *set[M]) remove(m M) {
	if s.many != nil {
		delete(s.many, m)
		return
	}
	if at := slices.Index(s.few, m); at >= 0 {
		s.few = slices.Delete(s.few, at, at+1)
	}
}

func (s *set[M]) each(visit func(M)) {
	for _, m := range s.few {
		visit(m)
	}
	for m := range s.many {
		visit(m)
	}
}

func (s *set[M]) sorted() []M {
	list := make([]M, 0, s.len())
	s.each(func(m M) { list = append(list, m) })
	slices.Sort(list)
	return list
}

package project

import (
	"cmp"
	"slices"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// UnknownType counts events of a type that the program does not know.
type UnknownType struct {
	Type   string `json:"type"`
	Events uint64 `json:"events"`
	First  uint64 `json:"first"`
	Last   uint64 `json:"last"`
}

// unknownTypes counts the events of unknown types that came by, each once however often it comes.
type unknownTypes map[string]UnknownType

// met counts an event, if its type is unknown. It keeps no more than [MaxListed] types.
func (u unknownTypes) met(it *item) {
	if !errors.Is(it.err, es.ErrUnknownType) {
		return
	}
	t, known := u[it.event.Type]
	switch {
	case !known && len(u) == MaxListed:
		return
	case !known:
		t = UnknownType{Type: it.event.Type, First: it.head.Sequence}
	}
	if it.head.Sequence > t.Last {
		t.Events, t.Last = t.Events+1, it.head.Sequence
	}
	u[it.event.Type] = t
}

// list gives what was counted, by type.
func (u unknownTypes) list() []UnknownType {
	var list []UnknownType
	for _, t := range u {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b UnknownType) int { return cmp.Compare(a.Type, b.Type) })
	return list
}

package build

import (
	"catenary/aggregates/content"
	"catenary/events"
)

// Status is how a build stands.
type Status uint8

// The statuses of a build.
const (
	Unknown Status = iota
	Asked
	NotAsked
	OutcomeUnknown
	Succeeded
	Failed
)

func (s Status) String() string {
	return [...]string{"not known", "asked", "not asked", "without a known outcome", "succeeded", "failed"}[s]
}

// Answered says whether the build has an outcome.
func (s Status) Answered() bool { return s == Succeeded || s == Failed }

// Reask is how far asking a build again has come.
type Reask uint8

// The stages of asking again.
const (
	NoReask Reask = iota
	ReaskPending
	ReaskClaimed
	Reasked
)

// State is what rules need of a build.
type State struct {
	Status Status
	Reask  Reask
	// Bytes bounds the size of the build's record.
	Bytes uint32
	// Spec stands for what it was asked to make, Outcome for what became of it: why it was not asked, or its outcome.
	Spec, Outcome content.Digest
	// Module and Commit are what it was asked to make. They are dropped when it failed: nothing can come of it then.
	Module, Commit string
	// ReuseKey is kept until there is an outcome.
	ReuseKey string
	// Other is who claimed the re-ask, or the id of the build it was asked as.
	Other string
	// Published is what it published; nothing until it did.
	Published events.Reference
}

// World is what deciding about a build needs of everything else.
type World interface {
	// Build gives the state of a build.
	Build(id string) State
	// Reusable gives the first build that succeeded with the reuse key.
	Reusable(reuseKey string) (id string, ok bool)
	// RecordedFor says whether a publication is recorded, and for which build; a publication may be recorded for none.
	RecordedFor(ref events.Reference) (build string, recorded bool)
}

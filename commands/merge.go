package commands

import (
	"time"

	"catenary/es"
	"catenary/events"
)

// HoldMerge says that a merge is there and waits to be carried.
type HoldMerge struct {
	Repository string     `json:"repository"`
	Branch     string     `json:"branch"`
	Commit     string     `json:"commit"`
	Merged     time.Time  `json:"merged,omitempty,omitzero"`
	Heard      time.Time  `json:"heard,omitempty,omitzero"`
	Event      events.Raw `json:"event,omitempty"`
	Alone      bool       `json:"alone,omitempty"`
	// Waiting is why it waits.
	Waiting string `json:"waiting"`
}

// TakeMerge lets a rollout carry a merge, whichever had it before.
type TakeMerge struct {
	Repository string `json:"repository"`
	Branch     string `json:"branch"`
	Commit     string `json:"commit"`
	Rollout    string `json:"rollout"`
}

// ReleaseMerge says that a merge waits no more.
type ReleaseMerge struct {
	Repository string `json:"repository"`
	Branch     string `json:"branch"`
	Commit     string `json:"commit"`
	Placed     bool   `json:"placed,omitempty"`
	Reason     string `json:"reason,omitempty"`
}

// MergeRef is the instance of a commit that came onto a branch.
func MergeRef(repository, branch, commit string) es.Ref {
	return es.Ref{Aggregate: events.AggregateMerge, Key: es.Key(repository, branch, commit)}
}

// Ref is the merge.
func (c HoldMerge) Ref() es.Ref { return MergeRef(c.Repository, c.Branch, c.Commit) }

// Ref is the merge.
func (c TakeMerge) Ref() es.Ref { return MergeRef(c.Repository, c.Branch, c.Commit) }

// Ref is the merge.
func (c ReleaseMerge) Ref() es.Ref { return MergeRef(c.Repository, c.Branch, c.Commit) }

// Verb is hold.
func (HoldMerge) Verb() string { return "hold" }

// Verb is take.
func (TakeMerge) Verb() string { return "take" }

// Verb is release.
func (ReleaseMerge) Verb() string { return "release" }

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c HoldMerge) Validate() error {
	var k check
	k.merge(c.Repository, c.Branch, c.Commit)
	k.raw("event", c.Event)
	k.need("waiting", c.Waiting)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c TakeMerge) Validate() error {
	var k check
	k.merge(c.Repository, c.Branch, c.Commit)
	k.name("rollout", c.Rollout)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c ReleaseMerge) Validate() error {
	var k check
	k.merge(c.Repository, c.Branch, c.Commit)
	k.text("reason", c.Reason)
	return k.done(c.Ref())
}

func (c *check) merge(repository, branch, commit string) {
	c.name("repository", repository)
	c.name("branch", branch)
	c.name("commit", commit)
}

package commands

import (
	"time"

	"catenary/es"
	"catenary/events"
)

// RecordCommit says that a commit stands on a branch.
type RecordCommit struct {
	Repository string    `json:"repository"`
	Branch     string    `json:"branch,omitempty"`
	Commit     string    `json:"commit"`
	Merged     time.Time `json:"merged,omitzero"`
	Heard      time.Time `json:"heard,omitzero"`
	// Author is a person's name; the writer keeps only an opaque id.
	Author string `json:"author,omitempty"`
}

// Ref is the commit.
func (c RecordCommit) Ref() es.Ref {
	return es.Ref{Aggregate: events.AggregateCommit, Key: es.Key(c.Repository, c.Commit)}
}

// Verb is record.
func (RecordCommit) Verb() string { return "record" }

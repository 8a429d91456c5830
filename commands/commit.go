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
	Merged     time.Time `json:"merged,omitempty,omitzero"`
	Heard      time.Time `json:"heard,omitempty,omitzero"`
	// Author is a person's name; the writer keeps only an opaque id.
	Author string `json:"author,omitempty"`
}

// CommitRef is the instance of a repository's commit.
func CommitRef(repository, commit string) es.Ref {
	return es.Ref{Aggregate: events.AggregateCommit, Key: es.Key(repository, commit)}
}

// Ref is the commit.
func (c RecordCommit) Ref() es.Ref {
	return CommitRef(c.Repository, c.Commit)
}

// Verb is record.
func (RecordCommit) Verb() string { return "record" }

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c RecordCommit) Validate() error {
	var k check
	k.name("repository", c.Repository)
	k.maybeName("branch", c.Branch)
	k.name("commit", c.Commit)
	k.maybeName("author", c.Author)
	return k.done(c.Ref())
}

// MapPersons replaces the author's name.
func (c RecordCommit) MapPersons(id func(name string) (string, error)) (es.Payload, error) {
	if c.Author == "" {
		return c, nil
	}
	author, err := id(c.Author)
	if err != nil {
		return nil, err
	}
	c.Author = author
	return c, nil
}

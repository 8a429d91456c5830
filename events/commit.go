package events

import "time"

// Commit is a fact about a commit of a repository.
//
//sumtype:decl
type Commit interface{ isCommit() }

// CommitRecorded says that a commit stands on a branch.
type CommitRecorded struct {
	Repository string `json:"repository"`
	Branch     string `json:"branch,omitempty"`
	Commit     string `json:"commit"`
	// Merged is when it came onto the branch, Heard when we were told.
	Merged time.Time `json:"merged,omitempty,omitzero"`
	Heard  time.Time `json:"heard,omitempty,omitzero"`
	// Author is an opaque id of the actor directory.
	Author string `json:"author,omitempty"`
}

func (CommitRecorded) isCommit() {}

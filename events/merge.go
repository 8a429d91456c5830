package events

import "time"

// Merge is a fact about a merge: a commit that came onto a branch and is to be carried by a rollout.
//
//sumtype:decl
type Merge interface{ isMerge() }

// MergeHeld says that a merge waits to be carried, and why.
type MergeHeld struct {
	Repository string `json:"repository"`
	Branch     string `json:"branch"`
	Commit     string `json:"commit"`
	// Merged is when it came onto the branch, Heard when we were told.
	Merged time.Time `json:"merged,omitempty,omitzero"`
	Heard  time.Time `json:"heard,omitempty,omitzero"`
	// Event is what told us, JSON kept byte for byte.
	Event Raw `json:"event,omitempty"`
	// Alone says that no other merge may share its rollout.
	Alone bool `json:"alone,omitempty"`
	// Waiting is why it waits.
	Waiting string `json:"waiting"`
}

// MergeTaken says which rollout carries the merge from now on, whichever had it before. It waits until it is released.
type MergeTaken struct {
	Rollout string `json:"rollout"`
}

// MergeReleased says that a merge waits no more.
type MergeReleased struct {
	// Placed says that its rollout has brought it where it belongs.
	Placed bool   `json:"placed,omitempty"`
	Reason string `json:"reason,omitempty"`
}

func (MergeHeld) isMerge()     {}
func (MergeTaken) isMerge()    {}
func (MergeReleased) isMerge() {}

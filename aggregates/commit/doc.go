// Package commit decides about commits of repositories.
//
// It owns one rule: a commit is recorded once. When somebody heard of it is no part of what it is, so hearing of it again is
// no change.
package commit

// Package commits is the view of commits: on which branch they stand, when they came there, and who wrote them.
//
// It owns the fold into [chain.Commit]. It leaves names of authors to the actor directory: the record holds an opaque id.
//
// Invariants: a commit whose recorder did not say when we heard of it was heard of when it was recorded.
package commits

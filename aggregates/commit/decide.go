package commit

import (
	"fmt"

	"catenary/aggregates/content"
	"catenary/aggregates/decision"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// CodeRecorded is the code of the refusal of a commit that is recorded with other content.
const CodeRecorded = "recorded"

// Decide gives what a command about a commit leads to. It gives errors of type *[es.Refusal].
func Decide(s State, c es.Command) ([]es.KeyedEvent, error) {
	p, ok := c.Data.(commands.RecordCommit)
	if !ok {
		return nil, decision.Unknown(c)
	}
	fact := events.CommitRecorded{
		Repository: p.Repository, Branch: p.Branch, Commit: p.Commit, Merged: p.Merged.UTC(), Heard: p.Heard.UTC(), Author: p.Author,
	}
	switch s.Content {
	case content.Digest{}:
		return decision.Record(c.Ref, fact), nil
	case said(fact):
		return nil, nil
	}
	return nil, es.Refuse(CodeRecorded, fmt.Sprintf("commit %s of %s is recorded with another branch, author or merge time", p.Commit, p.Repository),
		"a commit is recorded once and never changes")
}

package assignment

import (
	"fmt"

	"catenary/aggregates/build"
	"catenary/aggregates/publication"
	"catenary/es"
	"catenary/events"
)

// request is what somebody says a node shall run. It may say the same thing in several ways, or only a part of it.
type request struct {
	ref           events.Reference
	build, commit string
	reason        string
}

// settle fills in what the chain knows: what a build published, and which build and commit a publication comes from. It refuses
// what contradicts the chain. A publication that is not recorded is taken as it was said.
func (r request) settle(w World) (Run, publication.State, error) {
	if r.build != "" {
		b := w.Build(r.build)
		if err := r.agree(b); err != nil {
			return Run{}, publication.State{}, err
		}
		r.ref, r.commit = b.Published, b.Commit
	}
	var p publication.State
	if !r.ref.IsZero() {
		p = w.Publication(r.ref)
	}
	if r.build == "" {
		r.build = p.Build
	}
	switch {
	case r.commit == "":
		r.commit = p.Commit
	case p.Commit != "" && p.Commit != r.commit:
		return Run{}, p, mismatch(CodeCommitMismatch, fmt.Sprintf("%s comes from commit %s, not %s", r.ref, p.Commit, r.commit), "commit")
	}
	return running(r.ref, r.build, r.commit), p, nil
}

// agree refuses a build that has published nothing, or something else than was said.
func (r request) agree(b build.State) error {
	if err := build.Known(r.build, b); err != nil {
		return err
	}
	switch {
	case b.Published.IsZero():
		return es.Refuse(CodeNotPublished, fmt.Sprintf("build %s is %s and has published nothing", r.build, b.Status), "assign what is published, or record it with build publish")
	case !r.ref.IsZero() && !r.ref.Equal(b.Published):
		return mismatch(CodeReferenceMismatch, fmt.Sprintf("build %s published %s, not %s", r.build, b.Published, r.ref), "package or artifact")
	case r.commit != "" && r.commit != b.Commit:
		return mismatch(CodeCommitMismatch, fmt.Sprintf("build %s is of commit %s, not %s", r.build, b.Commit, r.commit), "commit")
	}
	return nil
}

func mismatch(code, message, field string) error {
	return es.Refuse(code, message, "leave the "+field+" out to take what is known")
}

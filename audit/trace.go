package audit

import (
	"time"

	"catenary/events"
)

// QuestionTrace asks what came from something and what it came from: catenary.query.trace.
const QuestionTrace = "trace"

// Things that can be traced.
const (
	TraceCommit     = "commit"
	TraceBuild      = "build"
	TraceArtifact   = "artifact"
	TracePackage    = "package"
	TraceAssignment = "assignment"
)

// TraceQuestion asks for the way from commits over builds and publications to nodes, in both directions.
type TraceQuestion struct {
	// Of is a commit (or the beginning of one, seven characters at least), a build id, a digest, NAME@VERSION or NODE/MODULE.
	Of string `json:"of"`
	// As says which of the Trace constants it is. Without it every one that exists is taken.
	As string `json:"as,omitempty"`
	// Moment is when an assignment is looked at, and how much is known; without one, now.
	Moment
	// Limit bounds each list of the answer, MaxPageItems at most and by default.
	Limit int `json:"limit,omitempty"`
	// Cursor goes on with what was carried: it is the Next of the answer before. The other lists are left empty then.
	Cursor string `json:"cursor,omitempty"`
}

// TraceAnswer is the whole way, each list in the order it was recorded. What was found by going down from a commit and what was
// found by going up from a node stand in the same lists.
type TraceAnswer struct {
	// As lists what the text was found to be, of the Trace constants.
	As          []string            `json:"as"`
	Commits     []TracedCommit      `json:"commits"`
	Builds      []TracedBuild       `json:"builds"`
	Published   []TracedPublication `json:"published"`
	Assignments []Standing          `json:"assignments"`
	// Carried are the modules and commits that the manifests of the builds name: those whose commit was merged last come first, and those of
	// which nobody recorded that last.
	Carried []Carried `json:"carried"`
	// CarriedCount is how many there are, on all pages.
	CarriedCount int `json:"carried-count"`
	// Next is the cursor of the next page of Carried; empty on the last one.
	Next string `json:"next,omitempty"`
	// More says that another list was cut at the limit.
	More bool `json:"more,omitempty"`
	Basis
}

// TracedCommit is a commit on the way.
type TracedCommit struct {
	Repository string    `json:"repository"`
	Commit     string    `json:"commit"`
	Branch     string    `json:"branch,omitempty"`
	Merged     time.Time `json:"merged,omitzero"`
	Author     *Person   `json:"author,omitempty"`
	Sequence   uint64    `json:"sequence"`
}

// TracedBuild is a build on the way.
type TracedBuild struct {
	ID         string `json:"id"`
	Module     string `json:"module,omitempty"`
	Repository string `json:"repository,omitempty"`
	Commit     string `json:"commit,omitempty"`
	// State is set while the build has no outcome, Failed when it could not be made.
	State    string    `json:"state,omitempty"`
	Failed   string    `json:"failed,omitempty"`
	At       time.Time `json:"at,omitzero"`
	Sequence uint64    `json:"sequence"`
}

// TracedPublication is a publication on the way.
type TracedPublication struct {
	events.Reference
	Build    string    `json:"build,omitempty"`
	Commit   string    `json:"commit,omitempty"`
	Module   string    `json:"module,omitempty"`
	At       time.Time `json:"at,omitzero"`
	Vetoed   bool      `json:"vetoed,omitempty"`
	Sequence uint64    `json:"sequence"`
}

// Carried is one line of a build's manifest: a module or a commit that came with it. Manifests are free JSON; they are read for
// two lists, wherever they stand at the top:
//
//	{"modules": [{"module": "m", "version": "v1", "repository": "r", "commit": "c"}, …],
//	 "commits": [{"repository": "r", "commit": "c", "module": "m"}, …]}
//
// where a member of a list may also be plain text: a module's name, or a commit.
type Carried struct {
	Build      string `json:"build"`
	Module     string `json:"module,omitempty"`
	Version    string `json:"version,omitempty"`
	Repository string `json:"repository,omitempty"`
	Commit     string `json:"commit,omitempty"`
	// Merged is when the commit was merged, where that was recorded.
	Merged time.Time `json:"merged,omitzero"`
}

package events

// Build is a fact about a build.
//
//sumtype:decl
type Build interface{ isBuild() }

// What a build was asked for.
const (
	ForMerge  = "merge"
	ForPlan   = "plan"
	ForBuild  = "build"
	ForAssign = "assign"
)

// BuildSpec is what a build was asked to make.
type BuildSpec struct {
	ID         string `json:"id"`
	Module     string `json:"module"`
	Repository string `json:"repository"`
	Seat       string `json:"seat,omitempty"`
	Path       string `json:"path,omitempty"`
	Ref        string `json:"ref,omitempty"`
	Commit     string `json:"commit"`
	// For is one of the For constants.
	For string `json:"for,omitempty"`
	// On is the machine or service that builds.
	On                string   `json:"on,omitempty"`
	Against           []string `json:"against,omitempty"`
	Sources           []Source `json:"sources,omitempty"`
	SourceFingerprint string   `json:"source-fingerprint,omitempty"`
	// ReuseKey is equal for builds that would give the same result.
	ReuseKey string `json:"reuse-key,omitempty"`
}

// BuildAsked says that a build was handed over to be made.
type BuildAsked struct {
	BuildSpec
	// Reasks is the build this one asks again.
	Reasks string `json:"reasks,omitempty"`
}

// BuildNotAsked says that a build could not be handed over.
type BuildNotAsked struct {
	BuildSpec
	Why string `json:"why"`
}

// BuildOutcomeUnknown says that the asker stopped waiting.
type BuildOutcomeUnknown struct {
	Why string `json:"why"`
}

// BuildReaskPending says that the build shall be asked again.
type BuildReaskPending struct {
	Reason string `json:"reason,omitempty"`
}

// BuildReaskClaimed says that somebody is about to ask again, and nobody else may.
type BuildReaskClaimed struct {
	By string `json:"by,omitempty"`
}

// BuildReasked says as which build it was asked again.
type BuildReasked struct {
	As string `json:"as"`
}

// BuildSucceeded says that a build was made.
type BuildSucceeded struct {
	Made     []Made   `json:"made,omitempty"`
	Mirrored []string `json:"mirrored,omitempty"`
	Read     []Read   `json:"read,omitempty"`
	// Manifest is JSON kept byte for byte.
	Manifest Raw `json:"manifest,omitempty"`
}

// BuildFailed says that a build could not be made.
type BuildFailed struct {
	Failed string `json:"failed"`
}

// BuildPublished says what a build published, once and never twice.
type BuildPublished struct {
	Reference
}

func (BuildAsked) isBuild()          {}
func (BuildNotAsked) isBuild()       {}
func (BuildOutcomeUnknown) isBuild() {}
func (BuildReaskPending) isBuild()   {}
func (BuildReaskClaimed) isBuild()   {}
func (BuildReasked) isBuild()        {}
func (BuildSucceeded) isBuild()      {}
func (BuildFailed) isBuild()         {}
func (BuildPublished) isBuild()      {}

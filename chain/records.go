package chain

import (
	"time"

	"catenary/events"
)

// Module is a record of chain-modules.
type Module struct {
	Name       string            `json:"name"`
	Repository string            `json:"repository,omitempty"`
	Seat       string            `json:"seat,omitempty"`
	Path       string            `json:"path,omitempty"`
	Kind       string            `json:"kind,omitempty"`
	Requires   []string          `json:"requires,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	Delivery   *events.Delivery  `json:"delivery,omitempty"`
	Registered time.Time         `json:"registered,omitzero"`
	Ended      time.Time         `json:"ended,omitzero"`
}

// Stands says whether the module is known, and not forgotten.
func (m Module) Stands() bool { return m.Ended.IsZero() }

// Commit is a record of chain-commits.
type Commit struct {
	Repository string    `json:"repository"`
	Branch     string    `json:"branch,omitempty"`
	Commit     string    `json:"commit"`
	Merged     time.Time `json:"merged,omitzero"`
	Heard      time.Time `json:"heard,omitzero"`
	// Author is an opaque id of the actor directory.
	Author string `json:"author,omitempty"`
}

// States of a build whose outcome is not known.
const (
	BuildAsked          = "asked"
	BuildNotAsked       = "not-asked"
	BuildOutcomeUnknown = "outcome-unknown"
)

// Build is a record of chain-builds.
type Build struct {
	ID string `json:"id"`
	// State is set while the build has no outcome.
	State             string            `json:"state,omitempty"`
	Repository        string            `json:"repository,omitempty"`
	Ref               string            `json:"ref,omitempty"`
	Module            string            `json:"module,omitempty"`
	Commit            string            `json:"commit,omitempty"`
	On                string            `json:"on,omitempty"`
	Path              string            `json:"path,omitempty"`
	Manifest          events.Raw        `json:"manifest,omitempty"`
	Against           []string          `json:"against,omitempty"`
	Mirrored          []string          `json:"mirrored,omitempty"`
	Read              []events.Read     `json:"read,omitempty"`
	Sources           []events.Source   `json:"sources,omitempty"`
	SourceFingerprint string            `json:"source-fingerprint,omitempty"`
	Failed            string            `json:"failed,omitempty"`
	Made              []events.Made     `json:"made,omitempty"`
	Asked             time.Time         `json:"asked,omitzero"`
	At                time.Time         `json:"at,omitzero"`
	ReuseKey          string            `json:"reuse-key,omitempty"`
	Published         *events.Reference `json:"published,omitempty"`
	Request           *Request          `json:"request,omitempty"`
}

// States of a wish to ask a build again; once it was, the field holds the new build's id.
const (
	ReaskPending = "pending"
	ReaskClaimed = "claimed"
)

// Request is what a build was asked to make, and what became of asking. It stays beside the outcome.
type Request struct {
	Repository     string    `json:"repository,omitempty"`
	Seat           string    `json:"seat,omitempty"`
	Path           string    `json:"path,omitempty"`
	Ref            string    `json:"ref,omitempty"`
	Commit         string    `json:"commit,omitempty"`
	For            string    `json:"for,omitempty"`
	NotAsked       string    `json:"not-asked,omitempty"`
	OutcomeUnknown string    `json:"outcome-unknown,omitempty"`
	At             time.Time `json:"at,omitzero"`
	AtTerminal     time.Time `json:"at-terminal,omitzero"`
	Reask          string    `json:"reask,omitempty"`
}

// Published is a record of chain-published.
type Published struct {
	events.Reference
	Build        string               `json:"build,omitempty"`
	Commit       string               `json:"commit,omitempty"`
	Module       string               `json:"module,omitempty"`
	At           time.Time            `json:"at,omitzero"`
	Attestations []events.Attestation `json:"attestations,omitempty"`
	Vetoed       *Veto                `json:"vetoed,omitempty"`
}

// AttestedArtifact is the kind of the attestation by which the publication of a package names the artifact that it is.
const AttestedArtifact = "catenary.artifact"

// Content gives the digest of the artifact that it is: its own, or the one that was attested of a package; empty when none was. The first one
// counts, so that a name means the same for ever.
func (p Published) Content() string {
	if p.Package == nil {
		return p.Artifact
	}
	for _, a := range p.Attestations {
		if a.Kind == AttestedArtifact {
			return a.Reference
		}
	}
	return ""
}

// Veto says who forbade a publication, and why.
type Veto struct {
	// By is an opaque id of the actor directory.
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at,omitzero"`
}

// Assignment is a record of chain-assignments: what a node was told, and what it last reported. The first five fields keep
// their name and meaning for old readers.
type Assignment struct {
	Node         string     `json:"node"`
	Module       string     `json:"module"`
	Assigned     time.Time  `json:"assigned,omitzero"`
	RequiredBy   []string   `json:"required-by,omitempty"`
	Provisioning events.Raw `json:"provisioning,omitempty"`
	Build        string     `json:"build,omitempty"`
	events.Reference
	Commit  string `json:"commit,omitempty"`
	Rollout string `json:"rollout,omitempty"`
	// Since is when what is told now was first told; Assigned is when the module came to the node.
	Since time.Time `json:"since,omitzero"`
	Ended time.Time `json:"ended,omitzero"`
	State string    `json:"state,omitempty"`
	// Told is the sequence of the event that last told the node something of the module. A report changes the record, and not this.
	Told uint64 `json:"told,omitempty"`
	// Inputs are what others have handed on to the module, with what of it has changed.
	Inputs []events.Handed `json:"inputs,omitempty"`
	// Observed is what the node last reported.
	Observed *Observed `json:"observed,omitempty"`
}

// Stands says whether the node is told to run the module. Lists, joins, forgetting, moving, plans and agents all ask here.
func (a Assignment) Stands() bool { return a.Ended.IsZero() && a.State == "" }

// Observed is what a node last reported to run.
type Observed struct {
	Build string `json:"build,omitempty"`
	events.Reference
	At      time.Time `json:"at,omitzero"`
	Healthy *bool     `json:"healthy,omitempty"`
	Drift   string    `json:"drift,omitempty"`
}

// Node is a record of chain-nodes.
type Node struct {
	Node       string            `json:"node"`
	Labels     map[string]string `json:"labels,omitempty"`
	ManagedBy  string            `json:"managed-by,omitempty"`
	Registered time.Time         `json:"registered,omitzero"`
	Retired    time.Time         `json:"retired,omitzero"`
}

// Stands says whether the node is there, and not retired.
func (n Node) Stands() bool { return n.Retired.IsZero() }

// Freeze is a record of chain-freezes.
type Freeze struct {
	Name     string          `json:"name"`
	Selector events.Selector `json:"selector,omitzero"`
	Window   *events.Window  `json:"window,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	Declared time.Time       `json:"declared,omitzero"`
	Ended    time.Time       `json:"ended,omitzero"`
}

// Stands says whether the freeze was not lifted. Whether it holds at a moment depends on its window too.
func (f Freeze) Stands() bool { return f.Ended.IsZero() }

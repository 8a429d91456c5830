package events

import (
	"encoding/json"
	"slices"
)

// Package is a published package by name and version, both kept byte for byte.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Reference is what can be run: an artifact by digest or a package by name and version. At most one of them is set.
type Reference struct {
	Artifact string   `json:"artifact,omitempty"`
	Package  *Package `json:"package,omitempty"`
}

// IsZero says whether nothing is referred to.
func (r Reference) IsZero() bool { return r.Artifact == "" && r.Package == nil }

// Equal says whether both refer to the same thing.
func (r Reference) Equal(o Reference) bool {
	if r.Artifact != o.Artifact || (r.Package == nil) != (o.Package == nil) {
		return false
	}
	return r.Package == nil || *r.Package == *o.Package
}

// String gives the digest, or name@version.
func (r Reference) String() string {
	if r.Package != nil {
		return r.Package.Name + "@" + r.Package.Version
	}
	return r.Artifact
}

// Raw is JSON kept byte for byte: what came in is what is stored and what is given back.
type Raw = json.RawMessage

// Delivery tells agents how to bring a module to a node.
type Delivery struct {
	// Drivers are tried in order.
	Drivers []string `json:"drivers,omitempty"`
	Check   *Check   `json:"check,omitempty"`
	// Timeout bounds one apply, as a Go duration.
	Timeout string `json:"timeout,omitempty"`
}

// Check tells how a node finds out whether a module is healthy. One of Exec, HTTP and TCP is set.
type Check struct {
	Exec []string `json:"exec,omitempty"`
	HTTP string   `json:"http,omitempty"`
	TCP  string   `json:"tcp,omitempty"`
	// Interval is the time between two tries, as a Go duration.
	Interval string `json:"interval,omitempty"`
	// Successes and Failures in a row change the verdict.
	Successes int `json:"successes,omitempty"`
	Failures  int `json:"failures,omitempty"`
}

// Selector picks modules and nodes. An empty list picks all; labels must all match.
type Selector struct {
	Modules []string          `json:"modules,omitempty"`
	Nodes   []string          `json:"nodes,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
}

// Picks says whether the selector picks a module on a node, with the labels of both.
func (s Selector) Picks(n StepName, labels ...map[string]string) bool {
	if len(s.Modules) > 0 && !slices.Contains(s.Modules, n.Module) {
		return false
	}
	if len(s.Nodes) > 0 && !slices.Contains(s.Nodes, n.Node) {
		return false
	}
	for name, value := range s.Labels {
		if !slices.ContainsFunc(labels, func(l map[string]string) bool { v, ok := l[name]; return ok && v == value }) {
			return false
		}
	}
	return true
}

// Made is one thing a build produced.
type Made struct {
	Name      string `json:"name"`
	Kind      string `json:"kind,omitempty"`
	Reference string `json:"reference,omitempty"`
}

// Read is a repository a build read from while it ran.
type Read struct {
	Repository string   `json:"repository"`
	Ref        string   `json:"ref,omitempty"`
	Paths      []string `json:"paths,omitempty"`
	// Own is set for the module's own repository.
	Own bool `json:"own,omitempty"`
}

// Source is a repository a build is made of.
type Source struct {
	Repository string   `json:"repository"`
	Ref        string   `json:"ref,omitempty"`
	Paths      []string `json:"paths,omitempty"`
}

// Attestation is a statement about a publication, kept elsewhere.
type Attestation struct {
	// Kind is the statement's predicate type.
	Kind string `json:"kind"`
	// Reference tells where it is kept.
	Reference string `json:"reference,omitempty"`
	// Digest is the statement's own digest.
	Digest string `json:"digest,omitempty"`
}

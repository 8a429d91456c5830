package lineage

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/uuid"

	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/events"
)

// idScheme begins everything that an id is made of. It never changes: with it all ids would.
const idScheme = "catenary lineage v1"

// step is a command with the row it comes from.
type step struct {
	commands.Sending
	place
}

// Manifest is what a version's build says of what came with it.
type Manifest struct {
	Modules []ManifestModule `json:"modules"`
	Commits []ManifestCommit `json:"commits"`
}

// ManifestModule is a version that was released at the same commit.
type ManifestModule struct {
	Module  string `json:"module"`
	Version string `json:"version"`
}

// ManifestCommit is a commit that touched the module since its version before.
type ManifestCommit struct {
	Repository string `json:"repository"`
	Commit     string `json:"commit"`
}

// module gives the name that a module has in the chain.
func (h *history) module(path string) string {
	if path == root {
		return h.name
	}
	return h.name + "/" + path
}

// buildID is the id of a version's build.
func (h *history) buildID(r Release) string { return "release/" + h.module(r.Module) + "/" + r.Version }

// tag is what the version's tag is called: for a module below the root its place goes before the version.
func tag(r Release) string {
	if r.Module == root {
		return r.Version
	}
	return r.Module + "/" + r.Version
}

// steps gives the commands: modules first, then commits, then releases, each sorted by time.
func (h *history) steps(yield func(step) error) error {
	named := h.modules()
	for _, path := range slices.Sorted(maps.Keys(named)) {
		spec := events.ModuleSpec{Module: h.module(path), Repository: h.name, Path: path}
		if err := h.step(place{file: h.name}, named[path], commands.RegisterModule{ModuleSpec: spec}, yield); err != nil {
			return err
		}
	}
	for _, c := range h.commits {
		record := commands.RecordCommit{Repository: h.name, Commit: c.Commit.Commit, Merged: c.At, Author: c.By}
		if err := h.step(c.place, c.At, record, yield); err != nil {
			return err
		}
	}
	return h.carried(func(release int, commits []int) error {
		r := h.releases[release]
		manifest, err := h.manifest(r.Release, commits)
		if err != nil {
			return errors.Wrapf(err, "%s: the manifest", r.place)
		}
		id, module := h.buildID(r.Release), h.module(r.Module)
		published := events.Reference{Package: &events.Package{Name: module, Version: r.Version}}
		err = h.step(r.place, r.At, commands.SucceedBuild{
			ID: id, Manifest: manifest, Made: []events.Made{{Name: module, Kind: "package", Reference: published.String()}},
			Request: &commands.RecordedBuild{
				Module: module, Repository: h.name, Path: r.Module, Ref: tag(r.Release), Commit: r.Commit, For: events.ForBuild,
			},
		}, yield)
		if err != nil {
			return err
		}
		return h.step(r.place, r.At, commands.PublishBuild{ID: id, Reference: published}, yield)
	})
}

func (h *history) manifest(r Release, commits []int) (events.Raw, error) {
	m := Manifest{Modules: []ManifestModule{}, Commits: []ManifestCommit{}}
	for _, i := range h.together[r.Commit] {
		m.Modules = append(m.Modules, ManifestModule{h.module(h.releases[i].Module), h.releases[i].Version})
	}
	for _, i := range commits {
		m.Commits = append(m.Commits, ManifestCommit{h.name, h.commits[i].Commit.Commit})
	}
	return json.Marshal(m)
}

// step makes a step of a payload. Its id is a hash of all that the command says: a UUID of version 8, which writers never
// forget.
func (h *history) step(p place, at time.Time, payload es.Payload, yield func(step) error) error {
	body, err := json.Marshal(payload)
	if err != nil {
		return errors.Wrapf(err, "%s: encode %s %s", p, payload.Ref().Aggregate, payload.Verb())
	}
	var said []byte
	for _, part := range []string{idScheme, payload.Ref().Aggregate, payload.Verb(), at.Format(time.RFC3339), string(body)} {
		// With its length before each, no two lists of parts give the same bytes.
		said = append(binary.BigEndian.AppendUint64(said, uint64(len(part))), part...)
	}
	id := uuid.NewHash(sha256.New(), uuid.NameSpaceURL, said, 8).String()
	return yield(step{place: p, Sending: commands.Sending{Payload: payload, Options: dispatch.Options{ID: id, Effective: at}}})
}

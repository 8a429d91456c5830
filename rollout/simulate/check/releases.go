package check

import (
	"time"

	"catenary/es"
	"catenary/events"
)

// releases is what is merged, built, published and carried.
type releases struct {
	merges map[string]*merge
	// heard holds them as they were heard of.
	heard     []*merge
	builds    map[string]*build
	published []*published
	tracks    map[string]*track
}

type merge struct {
	events.MergeHeld
	at      time.Time
	waiting bool
	rollout string
}

type build struct {
	events.BuildSpec
	published *events.Reference
}

type published struct {
	events.PublicationRecorded
	key string
}

type track struct {
	events.TrackSpec
	stands bool
	// since is when what is said of it was said.
	since time.Time
}

func newReleases() releases {
	return releases{merges: map[string]*merge{}, builds: map[string]*build{}, tracks: map[string]*track{}}
}

// release takes in what is merged, built, published and carried.
func (m *releases) release(e es.Event) {
	key := e.Ref.Key
	switch f := e.Data.(type) {
	case events.MergeHeld:
		m.merges[key] = &merge{MergeHeld: f, at: e.Recorded, waiting: true}
		m.heard = append(m.heard, m.merges[key])
	case events.MergeTaken:
		m.merges[key].rollout = f.Rollout
	case events.MergeReleased:
		m.merges[key].waiting = false
	case events.BuildAsked:
		m.builds[key] = &build{BuildSpec: f.BuildSpec}
	case events.BuildPublished:
		m.builds[key].published = &f.Reference
	case events.PublicationRecorded:
		m.published = append(m.published, &published{PublicationRecorded: f, key: key})
	case events.TrackDeclared:
		m.tracks[f.Track] = &track{TrackSpec: f.TrackSpec, stands: true, since: e.Recorded}
	case events.TrackChanged:
		m.tracks[f.Track] = &track{TrackSpec: f.TrackSpec, stands: true, since: e.Recorded}
	case events.TrackEnded:
		m.tracks[name(e)].stands = false
	}
}

// waiting gives the waiting merges of a repository.
func (m *releases) waiting(repository string) []*merge {
	var list []*merge
	for _, o := range m.heard {
		if o.waiting && o.Repository == repository {
			list = append(list, o)
		}
	}
	return list
}

// merge gives the merge of a commit; nil for one that nobody has heard of.
func (m *releases) merge(repository, commit string) *merge {
	for _, o := range m.heard {
		if o.Repository == repository && o.Commit == commit {
			return o
		}
	}
	return nil
}

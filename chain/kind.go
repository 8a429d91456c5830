package chain

import (
	"strings"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/events"
	"catenary/internal/topology"
)

// BackfillBucket is the bucket that holds values which were added to a key's history after the fact.
const BackfillBucket = topology.BucketBackfill

// Record is what a bucket of the chain holds.
type Record interface {
	Module | Node | Commit | Build | Published | Assignment | Freeze | Merge | Track | Strategy | Rollout | Step
}

// Kind tells where the records of one kind stand, by which names one of them is known, and which of them stand.
type Kind[T Record] struct {
	aggregate, bucket string
	// names says what identifies a record, one list for each way to name it.
	names [][]string
	// of gives the names that identify a record.
	of func(T) []string
	// stands is nil for a kind whose records never end.
	stands func(T) bool
	// node and module are nil for a kind whose records do not belong to one.
	node, module *belonging[T]
	// resume is nil for a kind whose history can't be added to.
	resume func(before, added T) T
}

// belonging tells to which node or module a record belongs.
type belonging[T Record] struct {
	of func(T) string
	// token is the key's token that says so, or noToken.
	token int
}

const noToken = -1

// The kinds of records.
var (
	Modules = Kind[Module]{
		aggregate: events.AggregateModule, bucket: topology.BucketModules, names: [][]string{{"module"}},
		of:     func(m Module) []string { return []string{m.Name} },
		stands: Module.Stands,
		module: &belonging[Module]{of: func(m Module) string { return m.Name }, token: 0},
	}
	Nodes = Kind[Node]{
		aggregate: events.AggregateNode, bucket: topology.BucketNodes, names: [][]string{{"node"}},
		of:     func(n Node) []string { return []string{n.Node} },
		stands: Node.Stands,
		node:   &belonging[Node]{of: func(n Node) string { return n.Node }, token: 0},
	}
	Commits = Kind[Commit]{
		aggregate: events.AggregateCommit, bucket: topology.BucketCommits, names: [][]string{{"repository", "commit"}},
		of: func(c Commit) []string { return []string{c.Repository, c.Commit} },
	}
	Builds = Kind[Build]{
		aggregate: events.AggregateBuild, bucket: topology.BucketBuilds, names: [][]string{{"build id"}},
		of:     func(b Build) []string { return []string{b.ID} },
		module: &belonging[Build]{of: func(b Build) string { return b.Module }, token: noToken},
	}
	Publications = Kind[Published]{
		aggregate: events.AggregatePublication, bucket: topology.BucketPublished, names: [][]string{{"digest"}, {"name", "version"}},
		of:     func(p Published) []string { return ReferenceNames(p.Reference) },
		module: &belonging[Published]{of: func(p Published) string { return p.Module }, token: noToken},
	}
	Assignments = Kind[Assignment]{
		aggregate: events.AggregateAssignment, bucket: topology.BucketAssignments, names: [][]string{{"node", "module"}},
		of:     func(a Assignment) []string { return []string{a.Node, a.Module} },
		stands: Assignment.Stands,
		node:   &belonging[Assignment]{of: func(a Assignment) string { return a.Node }, token: 0},
		module: &belonging[Assignment]{of: func(a Assignment) string { return a.Module }, token: 1},
		resume: resumeAssignment,
	}
	Freezes = Kind[Freeze]{
		aggregate: events.AggregateFreeze, bucket: topology.BucketFreezes, names: [][]string{{"freeze"}},
		of:     func(f Freeze) []string { return []string{f.Name} },
		stands: Freeze.Stands,
	}
	Merges = Kind[Merge]{
		aggregate: events.AggregateMerge, bucket: topology.BucketMerges, names: [][]string{{"repository", "branch", "commit"}},
		of:     func(m Merge) []string { return []string{m.Repository, m.Branch, m.Commit} },
		stands: Merge.Stands,
	}
	Tracks = Kind[Track]{
		aggregate: events.AggregateTrack, bucket: topology.BucketTracks, names: [][]string{{"track"}},
		of:     func(t Track) []string { return []string{t.Track} },
		stands: Track.Stands,
	}
	Strategies = Kind[Strategy]{
		aggregate: events.AggregateStrategy, bucket: topology.BucketStrategies, names: [][]string{{"strategy"}},
		of:     func(s Strategy) []string { return []string{s.Name} },
		stands: Strategy.Stands,
	}
	Rollouts = Kind[Rollout]{
		aggregate: events.AggregateRollout, bucket: topology.BucketRollouts, names: [][]string{{"rollout id"}},
		of:     func(r Rollout) []string { return []string{r.ID} },
		stands: Rollout.Stands,
	}
	Steps = Kind[Step]{
		aggregate: aggregateStep, bucket: topology.BucketSteps, names: [][]string{{"rollout id", "tier", "node", "module"}},
		of:     func(s Step) []string { return []string{s.Rollout, s.Tier, s.Node, s.Module} },
		stands: Step.Stands,
		node:   &belonging[Step]{of: func(s Step) string { return s.Node }, token: 2},
		module: &belonging[Step]{of: func(s Step) string { return s.Module }, token: 3},
	}
)

// aggregateStep is what one step is called. Its events are those of its rollout.
const aggregateStep = "step"

// ReferenceNames gives the names that a publication is known by: the digest, or name and version.
func ReferenceNames(r events.Reference) []string {
	if r.Package != nil {
		return []string{r.Package.Name, r.Package.Version}
	}
	return []string{r.Artifact}
}

// resumeAssignment says what an added value means after the one before it. It was recorded without a look at its
// neighbours: how long the module was there already, what the node last reported, and what it was that ended stand there.
func resumeAssignment(before, added Assignment) Assignment {
	switch {
	case added.Stands():
		if before.Stands() {
			added.Assigned = before.Assigned
		}
		added.Observed = before.Observed
	case before.Stands():
		before.Ended = added.Ended
		return before
	}
	return added
}

// Name is what one record of the kind is called: the name of its aggregate.
func (k Kind[T]) Name() string { return k.aggregate }

// Plural is what a list of the kind is called: the bucket's name without its prefix.
func (k Kind[T]) Plural() string { return strings.TrimPrefix(k.bucket, "chain-") }

// Bucket is the bucket that holds the kind's records.
func (k Kind[T]) Bucket() string { return k.bucket }

// Stands says whether a record holds now. Commits, builds and publications never end.
func (k Kind[T]) Stands(record T) bool { return k.stands == nil || k.stands(record) }

// Usage tells by which names a record is known, as in <node> <module>.
func (k Kind[T]) Usage() string {
	ways := make([]string, len(k.names))
	for i, names := range k.names {
		ways[i] = "<" + strings.Join(names, "> <") + ">"
	}
	return strings.Join(ways, " or ")
}

// KeyOf is the key a record stands under.
func (k Kind[T]) KeyOf(record T) string { return es.Key(k.of(record)...) }

// Key makes the key of the names that identify a record. It gives errors marked [es.ErrName] for names that no record can
// have, and for the wrong number of them.
func (k Kind[T]) Key(names ...string) (string, error) {
	for _, way := range k.names {
		if len(way) != len(names) {
			continue
		}
		for i, what := range way {
			if err := es.CheckName(what, names[i]); err != nil {
				return "", err
			}
		}
		return es.Key(names...), nil
	}
	return "", errors.Mark(errors.Newf("%d names do not make a %s: give %s", len(names), k.aggregate, k.Usage()), es.ErrName)
}

// StandsUnder says whether a key is the one that a record stands under.
func (k Kind[T]) StandsUnder(record *T, key string) bool { return es.IsKey(key, k.of(*record)...) }

// BackfillKey is the key in the backfill bucket of values that were added to the history of a record.
func (k Kind[T]) BackfillKey(key string) string { return k.aggregate + "." + key }

package topology

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Artifacts and logs, which are no part of the record.
const (
	// ArtifactPrefix starts what is asked of the depot: catenary.artifact.<name>.
	ArtifactPrefix = "catenary.artifact"
	// LogsPrefix starts where agents hand in what their commands say: catenary.logs.<node>.<module>.
	LogsPrefix = "catenary.logs"
	// ObjectsArtifacts is the object bucket that holds artifacts, each under its digest.
	ObjectsArtifacts = "catenary-artifacts"
	// LogsStream holds what was said while modules were brought to nodes.
	LogsStream = "CATENARY_LOGS"
	// LogsStoredPrefix starts the subjects of that stream: logs.<node>.<module>. Nobody outside the ledger reaches it.
	LogsStoredPrefix = "logs"
	// DepotService takes artifacts in and gives them out.
	DepotService = "catenary-depot"
	// LogsService takes logs in, and answers those who read them.
	LogsService = "catenary-logs"
)

// Names of what is asked of the depot.
const (
	artifactGet = "get"
	// artifactName asks which artifact a package is.
	artifactName = "name"
)

// Limits of artifacts.
const (
	// ArtifactChunkBytes is the size of one message of an artifact: half of what a message may have, so that a round trip brings much,
	// and headers always fit.
	ArtifactChunkBytes = MaxPayloadBytes / 2
	// MaxArtifactBytes bounds one artifact, so that where its pieces stand fits into one message.
	MaxArtifactBytes = 4 << 30
	// artifactShares is how much more room artifacts get than a bucket.
	artifactShares = 8
)

// Limits of logs.
const (
	// LogsBytes bounds the logs of all nodes. Over it the oldest go.
	LogsBytes = 1 << 30
	// LogsAge is how long a log is kept: as long as one may ask why something was refused.
	LogsAge = RefusedAge
	// LogPartBytes bounds one part of a log.
	LogPartBytes = 64 << 10
	// LogParts is how many parts of one module on one node are kept: with full ones, four of the longest logs. So a module that is
	// tried again and again does not drive out the logs of others.
	LogParts = 2_048
	// logDuplicates is for how long a part that is handed in again is known.
	logDuplicates = 2 * time.Minute
)

// ArtifactSubject is the subject on which something is asked of the depot.
func ArtifactSubject(name string) string { return ArtifactPrefix + "." + name }

// LogsSubject is the subject on which the agent of a node hands in what is said of a module. Both are tokens of a key.
func LogsSubject(node, module string) string { return LogsPrefix + "." + node + "." + module }

// LogsStoredSubject is the subject under which that is stored. "*" stands for any.
func LogsStoredSubject(node, module string) string {
	return LogsStoredPrefix + "." + node + "." + module
}

// Artifacts configures the stream behind the artifacts: nats.go opens it as an object bucket. What is acknowledged is kept, so it
// persists as the events do. Reads may come from a follower: what is read is compared with its digest.
func Artifacts(o Options) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        ObjectsStream(ObjectsArtifacts),
		Description: "Catenary: artifacts by their digest. Written by the depot only.",
		Subjects:    []string{ObjectChunkSubject(ObjectsArtifacts, ">"), ObjectMetaSubject(ObjectsArtifacts, ">")},
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardNew,
		Storage:     jetstream.FileStorage,
		Replicas:    o.replicas(),
		MaxBytes:    orDefault(o.BucketBytes, DefaultBucketBytes) * artifactShares,
		AllowRollup: true,
		AllowDirect: true,
	}
}

// ArtifactsLess is the limit of the artifacts where a server has no room for more: that of a bucket.
func ArtifactsLess(o Options) int64 { return orDefault(o.BucketBytes, DefaultBucketBytes) }

// Logs configures the stream of logs. On one server it persists asynchronously: a log that loses its last lines in a crash is a log all
// the same, and it must not slow down the events.
func Logs(o Options) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:              LogsStream,
		Description:       "Catenary: what was said while modules were brought to nodes. Written by the service of logs only.",
		Subjects:          []string{LogsStoredPrefix + ".>"},
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardOld,
		Storage:           jetstream.FileStorage,
		Replicas:          o.replicas(),
		MaxAge:            LogsAge,
		MaxBytes:          min(LogsBytes, orDefault(o.BucketBytes, DefaultBucketBytes)),
		MaxMsgsPerSubject: LogParts,
		Duplicates:        logDuplicates,
		AllowDirect:       true,
	}
	if c.Replicas == 1 {
		c.PersistMode = jetstream.AsyncPersistMode
	}
	return c
}

// agentBulk lists what the agent of a node may send besides its check-ins and reports: it asks for artifacts and
// what they are called, and hands in its own logs.
func agentBulk(node string) []string {
	return []string{ArtifactSubject(artifactGet), ArtifactSubject(artifactName), LogsSubject(node, "*")}
}

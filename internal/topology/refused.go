package topology

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// RefusedStream holds the commands that were refused.
	RefusedStream = "CATENARY_REFUSED"
	// RefusedPrefix starts their subjects: refused.<actor id>.<aggregate>.
	RefusedPrefix = "refused"
	// RefusedBytes bounds them: about 150,000. Over it the oldest go.
	RefusedBytes = 64 << 20
	// RefusedAge is how long one is kept: long enough to ask why something did not happen last month.
	RefusedAge = 31 * 24 * time.Hour
)

// Refused configures the stream of refused commands. Whoever sends nonsense fills no more than this. What an actor had refused can be
// erased, so deletes are possible.
func Refused(o Options) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        RefusedStream,
		Description: "Catenary: commands that were refused, with who sent them and why. Written by the writer only.",
		Subjects:    []string{RefusedPrefix + ".>"},
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardOld,
		Storage:     jetstream.FileStorage,
		Replicas:    o.replicas(),
		MaxAge:      RefusedAge,
		MaxBytes:    RefusedBytes,
		AllowDirect: false,
	}
}

package mirrors

import (
	"log/slog"

	"github.com/nats-io/nats.go/jetstream"

	"catenary/internal/topology"
)

// Over makes mirrors over any access to the two accounts.
func Over(origins, copies jetstream.JetStream, o topology.Options) *Mirrors {
	return &Mirrors{origins: origins, copies: copies, options: o, log: slog.New(slog.DiscardHandler)}
}

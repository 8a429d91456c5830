package natsstore

import (
	"time"

	"github.com/cockroachdb/errors"

	"catenary/internal/topology"
)

// Config tunes a store. The zero value gives the defaults.
type Config struct {
	// Stream is the stream's name. Empty means [topology.EventStream].
	Stream string
	// Restoring names the restore that is at work in the stream. Everybody else MUST leave it empty, and can't open the stream meanwhile.
	Restoring string
	// Reading is for who only reads, and MUST append nothing: a stream that is not safe to append to can be read, and has to be, to be saved.
	Reading bool
	// MaxInFlight bounds the messages sent and not yet answered. Zero means 4,096: enough to keep a server busy over a
	// network, and far below the 100,000 at which a stream begins to drop what comes in.
	MaxInFlight int
	// MaxInFlightBytes bounds their size. Zero means 64 MiB: half of what a stream takes before it drops.
	MaxInFlightBytes int64
	// AckTimeout is how long an append waits for its answer before it is unclear. Zero means 15 s: a slow disk that flushes
	// each message takes half of that for a full pipeline. With replicas it is 7 s: a leader that dies answers nothing, and another leads within 4
	// to 9 s.
	AckTimeout time.Duration
	// RequestTimeout bounds a single question to the server. Zero means 5 s.
	RequestTimeout time.Duration
	// ReadTimeout is how long a read waits for its next message before it fails. Zero means 30 s: a leader change takes a few.
	ReadTimeout time.Duration
}

// ackTimeout is the default of [Config.AckTimeout] for a stream with so many replicas.
func ackTimeout(replicas int) time.Duration {
	if replicas > 1 {
		return 7 * time.Second
	}
	return 15 * time.Second
}

func (c Config) withDefaults() (Config, error) {
	if c.MaxInFlight < 0 || c.MaxInFlightBytes < 0 || c.AckTimeout < 0 || c.RequestTimeout < 0 || c.ReadTimeout < 0 {
		return c, errors.Newf("event store: a limit is below zero: %+v", c)
	}
	if c.Stream == "" {
		c.Stream = topology.EventStream
	}
	if c.MaxInFlight == 0 {
		c.MaxInFlight = 4096
	}
	if c.MaxInFlightBytes == 0 {
		c.MaxInFlightBytes = 64 << 20
	}
	if c.AckTimeout == 0 {
		c.AckTimeout = ackTimeout(1)
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = 5 * time.Second
	}
	if c.ReadTimeout == 0 {
		c.ReadTimeout = 30 * time.Second
	}
	return c, nil
}

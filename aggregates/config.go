package aggregates

import (
	"time"

	"github.com/cockroachdb/errors"

	"catenary/aggregates/content"
	"catenary/events"
)

// RulesVersion is the version of the rules. It grows when the same commands would lead to other events, or the same events to
// another world, so that what an older program kept of a world is not taken for this one's.
const RulesVersion = 4

// DefaultMaxValueBytes bounds a record: small enough that a list of thousands is read in one go, and well below what the
// server takes as one message.
const DefaultMaxValueBytes = 64 << 10

// MaxAhead is how far an effective time may lie ahead of the writer's clock: more than clocks of well-kept machines differ.
const MaxAhead = 5 * time.Minute

// Config says what may vary between worlds. The zero value is ready for use.
type Config struct {
	// MaxValueBytes bounds each record that events lead to; 0 means [DefaultMaxValueBytes].
	MaxValueBytes int
	// Zones gives time zones by name, for the windows of freezes; nil means [time.LoadLocation]. Programs carry the zones with
	// them, so all of them give the same.
	Zones events.Zones
	// Measure is what records are measured with; nil makes one. Worlds that one goroutine uses, one after another, may share it.
	Measure *content.Measure
}

func (c Config) filled() (Config, error) {
	if c.MaxValueBytes < 0 {
		return c, errors.Newf("world: MaxValueBytes is %d; it can't be negative", c.MaxValueBytes)
	}
	if c.MaxValueBytes == 0 {
		c.MaxValueBytes = DefaultMaxValueBytes
	}
	if c.Zones == nil {
		c.Zones = time.LoadLocation
	}
	if c.Measure == nil {
		c.Measure = &content.Measure{}
	}
	return c, nil
}

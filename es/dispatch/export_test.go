package dispatch

import (
	"context"

	"catenary/es"
)

// Compact makes a base as a working writer does beside its work.
func (c Config) Compact(ctx context.Context) (es.Head, error) {
	c, err := c.validate()
	if err != nil {
		return es.Head{}, err
	}
	return c.compact(ctx)
}

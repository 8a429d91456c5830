package dispatch

import (
	"context"

	"catenary/es"
)

// Merge makes a base as a working writer does beside its work.
func (c Config) Merge(ctx context.Context) (es.Head, error) {
	c, err := c.validate()
	if err != nil {
		return es.Head{}, err
	}
	return c.merge(ctx)
}

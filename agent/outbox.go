package agent

import (
	"context"

	"catenary/commands"
	"catenary/es/dispatch"
)

// Spool is an outbox on disk: see [dispatch.Outbox], which somebody MUST run.
type Spool struct{ *dispatch.Outbox }

var _ Outbox = Spool{}

// Take implements [Outbox].
func (s Spool) Take(ctx context.Context, r Report) error {
	request, err := commands.Request(r.Command, dispatch.Options{ID: r.ID, Trace: r.Trace})
	if err != nil {
		return err
	}
	_, err = s.Send(ctx, request)
	return err
}

// Unsent implements [Outbox].
func (s Spool) Unsent() int { return s.Pending() }

package project

import (
	"context"
	"slices"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// Order is one decision of a person about a view. Exactly one of Pause, Resume and Skip is set.
type Order struct {
	Pause, Resume bool
	// Skip is the sequence of an event that the view leaves out.
	Skip   uint64
	Reason string
}

// Orders says where in the stream the decisions about views are.
type Orders struct {
	// Instance gives the aggregate instance that holds the orders for a view. All of them are of one aggregate.
	Instance func(view string) es.Ref
	// Read gives the order that an event of such an instance is, and false for one that is none.
	Read func(e es.Event) (Order, bool)
}

// Decision is who decided something about a view, and why.
type Decision struct {
	// Order is the event that says so.
	Order  uint64 `json:"order"`
	Reason string `json:"reason,omitempty"`
	// By is the opaque id of who decided.
	By string    `json:"by,omitempty"`
	At time.Time `json:"at"`
}

// Skip is an event that a view leaves out.
type Skip struct {
	Event uint64 `json:"event"`
	Decision
}

// Control is what the whole stream says about a view: whether it is paused, and which events it leaves out. A skip counts for
// the event it names wherever it was recorded, so that a fold from the first event on leaves out the same ones as a view that
// had stopped there. A Control never changes; the zero value is that of a view nobody decided about.
type Control struct {
	// Paused is set while the view is paused.
	Paused *Decision
	// Skipped is in the order of the events.
	Skipped []Skip
	// Through is the last order taken in.
	Through uint64
}

// Skips says whether the view leaves an event out.
func (c *Control) Skips(event uint64) bool {
	if len(c.Skipped) == 0 {
		return false
	}
	_, found := c.find(event)
	return found
}

func (c *Control) find(event uint64) (int, bool) {
	return slices.BinarySearchFunc(c.Skipped, event, func(s Skip, event uint64) int {
		switch {
		case s.Event < event:
			return -1
		case s.Event > event:
			return 1
		}
		return 0
	})
}

// after gives the control with one more order, which is ignored when it was taken in before.
func (c *Control) after(o Order, e *es.Event) *Control {
	if e.Sequence <= c.Through {
		return c
	}
	next := *c
	next.Through = e.Sequence
	d := Decision{Order: e.Sequence, Reason: o.Reason, By: e.Command.OnBehalfOf, At: e.Recorded}
	if d.By == "" {
		d.By = e.Command.Actor
	}
	switch {
	case o.Pause:
		next.Paused = &d
	case o.Resume:
		next.Paused = nil
	case o.Skip > 0:
		if at, found := c.find(o.Skip); !found {
			next.Skipped = slices.Insert(slices.Clone(c.Skipped), at, Skip{Event: o.Skip, Decision: d})
		}
	}
	return &next
}

// ReadControl gives what the stream says about a view by now. Orders of a newer program that this one does not know are
// passed over. Nil orders give a control that says nothing. It gives errors marked [es.ErrUnavailable].
func ReadControl(ctx context.Context, store es.Store, registry *es.Registry, orders *Orders, view string) (*Control, error) {
	c := &Control{}
	if orders == nil {
		return c, nil
	}
	for m, err := range store.ReadAggregate(ctx, orders.Instance(view)) {
		if err != nil {
			return nil, errors.Wrapf(err, "read the orders for view %s", view)
		}
		e, err := registry.Decode(m)
		switch {
		case errors.Is(err, es.ErrUnknownType):
			continue
		case err != nil:
			return nil, errors.Wrapf(err, "read the orders for view %s", view)
		}
		if o, ok := orders.Read(e); ok {
			c = c.after(o, &e)
		}
	}
	return c, nil
}

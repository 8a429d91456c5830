package store

import (
	"context"
	"slices"
	"strings"

	"github.com/cockroachdb/errors"

	"catenary/chain"
	"catenary/es"
)

// maxDataBytes bounds the body of an event that is kept here. A longer one is read from the stream when it is asked for.
const maxDataBytes = 16 << 10

// incoming is an event on its way into the file, with all that can be made of it beforehand.
type incoming struct {
	head  es.Head
	event es.Event
	row   []any // of the table event
	words string
	// malformed says why it is no event at all, unfolded why no kind can fold it.
	malformed, unfolded error
}

// Places in a row of event of what only a fold may tell.
const (
	eventNode   = 14
	eventModule = 15
)

// prepare makes of a stored message what the file takes in.
func prepare(registry *es.Registry, m es.Message, head es.Head) incoming {
	e, err := registry.Decode(m)
	if errors.Is(err, es.ErrMalformed) {
		return incoming{head: head, malformed: err}
	}
	in := incoming{head: head, event: e, unfolded: err}
	var data []byte
	if err == nil {
		data, err = chain.Encode(e.Data)
	}
	var kept, problem any
	switch {
	case err != nil:
		problem = err.Error()
	case len(data) <= maxDataBytes:
		kept = string(data)
	}
	node, module := placeOf(e.Ref)
	in.words = words(e, data)
	in.row = []any{
		int64(e.Sequence), e.ID, e.Type, e.Ref.Aggregate, e.Ref.Key, int64(e.Version), int64(instantOf(e.Recorded)), int64(instantOf(e.Effective)),
		number(e.Backfill), nullText(e.Command.ID), nullText(e.Command.Actor), nullText(e.Command.OnBehalfOf), nullText(e.Command.Causation),
		nullText(e.Command.Correlation), nullText(node), nullText(module), kept, problem,
	}
	return in
}

// words gives the text of an event that is looked for: its key, and all text in its body without the names of fields. What stands there
// twice, as names of the key do, is given once.
func words(e es.Event, data []byte) string {
	said, err := es.SplitKey(e.Ref.Key)
	if err != nil {
		said = []string{e.Ref.Key}
	}
	for i := 0; i < len(data); i++ {
		if data[i] != '"' {
			continue
		}
		end := i + 1
		for ; end < len(data) && data[end] != '"'; end++ {
			if data[end] == '\\' {
				end++
			}
		}
		text := data[i+1 : min(end, len(data))]
		i = end
		if end+1 < len(data) && data[end+1] == ':' {
			continue // a field's name
		}
		if len(said) > mostCompared || !slices.Contains(said, string(text)) {
			said = append(said, string(text))
		}
	}
	return strings.Join(said, " ")
}

// mostCompared bounds the texts of an event that are compared with each other.
const mostCompared = 16

// take takes in one event. It gives a stopError for a message that is no event: nobody can say whose it is. It is passed over only when
// somebody has decided that.
func (w *writing) take(ctx context.Context, in incoming) error {
	e := in.event
	if in.malformed != nil && !w.control.Skips(in.head.Sequence) {
		return &stopError{at: in.head.Sequence, reason: in.malformed}
	}
	if err := w.begin(ctx); err != nil {
		return err
	}
	if err := w.roomy(ctx); err != nil {
		return err
	}
	changes, err := w.judge(ctx, in)
	if err != nil {
		return err
	}
	w.place.head = in.head
	if in.malformed != nil {
		return nil
	}
	recorded := instantOf(e.Recorded)
	w.place.recorded, w.place.known = recorded, max(w.place.known, recorded)
	for _, c := range changes {
		in.row[eventNode], in.row[eventModule] = nullText(c.node), nullText(c.module)
		if err := w.put(ctx, e, c); err != nil {
			return err
		}
		for _, list := range c.carried {
			if err := w.carry(ctx, c.fact.key, list); err != nil {
				return err
			}
		}
	}
	w.spoken = append(w.spoken, spoken{e.Sequence, in.words})
	return w.events.add(ctx, in.row...)
}

// fold gives what an event says, by all kinds that read it.
func (w *writing) fold(ctx context.Context, kinds []kind, e es.Event) ([]change, error) {
	var changes []change
	for _, k := range kinds {
		more, err := k.fold(e, func(key string) (*fact, error) {
			h, err := w.head(ctx, k.name(), key)
			if err != nil {
				return nil, err
			}
			return w.before(ctx, h, instantOf(e.Effective))
		})
		if err != nil {
			return nil, err
		}
		changes = append(changes, more...)
	}
	return changes, nil
}

package proof

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/cockroachdb/errors"
)

// Checked is what a check of the whole record has found to hold.
type Checked struct {
	// Events were read, and follow one another.
	Events uint64 `json:"events"`
	// Checkpoints were compared with the events they were signed over.
	Checkpoints int `json:"checkpoints"`
	// Newest is the size of the last of them: events after it are chained, and no signature speaks for them yet.
	Newest uint64 `json:"newest"`
	// Lost is the number of checkpoints that were signed over a record whose loss was accepted. They were not compared.
	Lost int `json:"lost,omitempty"`
	// NewKeys are those that began to sign without the keys before them, in order.
	NewKeys []KeyChange `json:"new-keys,omitempty"`
}

// KeyChange is a checkpoint that put new keys on record.
type KeyChange struct {
	// Events is the number of events that it has seen.
	Events uint64 `json:"events"`
	// Keys are the new ones, as name+hash, and Reason is why they sign.
	Keys   string    `json:"keys"`
	Reason string    `json:"reason"`
	Time   time.Time `json:"time"`
}

func keyChanges(all []Checkpoint) []KeyChange {
	var found []KeyChange
	for _, c := range all {
		if c.New.Keys != "" {
			found = append(found, KeyChange{Events: c.Size, Keys: c.New.Keys, Reason: c.New.Reason, Time: c.Time})
		}
	}
	return found
}

// VerifyExport checks an export of events against checkpoints, without a bus: each event by its hash, each checkpoint by its
// signature and by the root over the export's events. The export MUST begin with event 1. It gives errors marked [ErrEvent],
// [ErrShortened] when a checkpoint has seen more, [ErrForked] when one has seen others, and those of [Open].
func VerifyExport(records iter.Seq2[Record, error], signed [][]byte, keys Keys) (Checked, error) {
	var found Checked
	due, err := openAll(signed, keys)
	if err != nil {
		return found, err
	}
	found.NewKeys = keyChanges(due)
	var a Accumulator
	for r, err := range records {
		if err != nil {
			return found, err
		}
		next, err := a.Head.Verify(r.Message())
		if err != nil {
			return found, errors.Mark(err, ErrEvent)
		}
		if r.Previous != a.Head.Hash {
			return found, markf(ErrEvent, "event %d was changed: it says that the event before has the hash %s, but that one has %s", r.Sequence, r.Previous, a.Head.Hash)
		}
		a.Add(next)
		found.Events = next.Sequence
		for len(due) > 0 && due[0].Size == next.Sequence {
			if err := due[0].agrees(SizedRoot{Size: next.Sequence, Root: a.Root()}); err != nil {
				return found, err
			}
			found.Checkpoints, found.Newest, due = found.Checkpoints+1, due[0].Size, due[1:]
		}
	}
	if len(due) > 0 {
		return found, markf(ErrShortened, "the export ends with event %d, but a checkpoint was signed over %d events: %d are missing at its end", found.Events, due[len(due)-1].Size, due[len(due)-1].Size-found.Events)
	}
	return found, nil
}

// agrees compares a checkpoint with the root over the events themselves. It gives errors marked [ErrForked].
func (c Checkpoint) agrees(r SizedRoot) error {
	if r.Root != c.Root {
		return markf(ErrForked, "the first %d events have the root %s, but a checkpoint was signed over the root %s: one of these events is not the one that was signed", r.Size, r.Root, c.Root)
	}
	return nil
}

// openAll opens checkpoints and puts them in the order of their sizes. Two of one size MUST be the same.
func openAll(signed [][]byte, keys Keys) ([]Checkpoint, error) {
	var all []Checkpoint
	for _, text := range signed {
		c, err := Open(text, keys)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b Checkpoint) int { return cmp.Compare(a.Size, b.Size) })
	for i := 1; i < len(all); i++ {
		if all[i].Size == all[i-1].Size {
			if err := all[i].Follows(all[i-1], nil); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// VerifyChain checks the whole record over the bus: the service reads all events and computes the roots anew, and they are compared
// here with every checkpoint that is kept and with those handed in. Progress is told how many events were read; it may be nil. It
// gives errors marked [ErrEvent], [ErrShortened], [ErrForked], and those of [Open] and of the client.
func (c *Client) VerifyChain(ctx context.Context, handed [][]byte, keys Keys, progress func(events uint64)) (Checked, error) {
	var found Checked
	kept, lost, err := c.allCheckpoints(ctx)
	if err != nil {
		return found, err
	}
	found.Lost = lost
	due, err := openAll(append(kept, handed...), keys)
	if err != nil {
		return found, err
	}
	found.NewKeys = keyChanges(due)
	var state Accumulator
	for {
		q := RootsQuestion{State: state}
		for _, d := range due[:min(len(due), MaxSizes)] {
			q.Sizes = append(q.Sizes, d.Size)
		}
		a, err := c.Roots(ctx, q)
		if err != nil {
			return found, err
		}
		for _, r := range a.Roots {
			for len(due) > 0 && due[0].Size <= r.Size {
				if err := due[0].agrees(r); err != nil {
					return found, err
				}
				found.Checkpoints, found.Newest, due = found.Checkpoints+1, due[0].Size, due[1:]
			}
		}
		state, found.Events = a.State, a.State.Head.Sequence
		if progress != nil {
			progress(found.Events)
		}
		switch {
		case a.Broken != "":
			return found, markf(ErrEvent, "%s", a.Broken)
		case a.More:
			continue
		case len(due) > 0:
			last := due[len(due)-1].Size
			return found, markf(ErrShortened, "the record ends with event %d, but a checkpoint was signed over %d events: %d are gone from its end", found.Events, last, last-min(last, found.Events))
		}
		return found, nil
	}
}

// allCheckpoints gives the checkpoints that are kept, and how many were left out because the loss of what they have seen was accepted.
func (c *Client) allCheckpoints(ctx context.Context) (all [][]byte, lost int, err error) {
	q := CheckpointsQuestion{}
	for {
		p, err := c.Checkpoints(ctx, q)
		if err != nil {
			return nil, 0, err
		}
		if p.Lost > 0 {
			all, lost = nil, lost+len(all)+min(p.Lost, len(p.Checkpoints))
		}
		for _, signed := range p.Checkpoints[min(p.Lost, len(p.Checkpoints)):] {
			all = append(all, []byte(signed))
		}
		if p.Next <= q.After {
			return all, lost, nil
		}
		q.After = p.Next
	}
}

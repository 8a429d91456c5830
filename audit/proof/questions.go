package proof

import (
	"context"
	"time"

	"github.com/cockroachdb/errors"
	"golang.org/x/mod/sumdb/tlog"

	"catenary/es"
)

// Questions, as the last part of catenary.query.<name>.
const (
	// QuestionCheckpoint asks for a checkpoint over all events there are.
	QuestionCheckpoint = "checkpoint"
	// QuestionCheckpoints asks for the checkpoints that are kept.
	QuestionCheckpoints = "checkpoints"
	// QuestionProof asks for the proof of an event.
	QuestionProof = "proof"
	// QuestionGrowth asks for the proof that an earlier checkpoint still holds.
	QuestionGrowth = "growth"
	// QuestionRoots asks for roots computed anew from the events.
	QuestionRoots = "roots"
)

// Latest is the answer to [QuestionCheckpoint].
type Latest struct {
	Checkpoint string `json:"checkpoint"`
	// Keys are the public keys that have signed it.
	Keys []string `json:"keys"`
}

// CheckpointsQuestion asks for the checkpoints after a place.
type CheckpointsQuestion struct {
	After uint64 `json:"after,omitempty"`
}

// CheckpointsPage is a bounded piece of the checkpoints, in the order they were signed.
type CheckpointsPage struct {
	Checkpoints []string `json:"checkpoints"`
	// Lost says that the loss of what so many of these checkpoints have seen, from the first one on, was accepted, and of all before
	// them: the record begins anew after them.
	Lost int `json:"lost,omitempty"`
	// Next is what to give as After to go on; zero at the end.
	Next uint64 `json:"next,omitempty"`
}

// ProofQuestion asks for the proof of an event.
type ProofQuestion struct {
	Event uint64 `json:"event"`
}

// GrowthQuestion asks what has become of the record since it had so many events.
type GrowthQuestion struct {
	Size uint64 `json:"size"`
}

// RootsQuestion asks for the roots at some sizes, computed from the events after a state that an earlier answer gave.
type RootsQuestion struct {
	State Accumulator `json:"state"`
	// Sizes rise. Those up to the state's own are passed over.
	Sizes []uint64 `json:"sizes,omitempty"`
}

// RootsAnswer says how far the events were read. Whoever wants more asks again from there.
type RootsAnswer struct {
	State Accumulator `json:"state"`
	// Roots are those at the asked sizes that were reached.
	Roots []SizedRoot `json:"roots,omitempty"`
	// More says that there are further events.
	More bool `json:"more,omitempty"`
	// Broken says where the chain is broken; nothing after it is read.
	Broken string `json:"broken,omitempty"`
}

// SizedRoot is the root over the first events.
type SizedRoot struct {
	Size uint64    `json:"size"`
	Root tlog.Hash `json:"root"`
}

// Limits of one answer.
const (
	maxPage = 500
	// MaxSizes bounds the sizes of one question about roots.
	MaxSizes = 1000
	// readTime is how long one answer reads events: well below what an asker waits for.
	readTime = 2 * time.Second
)

// roots reads events and computes roots, as far as it comes in the time of one answer.
func (l *Log) roots(ctx context.Context, q RootsQuestion) (RootsAnswer, error) {
	a := RootsAnswer{State: q.State}
	if !q.State.whole() {
		return a, errors.Mark(errors.New("state has another number of subtrees than its number of events asks for: give back what the answer before gave"), errQuestion)
	}
	tail, err := l.cfg.Events.Tail(ctx)
	if err != nil {
		return a, err
	}
	until := time.Now().Add(readTime)
	sizes := q.Sizes
	passed := func() {
		for len(sizes) > 0 && sizes[0] <= a.State.Head.Sequence {
			sizes = sizes[1:]
		}
	}
	passed()
	head := a.State.Head
	for _, err := range es.VerifyChain(&head, l.cfg.Events.Read(ctx, head.Sequence)) {
		if errors.Is(err, es.ErrBrokenChain) {
			a.Broken = err.Error()
			return a, nil
		}
		if err != nil {
			return a, err
		}
		a.State.Add(head)
		if len(sizes) > 0 && sizes[0] == head.Sequence {
			a.Roots = append(a.Roots, SizedRoot{Size: head.Sequence, Root: a.State.Root()})
			passed()
		}
		if head.Sequence%1024 == 0 && time.Now().After(until) {
			break
		}
	}
	a.More = a.State.Head.Sequence < tail
	return a, nil
}

// page gives the stored checkpoints after a place.
func (l *Log) page(ctx context.Context, q CheckpointsQuestion) (CheckpointsPage, error) {
	p := CheckpointsPage{Checkpoints: []string{}}
	accepted, err := l.cfg.Accepted(ctx)
	if err != nil {
		return p, err
	}
	var last uint64
	for kept, err := range l.cfg.Checkpoints.After(ctx, q.After) {
		if err != nil {
			return p, err
		}
		if len(p.Checkpoints) == maxPage {
			p.Next = last
			break
		}
		c, err := Peek(kept.Signed)
		if err != nil {
			return p, errors.Wrapf(err, "checkpoint %d", kept.Place)
		}
		p.Checkpoints, last = append(p.Checkpoints, string(kept.Signed)), kept.Place
		if accepted(c) {
			p.Lost = len(p.Checkpoints)
		}
	}
	return p, nil
}

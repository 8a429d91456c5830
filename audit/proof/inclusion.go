package proof

import (
	"encoding/base64"
	"encoding/json"
	"slices"

	"github.com/cockroachdb/errors"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Inclusion proves that an event stands in the record that a checkpoint was signed over: all of it fits into a file, and is
// checked without the chain.
type Inclusion struct {
	Event Record `json:"event"`
	// Size is the number of events of the checkpoint.
	Size uint64 `json:"size"`
	// Path is the hashes that lead from the event's leaf to the root, from the bottom up, in base64.
	Path tlog.RecordProof `json:"path"`
	// Checkpoint is the signed note.
	Checkpoint string `json:"checkpoint"`
	// Keys are the public keys the chain says it signs with. They are a hint: who checks compares them with those he has kept.
	Keys []string `json:"keys,omitempty"`
}

// ReadInclusion reads a proof. It gives errors marked [ErrMalformed].
func ReadInclusion(text []byte) (Inclusion, error) {
	var p Inclusion
	if err := json.Unmarshal(text, &p); err != nil {
		return p, errors.Mark(errors.Wrap(err, "this is no proof of an event"), ErrMalformed)
	}
	if p.Checkpoint == "" || p.Event.Sequence == 0 {
		return p, markf(ErrMalformed, "this is no proof of an event: it must have an event, a path and a checkpoint")
	}
	return p, nil
}

// Verify checks the proof with the keys, and gives the checkpoint it leads to. It gives errors marked [ErrMalformed], [ErrEvent],
// [ErrOrigin], [ErrKey], [ErrSignature], [ErrSize], [ErrRoot], [ErrOlder] or [ErrProof].
func (p Inclusion) Verify(keys Keys) (Checkpoint, error) {
	c, err := Open([]byte(p.Checkpoint), keys)
	switch {
	case errors.Is(err, ErrSignature):
		// The keys have signed something: what it was tells which part was changed since.
		return c, p.changed(c, keys, err)
	case err != nil:
		return c, err
	}
	if err := p.Event.Check(); err != nil {
		return c, err
	}
	if p.Event.Sequence > c.Size {
		return c, markf(ErrOlder, "the checkpoint has seen %d events, so it can't prove event %d; ask for a newer proof", c.Size, p.Event.Sequence)
	}
	if p.Size != c.Size {
		return c, markf(ErrSize, "the proof is made for %d events, its checkpoint has seen %d", p.Size, c.Size)
	}
	if err := tlog.CheckRecord(p.Path, int64(c.Size), c.Root, int64(p.Event.Sequence-1), LeafHash(p.Event.Head())); err != nil {
		return c, markf(ErrProof, "the hashes of the proof do not lead from event %d to the root of the %d events of the checkpoint: one of the two was changed, or the event stands elsewhere",
			p.Event.Sequence, c.Size)
	}
	return c, nil
}

// changed tells which part of a checkpoint is not what was signed, by putting back what the rest of the proof says of it.
func (p Inclusion) changed(c Checkpoint, keys Keys, otherwise error) error {
	n, err := signatures([]byte(p.Checkpoint))
	if err != nil {
		return err
	}
	signed := func(c Checkpoint) bool {
		return slices.ContainsFunc(n.UnverifiedSigs, func(s note.Signature) bool { return verifies(keys, s, c.text()) })
	}
	was := c
	if was.Size = p.Size; signed(was) {
		return markf(ErrSize, "the checkpoint says %d events, but what was signed says %d: its size was changed", c.Size, p.Size)
	}
	was = c
	root, ok := rootFrom(p.Path, c.Size, p.Event.Sequence-1, LeafHash(p.Event.Head()))
	if was.Root = root; ok && signed(was) {
		return markf(ErrRoot, "the checkpoint has the root %s, but what was signed has %s: its root was changed", c.Root, root)
	}
	return otherwise
}

// rootFrom computes the root that a path leads to from the leaf with an index, among so many (RFC 9162, 2.1.3.2).
func rootFrom(path tlog.RecordProof, size, index uint64, leaf tlog.Hash) (tlog.Hash, bool) {
	if index >= size {
		return tlog.Hash{}, false
	}
	root, last := leaf, size-1
	for _, h := range path {
		if last == 0 {
			return tlog.Hash{}, false
		}
		if index&1 == 1 || index == last {
			root = tlog.NodeHash(h, root)
			for index&1 == 0 && index != 0 {
				index, last = index>>1, last>>1
			}
		} else {
			root = tlog.NodeHash(root, h)
		}
		index, last = index>>1, last>>1
	}
	return root, last == 0
}

// verifies says whether one of the keys has made a signature over a text.
func verifies(keys Keys, s note.Signature, text string) bool {
	signature, err := base64.StdEncoding.DecodeString(s.Base64)
	if err != nil || len(signature) <= keyHashBytes {
		return false
	}
	return slices.ContainsFunc(keys, func(k note.Verifier) bool {
		return k.Name() == s.Name && k.KeyHash() == s.Hash && k.Verify([]byte(text), signature[keyHashBytes:])
	})
}

// keyHashBytes is what stands before a signature: the hash of the key it was made with.
const keyHashBytes = 4

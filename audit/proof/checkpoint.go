package proof

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"catenary/es"
)

// MaxCheckpointBytes bounds a checkpoint that is handed in: a few lines with a signature or two have a thousand.
const MaxCheckpointBytes = 16 << 10

// Checkpoint says how many events a chain had at a time, and what they were.
type Checkpoint struct {
	// Origin is the name of the chain.
	Origin string
	// Size is the number of events.
	Size uint64
	// Root is the root of the Merkle tree over them.
	Root tlog.Hash
	// Head is the hash of the last of them.
	Head es.Hash
	// Time is when it was signed. It comes from the signer's clock.
	Time time.Time
	// New says which of the keys under it sign for the first time, and why. Usually it says nothing.
	New NewKeys
}

func emptyRoot() tlog.Hash { return tlog.Hash(sha256.Sum256(nil)) }

// text is what is signed.
func (c Checkpoint) text() string {
	text := fmt.Sprintf("%s\n%d\n%s\nhead %s\ntime %s\n", c.Origin, c.Size, c.Root, c.Head, c.Time.UTC().Format(time.RFC3339))
	if c.New.Keys != "" {
		text += fmt.Sprintf("new-keys %s\nreason %s\n", c.New.Keys, c.New.Reason)
	}
	return text
}

// Sign gives the signed note. It gives an error when a signer does not bear the chain's name.
func (c Checkpoint) Sign(signers ...note.Signer) ([]byte, error) {
	for _, s := range signers {
		if s.Name() != c.Origin {
			return nil, errors.Newf("the key of %s can't sign for the chain %s", s.Name(), c.Origin)
		}
	}
	signed, err := note.Sign(&note.Note{Text: c.text()}, signers...)
	return signed, errors.Wrapf(err, "sign the checkpoint of %d events", c.Size)
}

// parse reads what is signed. Lines that a later program adds are passed over.
func parse(text string) (Checkpoint, error) {
	bad := func(what string) (Checkpoint, error) {
		return Checkpoint{}, markf(ErrMalformed, "this is no checkpoint: %s", what)
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) < 3 || lines[0] == "" {
		return bad("it must have lines with an origin, a size and a root")
	}
	c := Checkpoint{Origin: lines[0]}
	var err error
	if c.Size, err = strconv.ParseUint(lines[1], 10, 63); err != nil || strconv.FormatUint(c.Size, 10) != lines[1] {
		return bad(fmt.Sprintf("its size is %.40q", lines[1]))
	}
	root, err := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || len(root) != len(c.Root) {
		return bad(fmt.Sprintf("its root is %.80q", lines[2]))
	}
	copy(c.Root[:], root)
	for _, l := range lines[3:] {
		name, value, _ := strings.Cut(l, " ")
		switch name {
		case "head":
			c.Head, err = es.ParseHash(value)
		case "time":
			c.Time, err = time.Parse(time.RFC3339, value)
		case "new-keys":
			c.New.Keys = value
		case "reason":
			c.New.Reason = value
		}
		if err != nil {
			return bad(fmt.Sprintf("its line %.80q can't be read", l))
		}
	}
	return c, nil
}

// signatures is a note taken apart, of which nothing is verified.
func signatures(signed []byte) (*note.Note, error) {
	_, err := note.Open(signed, note.VerifierList())
	var unverified *note.UnverifiedNoteError
	if !errors.As(err, &unverified) {
		return nil, markf(ErrMalformed, "this is no checkpoint: a text with a line of signature below it is expected")
	}
	return unverified.Note, nil
}

// Peek reads a checkpoint without checking who has signed it. It gives errors marked [ErrMalformed].
func Peek(signed []byte) (Checkpoint, error) {
	n, err := signatures(signed)
	if err != nil {
		return Checkpoint{}, err
	}
	return parse(n.Text)
}

// Open reads a checkpoint that one of the keys has signed. It gives errors marked [ErrMalformed], [ErrOrigin], [ErrKey] or
// [ErrSignature].
func Open(signed []byte, keys Keys) (Checkpoint, error) {
	n, err := signatures(signed)
	if err != nil {
		return Checkpoint{}, err
	}
	c, err := parse(n.Text)
	if err != nil {
		return c, err
	}
	if !keys.of(c.Origin) {
		return c, markf(ErrOrigin, "this is a checkpoint of the chain %.80s; the key is that of %s", c.Origin, strings.Join(keys.names(), ", "))
	}
	_, err = note.Open(signed, keys.verifiers())
	var wrong *note.InvalidSignatureError
	switch {
	case err == nil:
		return c, nil
	case errors.As(err, &wrong):
		return c, markf(ErrSignature, "the signature of %s does not fit the checkpoint of %d events above it: one of the two was changed", wrong.Name, c.Size)
	}
	return c, markf(ErrKey, "the checkpoint of %d events is signed by %s, and not by %s", c.Size, strings.Join(signatureNames(n), ", "), strings.Join(keys.ids(), ", "))
}

// matches says whether a head is that of the last event that the checkpoint has seen.
func (c Checkpoint) matches(h es.Head) bool { return c.Size == h.Sequence && c.Head == h.Hash }

// Follows checks two checkpoints of one chain against each other by a proof that the later one only added to the earlier. It gives
// errors marked [ErrOrigin], [ErrShortened], [ErrForked] or [ErrProof].
func (c Checkpoint) Follows(earlier Checkpoint, path tlog.TreeProof) error {
	switch {
	case earlier.Origin != c.Origin:
		return markf(ErrOrigin, "the checkpoint of %d events is of the chain %s, that of %d events of %s", earlier.Size, earlier.Origin, c.Size, c.Origin)
	case earlier.Size > c.Size:
		return markf(ErrShortened, "the checkpoint at hand has seen %d events, the chain now shows %d: %d are gone from its end", earlier.Size, c.Size, earlier.Size-c.Size)
	case earlier.Size == c.Size && earlier.Root != c.Root:
		return markf(ErrForked, "two checkpoints of %d events have the roots %s and %s: two different records were signed", c.Size, earlier.Root, c.Root)
	case earlier.Size == c.Size, earlier.Size == 0:
		return nil
	}
	if err := tlog.CheckTree(path, int64(c.Size), c.Root, int64(earlier.Size), earlier.Root); err != nil {
		return markf(ErrForked, "the record of %d events does not begin with the %d events of the checkpoint at hand (root %s): what stood then was changed, or the proof of it was",
			c.Size, earlier.Size, earlier.Root)
	}
	return nil
}

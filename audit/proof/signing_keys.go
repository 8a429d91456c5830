package proof

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/cockroachdb/errors"
	"golang.org/x/mod/sumdb/note"
)

// ErrKeyLost means that the keys at hand are not those that the chain's checkpoints are signed with: the file is gone, or is another
// one. Signing goes on with the right file, or with new keys that somebody has put on record.
var ErrKeyLost = errors.New("the chain's key is not at hand")

// maxReasonBytes bounds why new keys sign: it stands in a checkpoint for ever.
const maxReasonBytes = 500

// SigningKeys says where the keys of a chain are, and what may be done when they are not.
type SigningKeys struct {
	// Path is the file's. At the first start of a chain a file with one key is made, which bears the name Chain, or one by chance.
	Path  string
	Chain string
	// NewKeys says why keys sign that have signed none of the chain's checkpoints: those in the file, or one that is made where there is no
	// file. Empty means that none do.
	NewKeys string
	Random  io.Reader
}

// NewKeys are keys that sign without having signed before, for a reason.
type NewKeys struct {
	// Keys are their names, as they stand in signatures: name+hash.
	Keys   string
	Reason string
}

// CheckNewKeysReason checks the form of why new keys sign. It gives errors marked [ErrMalformed].
func CheckNewKeysReason(reason string) error {
	if len(reason) > maxReasonBytes || strings.IndexFunc(reason, func(r rune) bool { return r < ' ' || r == '\ufffd' }) >= 0 {
		return markf(ErrMalformed, "the reason for new keys is one line of %d bytes at most: it stands in a checkpoint", maxReasonBytes)
	}
	return nil
}

// Open gives the keys to sign with. When the chain has checkpoints already, one of the keys MUST have signed one of them; if none has,
// it gives what the next checkpoint is to put on record, or, without a reason for new keys, an error marked [ErrKeyLost] with what was
// expected and what was found. It gives [ErrMalformed] for a file that is none of ours, [es.ErrUnavailable] from where checkpoints are kept,
// and errors of the file system.
func (s SigningKeys) Open(ctx context.Context, kept Checkpoints) (KeyFile, *NewKeys, error) {
	signed, place, err := kept.Newest(ctx)
	if err != nil {
		return KeyFile{}, nil, err
	}
	if place == 0 {
		f, err := OpenKeyFile(s.Path, s.Chain, s.Random)
		return f, nil, err
	}
	newest, err := Peek(signed)
	if err != nil {
		return KeyFile{}, nil, errors.Wrap(err, "the newest stored checkpoint")
	}
	expected, err := signedBy(signed)
	if err != nil {
		return KeyFile{}, nil, errors.Wrap(err, "the newest stored checkpoint")
	}
	lost := func(found string) error {
		err := markf(ErrKeyLost, "%s, but the checkpoints of this chain are signed as %s, the newest, over %d events, by %s: other keys would sign as if it were another chain", found, newest.Origin, newest.Size, expected)
		err = errors.WithHint(err, "bring the file with that key back from a backup, or name its place with --checkpoint-key")
		return errors.WithHint(err, "if the key is lost for good, start once with --new-checkpoint-key REASON: a new key of the chain's name then signs, and a checkpoint says so; what was signed before is checked with the old public key")
	}
	_, err = os.Stat(s.Path)
	switch {
	case err == nil:
	case !errors.Is(err, fs.ErrNotExist):
		return KeyFile{}, nil, errors.Wrap(err, "keys of checkpoints")
	case s.NewKeys == "":
		return KeyFile{}, nil, lost(fmt.Sprintf("there is no key file %s", s.Path))
	case s.Chain != "" && s.Chain != newest.Origin:
		return KeyFile{}, nil, markf(ErrOrigin, "the chain is called %s, as its checkpoints say; a new key can't call it %s", newest.Origin, s.Chain)
	}
	f, err := OpenKeyFile(s.Path, newest.Origin, s.Random)
	if errors.Is(err, ErrMalformed) {
		return f, nil, errors.WithHint(lost("the key file is damaged: "+err.Error()), "a file that is there is never written over: move it away first")
	}
	if err != nil {
		return f, nil, err
	}
	keys, err := ParseKeys(strings.Join(f.Public, "\n"))
	if err != nil {
		return f, nil, err
	}
	found := strings.Join(keys.ids(), ", ")
	if f.Name() != newest.Origin {
		err := lost(fmt.Sprintf("the key file %s has the keys %s", s.Path, found))
		return f, nil, errors.WithHint(err, "a file with the keys of another chain is never written over: move it away first")
	}
	known, err := haveSigned(ctx, kept, signed, keys)
	switch {
	case err != nil || known:
		return f, nil, err
	case s.NewKeys == "":
		return f, nil, lost(fmt.Sprintf("none of the keys in %s (%s) has signed a checkpoint of this chain", s.Path, found))
	}
	return f, &NewKeys{Keys: strings.Join(keys.ids(), " "), Reason: s.NewKeys}, nil
}

// haveSigned says whether one of the keys has signed one of the checkpoints: usually it is the newest, and with several projectors one
// of the others.
func haveSigned(ctx context.Context, kept Checkpoints, newest []byte, keys Keys) (bool, error) {
	if _, err := Open(newest, keys); err == nil {
		return true, nil
	}
	for c, err := range kept.After(ctx, 0) {
		if err != nil {
			return false, err
		}
		if _, err := Open(c.Signed, keys); err == nil {
			return true, nil
		}
	}
	return false, nil
}

// signedBy names the keys that a checkpoint says it is signed with.
func signedBy(signed []byte) (string, error) {
	n, err := signatures(signed)
	if err != nil {
		return "", err
	}
	return strings.Join(signatureNames(n), ", "), nil
}

// signatureNames names the keys of the signatures of a note, of which nothing is verified.
func signatureNames(n *note.Note) []string {
	var by []string
	for _, s := range n.UnverifiedSigs {
		by = append(by, fmt.Sprintf("%s+%08x", s.Name, s.Hash))
	}
	return by
}

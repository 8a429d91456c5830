package proof

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/errors"
	"golang.org/x/mod/sumdb/note"
)

// Keys are public keys of one chain, as they are handed out: name+hash+key.
type Keys []note.Verifier

// ParseKeys reads public keys, separated by spaces or lines. It gives errors marked [ErrMalformed].
func ParseKeys(text string) (Keys, error) {
	var keys Keys
	for _, word := range strings.Fields(text) {
		v, err := note.NewVerifier(word)
		if err != nil {
			return nil, markf(ErrMalformed, "%.120q is no public key of a chain: it has a name, eight hex digits and base64, joined by +", word)
		}
		// A key that is given twice would make it unclear which of the two has signed.
		if !slices.ContainsFunc(keys, func(k note.Verifier) bool { return k.Name() == v.Name() && k.KeyHash() == v.KeyHash() }) {
			keys = append(keys, v)
		}
	}
	if len(keys) == 0 {
		return nil, markf(ErrMalformed, "no key is given")
	}
	return keys, nil
}

func (k Keys) verifiers() note.Verifiers { return note.VerifierList(k...) }

func (k Keys) of(origin string) bool {
	return slices.ContainsFunc(k, func(v note.Verifier) bool { return v.Name() == origin })
}

func (k Keys) names() []string {
	var names []string
	for _, v := range k {
		names = append(names, v.Name())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (k Keys) ids() []string {
	var ids []string
	for _, v := range k {
		ids = append(ids, fmt.Sprintf("%s+%08x", v.Name(), v.KeyHash()))
	}
	return ids
}

// KeyFile is the file with the secret keys that checkpoints are signed with: one a line. All of them sign, so that a new one can
// be handed out before the old one goes. All bear the chain's name.
type KeyFile struct {
	// Path is where the file stands. It is readable by its owner alone.
	Path string
	// Signers sign, Public are their public keys as they are handed out.
	Signers []note.Signer
	Public  []string
	// Exposed says that others than the owner could read the file when it was opened, as after a backup was brought back. The keys in
	// it are to be replaced when that matters.
	Exposed bool
}

// Name is the chain's.
func (f KeyFile) Name() string { return f.Signers[0].Name() }

// secretMode is the mode of a file with secret keys.
const secretMode fs.FileMode = 0o600

// OpenKeyFile reads the keys, or makes one when there is no file. A new key bears the name given, or one by chance. Others
// than the owner can't read the file afterwards. It gives errors marked [ErrMalformed] for a file that is none of ours, and those of the
// file system.
func OpenKeyFile(path, name string, random io.Reader) (KeyFile, error) {
	f, err := ReadKeyFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if name == "" {
			var chance [6]byte
			if _, err := io.ReadFull(random, chance[:]); err != nil {
				return f, errors.Wrap(err, "name the chain")
			}
			name = fmt.Sprintf("catenary-%x", chance)
		}
		if err := addKey(path, name, "", random); err != nil {
			return f, err
		}
		f, err = ReadKeyFile(path)
	}
	if err == nil && f.Exposed {
		err = errors.Wrap(os.Chmod(path, secretMode), "keys of checkpoints")
	}
	return f, err
}

// AddKey adds a key of the same name to a file of keys, and gives its public half. Programs that run sign with it after their next
// start. It gives errors marked [ErrMalformed], and those of the file system.
func AddKey(path string, random io.Reader) (string, error) {
	f, err := ReadKeyFile(path)
	if err != nil {
		return "", err
	}
	before, err := os.ReadFile(path)
	if err != nil {
		return "", errors.Wrap(err, "keys of checkpoints")
	}
	if err := addKey(path, f.Name(), string(before), random); err != nil {
		return "", err
	}
	if f, err = ReadKeyFile(path); err != nil {
		return "", err
	}
	return f.Public[len(f.Public)-1], nil
}

// addKey writes the whole file anew, beside and then in place, so that a crash leaves one or the other.
func addKey(path, name, before string, random io.Reader) (err error) {
	secret, _, err := note.GenerateKey(random, name)
	if err != nil {
		return errors.Wrapf(err, "make a key for the chain %q", name)
	}
	if before != "" && !strings.HasSuffix(before, "\n") {
		before += "\n"
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return errors.Wrap(err, "keys of checkpoints")
	}
	defer func() {
		if err != nil {
			err = errors.CombineErrors(err, os.Remove(file.Name()))
		}
	}()
	_, err = file.WriteString(before + secret + "\n")
	if err == nil {
		err = file.Chmod(secretMode)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.CombineErrors(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	return errors.Wrapf(err, "write the keys of checkpoints to %s", path)
}

// ReadKeyFile reads the keys. It gives errors marked [ErrMalformed] for a file that is none of ours, and those of the file system.
func ReadKeyFile(path string) (KeyFile, error) {
	f := KeyFile{Path: path}
	info, err := os.Stat(path)
	if err != nil {
		return f, errors.Wrap(err, "keys of checkpoints")
	}
	f.Exposed = info.Mode().Perm()&^secretMode != 0
	text, err := os.ReadFile(path)
	if err != nil {
		return f, errors.Wrap(err, "keys of checkpoints")
	}
	for i, secret := range strings.Fields(string(text)) {
		signer, err := note.NewSigner(secret)
		if err != nil {
			return f, markf(ErrMalformed, "line %d of %s is no secret key of a chain", i+1, path)
		}
		public, err := publicOf(secret)
		if err != nil {
			return f, err
		}
		f.Signers, f.Public = append(f.Signers, signer), append(f.Public, public)
	}
	switch {
	case len(f.Signers) == 0:
		return f, markf(ErrMalformed, "%s has no key in it; remove it, and a new key is made", path)
	case slices.ContainsFunc(f.Signers, func(s note.Signer) bool { return s.Name() != f.Name() }):
		return f, markf(ErrMalformed, "the keys in %s bear different names: those of one chain bear its name", path)
	}
	return f, nil
}

// publicOf gives the public half of a secret key, in the form that is handed out.
func publicOf(secret string) (string, error) {
	parts := strings.SplitN(secret, "+", 5) // PRIVATE+KEY+name+hash+base64
	if len(parts) != 5 {
		return "", markf(ErrMalformed, "this is no secret key of a chain")
	}
	// The first byte says which kind of key it is; the reader of secret keys takes Ed25519 only.
	key, err := base64.StdEncoding.DecodeString(parts[4])
	if err != nil || len(key) != 1+ed25519.SeedSize {
		return "", markf(ErrMalformed, "the secret key of %s is not an Ed25519 key", parts[2])
	}
	public, ok := ed25519.NewKeyFromSeed(key[1:]).Public().(ed25519.PublicKey)
	if !ok {
		return "", errors.AssertionFailedf("an Ed25519 key has another public key")
	}
	text, err := note.NewEd25519VerifierKey(parts[2], public)
	return text, errors.Wrapf(err, "public key of %s", parts[2])
}

package artifacts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"

	"github.com/cockroachdb/errors"
)

// What fetching an artifact can come to. Sources mark their errors with one of these.
var (
	// ErrNotFound means that the source has no such artifact, and waiting does not help.
	ErrNotFound = errors.New("there is no such artifact")
	// ErrUnavailable means that the source can't be reached now. It may be tried again.
	ErrUnavailable = errors.New("artifacts can't be reached")
	// ErrMismatch means that what came is not what was asked for.
	ErrMismatch = errors.New("the artifact does not match its digest")
	// ErrDigest means that a reference is no digest.
	ErrDigest = errors.New("not a digest of an artifact")
)

// Source gives the content of artifacts. It MAY be called by many goroutines at once.
type Source interface {
	// Open gives the content of an artifact from a place in it on, so that a fetch that was cut short goes on where it was. Zero is
	// the beginning. What it gives is not verified. It gives errors marked [ErrNotFound] or [ErrUnavailable], and reading may too.
	Open(ctx context.Context, digest string, from int64) (io.ReadCloser, error)
}

// Algorithm begins every digest.
const Algorithm = "sha256:"

const fileMode = 0o600

// Mismatch is the error of what is not what was asked for. It is marked [ErrMismatch].
type Mismatch struct{ Expected, Found string }

// Error names both digests.
func (m *Mismatch) Error() string {
	return fmt.Sprintf("%v: expected %s, found %s", ErrMismatch, m.Expected, m.Found)
}

// Is says that it is an [ErrMismatch].
func (m *Mismatch) Is(target error) bool { return target == ErrMismatch }

// ParseDigest gives the hexadecimal part of a digest, which is fit for a file's name. It gives errors marked [ErrDigest].
func ParseDigest(digest string) (string, error) {
	text, ok := strings.CutPrefix(digest, Algorithm)
	if sum, err := hex.DecodeString(text); !ok || err != nil || len(sum) != sha256.Size || text != strings.ToLower(text) {
		return "", errors.Mark(errors.Newf("%.100q is not %s and 64 hexadecimal digits", digest, Algorithm), ErrDigest)
	}
	return text, nil
}

// Fetch brings an artifact into a file. What a try before has left in the file is gone on from, as long as the whole has the digest
// in the end; what has not is removed. The file is on disk when this returns. It gives errors marked [ErrDigest], [ErrNotFound],
// [ErrUnavailable] or [ErrMismatch] ([*Mismatch]), and those of the file system.
func Fetch(ctx context.Context, source Source, digest, path string) error {
	if _, err := ParseDigest(digest); err != nil {
		return err
	}
	resumed, err := fetch(ctx, source, digest, path, false)
	if resumed && errors.Is(err, ErrMismatch) {
		// The part that was there may have been another one's.
		_, err = fetch(ctx, source, digest, path, true)
	}
	return errors.Wrapf(err, "fetch artifact %s", digest)
}

// fetch tries once. It says whether it went on from a part that was there.
func fetch(ctx context.Context, source Source, digest, path string, anew bool) (resumed bool, err error) {
	flags := os.O_CREATE | os.O_RDWR
	if anew {
		flags |= os.O_TRUNC
	}
	file, err := os.OpenFile(path, flags, fileMode)
	if err != nil {
		return false, errors.Wrap(err, "open the file")
	}
	sum := sha256.New()
	have, err := io.Copy(sum, file)
	if err == nil && have > 0 && digestOf(sum) == digest {
		return true, errors.Wrap(file.Close(), "close the file")
	}
	if err == nil {
		err = appendFrom(ctx, source, digest, have, file, sum)
	}
	if err == nil {
		err = errors.Wrap(file.Sync(), "sync the file")
	}
	err = errors.CombineErrors(err, errors.Wrap(file.Close(), "close the file"))
	if errors.Is(err, ErrMismatch) {
		err = errors.CombineErrors(err, os.Remove(path))
	}
	return have > 0, err
}

func appendFrom(ctx context.Context, source Source, digest string, from int64, file *os.File, sum hash.Hash) error {
	content, err := source.Open(ctx, digest, from)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.MultiWriter(file, sum), reader{ctx: ctx, Reader: content})
	err = errors.CombineErrors(err, content.Close())
	if err != nil {
		return err
	}
	if found := digestOf(sum); found != digest {
		return errors.WithStack(&Mismatch{Expected: digest, Found: found})
	}
	return nil
}

func digestOf(sum hash.Hash) string { return Algorithm + hex.EncodeToString(sum.Sum(nil)) }

// reader ends with its context.
type reader struct {
	ctx context.Context
	io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

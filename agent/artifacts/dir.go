package artifacts

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cockroachdb/errors"
)

// Dir is a source that is a directory: the file of an artifact has the digest's 64 digits as its name.
type Dir string

var _ Source = Dir("")

// Open implements [Source].
func (d Dir) Open(_ context.Context, digest string, from int64) (io.ReadCloser, error) {
	name, err := ParseDigest(digest)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(filepath.Join(string(d), name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.Mark(errors.Newf("directory %s has no file %s", string(d), name), ErrNotFound)
	case err != nil:
		return nil, errors.Mark(errors.Wrap(err, "open the artifact"), ErrUnavailable)
	}
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return nil, errors.CombineErrors(errors.Wrap(err, "go on in the artifact"), file.Close())
	}
	return file, nil
}

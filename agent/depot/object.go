package depot

import (
	"time"

	"github.com/cockroachdb/errors"

	"catenary/agent/artifacts"
	"catenary/es"
	"catenary/internal/parts"
	"catenary/internal/topology"
)

const (
	// ChunkBytes is the size of every piece of an artifact but the last.
	ChunkBytes = topology.ArtifactChunkBytes
	// windowChunks is how many pieces come for one request: so much is on its way to one who fetches, and no more.
	windowChunks = 8
	// WindowBytes is what comes for one request, at most.
	WindowBytes = windowChunks * ChunkBytes
	// MaxBytes bounds one artifact.
	MaxBytes = topology.MaxArtifactBytes
	// UploadAge is how long an upload may rest before it is removed: longer than a night.
	UploadAge = 24 * time.Hour
	// DefaultWindow is for how long an artifact is kept that nothing names any more, so that the fleet can be taken back to where it was.
	DefaultWindow = 30 * 24 * time.Hour
)

// ErrBusy means that the depot has too much to do. Ask again.
var ErrBusy = errors.New("the depot is busy")

// errMoved means that an upload is not where its sender thinks: it has grown, or was removed.
var errMoved = errors.New("the upload is elsewhere by now")

// errDamaged means that the store does not give back what was put into it.
var errDamaged = errors.New("the store is damaged")

// Stored is an artifact that is there, whole.
type Stored struct {
	Digest string `json:"digest"`
	Bytes  int64  `json:"bytes"`
	// File is the name of the file that was published first.
	File string `json:"file,omitempty"`
	// Stored is when it was stored, Used when it was last published.
	Stored time.Time `json:"stored"`
	Used   time.Time `json:"used"`
}

// Place is how far an upload is.
type Place struct {
	// Stored is set when there is nothing to upload.
	Stored *Stored `json:"stored,omitempty"`
	// Upload names the row of pieces, After is the last one, and Have is what is there.
	Upload string `json:"upload,omitempty"`
	After  uint64 `json:"after,omitempty"`
	Have   int64  `json:"have,omitempty"`
}

// Finished is what came of the end of an upload.
type Finished struct {
	Stored
	// Again says that the artifact was there before.
	Again bool `json:"again,omitempty"`
}

// chunks is how many pieces so many bytes make.
func chunks(bytes int64) int64 { return (bytes + ChunkBytes - 1) / ChunkBytes }

// chunkLen is the size of a piece, counted from zero.
func chunkLen(bytes, index int64) int64 { return min(ChunkBytes, bytes-index*ChunkBytes) }

// CheckSize refuses what is too large, and what is nothing. It gives errors marked [es.ErrTooLarge] and [parts.ErrRequest], which name the artifact.
func CheckSize(name string, bytes int64) error {
	switch {
	case bytes <= 0:
		return errors.Mark(errors.Newf("artifact %s has %d bytes: there is nothing to keep", name, bytes), parts.ErrRequest)
	case bytes > MaxBytes:
		return errors.WithHint(errors.Mark(errors.Newf("artifact %s has %d bytes: the limit is %d", name, bytes, int64(MaxBytes)), es.ErrTooLarge),
			"divide it, or keep it where agents get it by https: or oci:")
	}
	return nil
}

// Codes of an answer without an answer, as the header of micro services has them.
const (
	codeQuestion   = "400"
	codeNotFound   = "404"
	codeMoved      = "409"
	codeTooLarge   = "413"
	codeMismatch   = "422"
	codeBusy       = "429"
	codeFailed     = "500"
	codeNotReached = "503"
	codeFull       = "507"
)

// codes are the kinds of errors that travel, each with its code.
func codes() []struct {
	code string
	kind error
} {
	return []struct {
		code string
		kind error
	}{
		{codeQuestion, parts.ErrRequest}, {codeQuestion, artifacts.ErrDigest}, {codeNotFound, artifacts.ErrNotFound}, {codeMoved, errMoved},
		{codeTooLarge, es.ErrTooLarge}, {codeMismatch, artifacts.ErrMismatch}, {codeBusy, ErrBusy}, {codeFull, es.ErrFull},
		{codeNotReached, artifacts.ErrUnavailable}, {codeNotReached, es.ErrUnavailable},
	}
}

// codeOf gives the code under which an error travels.
func codeOf(err error) string {
	for _, c := range codes() {
		if errors.Is(err, c.kind) {
			return c.code
		}
	}
	return codeFailed
}

// errorOf gives the error that travelled under a code. What may be tried again is marked [artifacts.ErrUnavailable] too.
func errorOf(code, text string) error {
	err := errors.New(text)
	for _, c := range codes() {
		if c.code == code {
			err = errors.Mark(err, c.kind)
		}
	}
	if code == codeBusy {
		err = errors.Mark(err, artifacts.ErrUnavailable)
	}
	if code == codeFull {
		err = errors.WithHint(err, "remove artifacts that nothing needs with: catenary artifacts prune, or give the depot a larger store")
	}
	return err
}

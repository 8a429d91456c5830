package artifacts

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
)

// ErrPlace marks a place that can't hold artifacts.
var ErrPlace = errors.New("not a place of artifacts")

// ParsePlace reads where artifacts are:
//
//	file:DIR     a directory of files named by the 64 digits of their digests
//	oci:DIR      an OCI image layout on disk, whose blobs are artifacts
//	https://…    a web server; {digest} stands for the digest and {sha256} for its 64 digits
//
// Whatever the place, an artifact is asked for by its digest, and compared with it. It gives errors marked [ErrPlace].
func ParsePlace(text string, client *http.Client) (Source, error) {
	kind, rest, _ := strings.Cut(text, ":")
	switch kind {
	case "file", "oci":
		dir := strings.TrimPrefix(rest, "//")
		if kind == "oci" {
			if _, err := os.Stat(filepath.Join(dir, "oci-layout")); err != nil {
				return nil, errors.Mark(errors.Wrapf(err, "%s is no OCI image layout", dir), ErrPlace)
			}
			dir = filepath.Join(dir, "blobs", "sha256")
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, errors.Mark(errors.Newf("%s is no directory", dir), ErrPlace)
		}
		return Dir(dir), nil
	case "http", "https":
		if !strings.Contains(text, digestMark) && !strings.Contains(text, digitsMark) {
			return nil, errors.Mark(errors.Newf("%s says neither %s nor %s: an artifact is asked for by its digest", text, digestMark, digitsMark), ErrPlace)
		}
		return Web{URL: text, Client: client}, nil
	}
	return nil, errors.Mark(errors.Newf("%q is none of file:DIR, oci:DIR and https://…", text), ErrPlace)
}

// Marks of a URL.
const (
	digestMark = "{digest}"
	digitsMark = "{sha256}"
)

// Web is a source that is a web server.
type Web struct {
	// URL is that of an artifact, with a mark in the place of its digest.
	URL    string
	Client *http.Client
	// Patience is how long the server may say nothing. Zero means DefaultPatience.
	Patience time.Duration
}

// DefaultPatience is how long a web server may say nothing: longer than one takes that is near, and shorter than a deed may take, for which
// the next place is asked.
const DefaultPatience = 10 * time.Second

// errSilent is why a request was given up.
var errSilent = errors.New("the server said nothing for too long")

var _ Source = Web{}

// Open implements [Source]. A server that knows no ranges is read from the beginning.
func (w Web) Open(ctx context.Context, digest string, from int64) (io.ReadCloser, error) {
	digits, err := ParseDigest(digest)
	if err != nil {
		return nil, err
	}
	url := strings.NewReplacer(digestMark, digest, digitsMark, digits).Replace(w.URL)
	asking, end := context.WithCancelCause(ctx)
	body := &webBody{url: url, ctx: asking, end: end, patience: cmp.Or(w.Patience, DefaultPatience)}
	body.silent = time.AfterFunc(body.patience, func() { end(errSilent) })
	request, err := http.NewRequestWithContext(asking, http.MethodGet, url, http.NoBody)
	if err != nil {
		body.stop()
		return nil, errors.Mark(errors.Wrapf(err, "get %s", url), ErrPlace)
	}
	if from > 0 {
		request.Header.Set("Range", "bytes="+strconv.FormatInt(from, 10)+"-")
	}
	// Compression would make a range one of something else.
	request.Header.Set("Accept-Encoding", "identity")
	answer, err := w.Client.Do(request)
	if err != nil {
		err = body.failed(err)
		body.stop()
		return nil, err
	}
	body.silent.Stop()
	body.ReadCloser = answer.Body
	switch answer.StatusCode {
	case http.StatusPartialContent:
		if !strings.HasPrefix(answer.Header.Get("Content-Range"), "bytes "+strconv.FormatInt(from, 10)+"-") {
			return nil, errors.CombineErrors(errors.Mark(errors.Newf("get %s: asked from %d on, the range is %q", url, from, answer.Header.Get("Content-Range")), ErrUnavailable), body.Close())
		}
		return body, nil
	case http.StatusOK:
		if _, err := io.CopyN(io.Discard, body, from); err != nil && !errors.Is(err, io.EOF) {
			return nil, errors.CombineErrors(err, body.Close())
		}
		return body, nil
	case http.StatusRequestedRangeNotSatisfiable:
		// There is nothing after what is there; whether that is all of it its digest says.
		return io.NopCloser(strings.NewReader("")), body.Close()
	case http.StatusNotFound, http.StatusGone:
		return nil, errors.CombineErrors(errors.Mark(errors.Newf("get %s: %s", url, answer.Status), ErrNotFound), body.Close())
	}
	return nil, errors.CombineErrors(errors.Mark(errors.Newf("get %s: %s", url, answer.Status), ErrUnavailable), body.Close())
}

// webBody is what a server answers. It says of a cut, and of a silence, that what is left may be asked for again.
type webBody struct {
	io.ReadCloser
	url      string
	ctx      context.Context
	end      context.CancelCauseFunc
	patience time.Duration
	// silent ends the request when the server has said nothing for so long.
	silent *time.Timer
}

// Read implements [io.Reader].
func (b *webBody) Read(p []byte) (int, error) {
	b.silent.Reset(b.patience)
	n, err := b.ReadCloser.Read(p)
	b.silent.Stop()
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.failed(err)
	}
	return n, err
}

func (b *webBody) failed(err error) error {
	if cause := context.Cause(b.ctx); cause != nil {
		err = cause
	}
	return errors.Mark(errors.Wrapf(err, "get %s", b.url), ErrUnavailable)
}

// Close implements [io.Closer].
func (b *webBody) Close() error {
	b.stop()
	return b.ReadCloser.Close()
}

func (b *webBody) stop() {
	b.silent.Stop()
	b.end(nil)
}

// Places are sources that are asked in order, until one has given an artifact.
type Places []Source

// Fetch brings an artifact into a file as [Fetch] does, from the first place that gives it: what comes from one that is away, or that gives something
// else under the digest, is looked for in the next. Should none give it, a place that may do so later counts for most, and then one that gave something else.
func (p Places) Fetch(ctx context.Context, digest, path string) error {
	failed := errors.Mark(errors.Newf("there is no place to get artifact %s from", digest), ErrNotFound)
	for i, source := range p {
		err := Fetch(ctx, source, digest, path)
		if err == nil || ctx.Err() != nil || !errors.IsAny(err, ErrNotFound, ErrUnavailable, ErrMismatch) {
			return err
		}
		if i == 0 || weight(err) > weight(failed) {
			failed = err
		}
	}
	return failed
}

// weight says which of two reasons why an artifact did not come is told.
func weight(err error) int {
	switch {
	case errors.Is(err, ErrUnavailable):
		return 2
	case errors.Is(err, ErrMismatch):
		return 1
	}
	return 0
}

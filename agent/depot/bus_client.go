package depot

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/agent/artifacts"
	"catenary/es"
	"catenary/events"
	"catenary/internal/parts"
	"catenary/internal/topology"
)

// uploadPatience is how long an upload goes on asking without getting anywhere.
const uploadPatience = time.Minute

// Client asks the depot. It may be used by many goroutines at once.
//
// All methods give errors marked [artifacts.ErrUnavailable] when the depot can't be reached or is busy, and what the guard gives.
type Client struct{ parts *parts.Client }

var (
	_ artifacts.Source = (*Client)(nil)
	_ artifacts.Names  = (*Client)(nil)
)

// NewClient returns a client that asks over the connection. Guard may be nil.
func NewClient(nc *nats.Conn, guard parts.Guard) *Client {
	return &Client{parts.NewClient(nc, guard, translate)}
}

// translate gives the errors of this package for those of an answer.
func translate(err error) error {
	var refused *parts.Refused
	switch {
	case errors.As(err, &refused):
		return errorOf(refused.Code, refused.Text)
	case errors.Is(err, parts.ErrUnreachable):
		return errors.Mark(errors.Wrap(err, "the depot"), artifacts.ErrUnavailable)
	}
	return err
}

// List gives all artifacts.
func (c *Client) List(ctx context.Context) iter.Seq2[Stored, error] {
	return parts.Values[Stored](ctx, c.parts, topology.ArtifactSubject(askList), struct{}{})
}

// Judge says of all artifacts, or the one, whether they would be kept, with a window; zero means [DefaultWindow]. Errors for the one are
// marked [artifacts.ErrNotFound] or [artifacts.ErrDigest].
func (c *Client) Judge(ctx context.Context, digest string, window time.Duration) iter.Seq2[Verdict, error] {
	return parts.Values[Verdict](ctx, c.parts, topology.ArtifactSubject(askJudge), sweepQuestion{Digest: digest, Window: window})
}

// Prune has removed what is not kept, and gives it.
func (c *Client) Prune(ctx context.Context, window time.Duration) iter.Seq2[Pruned, error] {
	return parts.Values[Pruned](ctx, c.parts, topology.ArtifactSubject(askPrune), sweepQuestion{Window: window})
}

// Publish stores what has the digest, from where an earlier try has left off. Progress hears how much is there; it may be nil. It gives
// errors marked [artifacts.ErrMismatch] when the content has another digest, [es.ErrTooLarge], [es.ErrFull] and [artifacts.ErrDigest].
// After an error, publishing again goes on.
func (c *Client) Publish(ctx context.Context, content io.ReaderAt, digest string, bytes int64, path string, progress func(done int64)) (Finished, error) {
	if err := CheckSize(digest, bytes); err != nil {
		return Finished{}, err
	}
	if progress == nil {
		progress = func(int64) {}
	}
	u := upload{client: c, content: content, digest: digest, bytes: bytes, file: filepath.Base(path), progress: progress, moved: time.Now()}
	pace := backoff.NewExponentialBackOff()
	return backoff.Retry(ctx, func() (Finished, error) {
		before := u.place.Have
		done, err := u.try(ctx)
		if err == nil {
			return done, nil
		}
		again := errors.IsAny(err, errMoved, artifacts.ErrUnavailable, es.ErrUnavailable) && time.Since(u.moved) < uploadPatience
		if errors.Is(err, artifacts.ErrMismatch) && u.others {
			// What others had left may be what did not match. It is gone now.
			u.others, again = false, true
		}
		if !again || ctx.Err() != nil {
			return done, backoff.Permanent(err)
		}
		if u.place.Have > before {
			pace.Reset()
		}
		return done, err
	}, backoff.WithBackOff(pace), backoff.WithMaxElapsedTime(0))
}

// upload is one that is on its way.
type upload struct {
	client   *Client
	content  io.ReaderAt
	digest   string
	bytes    int64
	file     string
	progress func(int64)
	place    Place
	// others says that some of the pieces were there before, moved is when it last got somewhere.
	others bool
	moved  time.Time
}

// try asks how far the upload is, and goes on to its end.
func (u *upload) try(ctx context.Context) (Finished, error) {
	var done Finished
	var place Place
	if err := u.client.parts.For(ctx, topology.ArtifactSubject(askStat), digestQuestion{u.digest}, &place); err != nil {
		return done, err
	}
	u.others = u.others || place.Have > u.place.Have
	u.place = place
	buffer := make([]byte, min(ChunkBytes, u.bytes))
	for u.place.Stored == nil && u.place.Have < u.bytes && u.place.Have%ChunkBytes == 0 {
		u.progress(u.place.Have)
		if err := u.put(ctx, buffer); err != nil {
			return done, err
		}
	}
	u.progress(u.bytes)
	err := u.client.parts.For(ctx, topology.ArtifactSubject(askFinish), finishQuestion{Digest: u.digest, Bytes: u.bytes, File: u.file}, &done)
	return done, err
}

func (u *upload) put(ctx context.Context, buffer []byte) error {
	data := buffer[:chunkLen(u.bytes, u.place.Have/ChunkBytes)]
	if _, err := u.content.ReadAt(data, u.place.Have); err != nil {
		return errors.Wrapf(err, "read %s at %d", u.file, u.place.Have)
	}
	m := nats.NewMsg(topology.ArtifactSubject(askPut))
	m.Header.Set(headerDigest, u.digest)
	m.Header.Set(headerBytes, strconv.FormatInt(u.bytes, 10))
	m.Header.Set(headerAt, strconv.FormatInt(u.place.Have, 10))
	m.Header.Set(headerAfter, strconv.FormatUint(u.place.After, 10))
	m.Header.Set(headerUpload, u.place.Upload)
	m.Data = data
	var next Place
	err := u.client.parts.Ask(ctx, m, func(part *nats.Msg) error {
		return errors.Wrap(json.Unmarshal(part.Data, &next), "the answer to a piece")
	})
	if err != nil {
		return err
	}
	u.place, u.moved = next, time.Now()
	return nil
}

// Named implements [artifacts.Names].
func (c *Client) Named(ctx context.Context, name, version string) (string, error) {
	var n named
	err := c.parts.For(ctx, topology.ArtifactSubject(askName), nameQuestion{events.Package{Name: name, Version: version}}, &n)
	return n.Digest, err
}

// Open implements [artifacts.Source].
func (c *Client) Open(ctx context.Context, digest string, from int64) (io.ReadCloser, error) {
	r := &reader{ctx: ctx, client: c, digest: digest, at: from}
	if err := r.window(); err != nil && len(r.pieces) == 0 {
		return nil, err
	}
	return r, nil
}

// reader reads an artifact window by window. What comes is kept until it is read: a window at most.
type reader struct {
	ctx    context.Context
	client *Client
	digest string
	at     int64
	pieces [][]byte
	// err is what came after the pieces.
	err error
}

// window asks for what follows.
func (r *reader) window() error {
	m, err := parts.Message(topology.ArtifactSubject(askGet), getQuestion{Digest: r.digest, At: r.at})
	if err != nil {
		return err
	}
	err = r.client.parts.Ask(r.ctx, m, func(part *nats.Msg) error {
		if at := part.Header.Get(headerAt); at != strconv.FormatInt(r.at, 10) {
			return errors.Mark(errors.Newf("artifact %s: what begins at %q came where %d was to follow", r.digest, at, r.at), artifacts.ErrUnavailable)
		}
		if len(part.Data) > 0 {
			r.pieces = append(r.pieces, part.Data)
			r.at += int64(len(part.Data))
		}
		if part.Header.Get(headerBytes) == strconv.FormatInt(r.at, 10) {
			r.err = io.EOF
		}
		return nil
	})
	if err == nil && len(r.pieces) == 0 && r.err == nil {
		r.err = io.EOF // from beyond the end on
	}
	if err != nil {
		r.err = err
	}
	return err
}

// Read implements [io.Reader].
func (r *reader) Read(p []byte) (int, error) {
	for len(r.pieces) == 0 {
		if r.err == nil {
			// Its error comes after what came before it.
			_ = r.window()
			continue
		}
		return 0, r.err
	}
	n := copy(p, r.pieces[0])
	if r.pieces[0] = r.pieces[0][n:]; len(r.pieces[0]) == 0 {
		r.pieces = r.pieces[1:]
	}
	return n, nil
}

// Close implements [io.Closer].
func (r *reader) Close() error {
	r.pieces, r.err = nil, errors.Mark(errors.New("the artifact is closed"), es.ErrUnavailable)
	return nil
}

package depot

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"catenary/agent/artifacts"
	"catenary/es"
	"catenary/internal/topology"
)

const (
	// patience is how long a client waits for the next part of an answer.
	patience = 20 * time.Second
	// uploadPatience is how long an upload goes on asking without getting anywhere.
	uploadPatience = time.Minute
)

// Guard gives a context that ends with a cause of its own as soon as the bus refuses what goes to one of the subjects. Without one a
// refused request only times out.
type Guard func(ctx context.Context, subjects ...string) (context.Context, context.CancelFunc)

// Client asks the depot. It may be used by many goroutines at once.
//
// All methods give errors marked [artifacts.ErrUnavailable] when the depot can't be reached or is busy, and what the guard gives.
type Client struct {
	nc    *nats.Conn
	guard Guard
}

var _ artifacts.Source = (*Client)(nil)

// NewClient returns a client that asks over the connection. Guard may be nil.
func NewClient(nc *nats.Conn, guard Guard) *Client {
	if guard == nil {
		guard = func(ctx context.Context, _ ...string) (context.Context, context.CancelFunc) {
			return context.WithCancel(ctx)
		}
	}
	return &Client{nc: nc, guard: guard}
}

// ask sends a request, and gives the parts of its answer to take, until the last one.
func (c *Client) ask(ctx context.Context, m *nats.Msg, take func(*nats.Msg) error) error {
	ctx, cancel := c.guard(ctx, m.Subject)
	defer cancel()
	ctx, watched := c.whileConnected(ctx)
	defer watched()
	m.Reply = c.nc.NewInbox()
	sub, err := c.nc.SubscribeSync(m.Reply)
	if err == nil {
		defer func() { _ = sub.Unsubscribe() }() // it fails only with the connection, of which the next request tells
		err = c.nc.PublishMsg(m)
	}
	if err != nil {
		return errors.Mark(errors.Wrapf(err, "ask the depot on %s", m.Subject), artifacts.ErrUnavailable)
	}
	for {
		part, err := c.next(ctx, sub, m.Subject)
		if err != nil {
			return err
		}
		if code := part.Header.Get(micro.ErrorCodeHeader); code != "" {
			return errorOf(code, part.Header.Get(micro.ErrorHeader))
		}
		more := part.Header.Get(headerMore) != ""
		if more && len(part.Data) == 0 {
			continue // a sign of life
		}
		if err := take(part); err != nil {
			return err
		}
		if !more {
			return nil
		}
	}
}

// errLost means that the connection was lost, and with it what was asked or answered.
var errLost = errors.New("the connection to the bus was lost")

// whileConnected gives a context that ends when the connection is lost: an answer that was on its way does not come any more.
func (c *Client) whileConnected(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	lost := c.nc.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-lost:
			cancel(errors.Mark(errors.WithStack(errLost), artifacts.ErrUnavailable))
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel(nil)
		watching.Wait()
		c.nc.RemoveStatusListener(lost)
	}
}

func (c *Client) next(ctx context.Context, sub *nats.Subscription, subject string) (*nats.Msg, error) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	part, err := sub.NextMsgWithContext(waiting)
	switch cause := context.Cause(ctx); {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, errors.Mark(errors.Newf("nobody answers on %s: is a projector running?", subject), artifacts.ErrUnavailable)
	case err != nil && cause != nil:
		return nil, errors.Wrapf(cause, "ask the depot on %s", subject)
	case err != nil:
		return nil, errors.Mark(errors.Wrapf(err, "ask the depot on %s", subject), artifacts.ErrUnavailable)
	}
	return part, nil
}

func question(name string, q any) (*nats.Msg, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, errors.Wrapf(err, "encode the request %s", name)
	}
	m := nats.NewMsg(topology.ArtifactSubject(name))
	m.Data = body
	return m, nil
}

// askFor asks for one value.
func (c *Client) askFor(ctx context.Context, name string, q, into any) error {
	m, err := question(name, q)
	if err != nil {
		return err
	}
	return c.ask(ctx, m, func(part *nats.Msg) error {
		return errors.Wrapf(json.Unmarshal(part.Data, into), "the answer to %s", name)
	})
}

// values asks for a list.
func values[T any](ctx context.Context, c *Client, name string, q any) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		m, err := question(name, q)
		stopped := false
		if err == nil {
			err = c.ask(ctx, m, func(part *nats.Msg) error {
				if len(part.Data) == 0 || stopped {
					return nil
				}
				var v T
				if err := json.Unmarshal(part.Data, &v); err != nil {
					return errors.Wrapf(err, "the answer to %s", name)
				}
				stopped = !yield(v, nil)
				return nil
			})
		}
		if err != nil && !stopped {
			yield(zero, err)
		}
	}
}

// List gives all artifacts.
func (c *Client) List(ctx context.Context) iter.Seq2[Stored, error] {
	return values[Stored](ctx, c, askList, struct{}{})
}

// Judge says of all artifacts, or the one, whether they would be kept, with a window; zero means [DefaultWindow]. Errors for the one are
// marked [artifacts.ErrNotFound] or [artifacts.ErrDigest].
func (c *Client) Judge(ctx context.Context, digest string, window time.Duration) iter.Seq2[Verdict, error] {
	return values[Verdict](ctx, c, askJudge, sweepQuestion{Digest: digest, Window: window})
}

// Prune has removed what is not kept, and gives it.
func (c *Client) Prune(ctx context.Context, window time.Duration) iter.Seq2[Pruned, error] {
	return values[Pruned](ctx, c, askPrune, sweepQuestion{Window: window})
}

// Publish stores what has the digest, from where an earlier try has left off. Progress hears how much is there; it may be nil. It gives
// errors marked [artifacts.ErrMismatch] when the content has another digest, [es.ErrTooLarge], [es.ErrFull] and [artifacts.ErrDigest].
// After an error, publishing again goes on.
func (c *Client) Publish(ctx context.Context, content io.ReaderAt, digest string, bytes int64, path string, progress func(done int64)) (Finished, error) {
	if err := checkSize(digest, bytes); err != nil {
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
	if err := u.client.askFor(ctx, askStat, digestQuestion{u.digest}, &place); err != nil {
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
	err := u.client.askFor(ctx, askFinish, finishQuestion{Digest: u.digest, Bytes: u.bytes, File: u.file}, &done)
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
	err := u.client.ask(ctx, m, func(part *nats.Msg) error {
		return errors.Wrap(json.Unmarshal(part.Data, &next), "the answer to a piece")
	})
	if err != nil {
		return err
	}
	u.place, u.moved = next, time.Now()
	return nil
}

// Open implements [artifacts.Source].
func (c *Client) Open(ctx context.Context, digest string, from int64) (io.ReadCloser, error) {
	r := &reader{ctx: ctx, client: c, digest: digest, at: from}
	if err := r.window(); err != nil && len(r.parts) == 0 {
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
	parts  [][]byte
	// err is what came after the parts.
	err error
}

// window asks for what follows.
func (r *reader) window() error {
	m, err := question(askGet, getQuestion{Digest: r.digest, At: r.at})
	if err != nil {
		return err
	}
	err = r.client.ask(r.ctx, m, func(part *nats.Msg) error {
		if at := part.Header.Get(headerAt); at != strconv.FormatInt(r.at, 10) {
			return errors.Mark(errors.Newf("artifact %s: what begins at %q came where %d was to follow", r.digest, at, r.at), artifacts.ErrUnavailable)
		}
		if len(part.Data) > 0 {
			r.parts = append(r.parts, part.Data)
			r.at += int64(len(part.Data))
		}
		if part.Header.Get(headerBytes) == strconv.FormatInt(r.at, 10) {
			r.err = io.EOF
		}
		return nil
	})
	if err == nil && len(r.parts) == 0 && r.err == nil {
		r.err = io.EOF // from beyond the end on
	}
	if err != nil {
		r.err = err
	}
	return err
}

// Read implements [io.Reader].
func (r *reader) Read(p []byte) (int, error) {
	for len(r.parts) == 0 {
		if r.err == nil {
			// Its error comes after what came before it.
			_ = r.window()
			continue
		}
		return 0, r.err
	}
	n := copy(p, r.parts[0])
	if r.parts[0] = r.parts[0][n:]; len(r.parts[0]) == 0 {
		r.parts = r.parts[1:]
	}
	return n, nil
}

// Close implements [io.Closer].
func (r *reader) Close() error {
	r.parts, r.err = nil, errors.Mark(errors.New("the artifact is closed"), es.ErrUnavailable)
	return nil
}

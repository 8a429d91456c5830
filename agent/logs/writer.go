package logs

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/internal/topology"
)

const (
	// flushInterval is how long a line waits for others.
	flushInterval = 200 * time.Millisecond
	// longestPause bounds the wait between two tries to hand in a part.
	longestPause = 5 * time.Second
)

// Keeper hands in what is said, in the background. It is safe for use by many goroutines.
type Keeper struct {
	// put hands in a part.
	put   func(ctx context.Context, p Part) error
	newID func() string
	log   *slog.Logger

	// waiting is how many bytes wait, of all spans.
	waiting atomic.Int64
	ctx     context.Context
	cancel  context.CancelFunc
	writers sync.WaitGroup
}

// NewKeeper returns a keeper that hands parts in through a function. NewID names a span.
func NewKeeper(put func(ctx context.Context, p Part) error, newID func() string, log *slog.Logger) *Keeper {
	k := &Keeper{put: put, newID: newID, log: log}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	return k
}

// Open begins the log of a span. It MUST be closed, before the keeper is. Neither writing nor closing waits for the bus.
func (k *Keeper) Open(s Span) io.WriteCloser {
	w := &writer{keeper: k, span: s, id: k.newID(), wake: make(chan struct{}, 1)}
	k.writers.Go(w.run)
	return w
}

// Close waits until all that was said is handed in, or the context ends. What is not by then is lost.
func (k *Keeper) Close(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		k.writers.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = errors.Wrapf(ctx.Err(), "%d bytes of logs are not handed in", k.waiting.Load())
	}
	k.cancel()
	<-done
	return err
}

// piece is text that waits, after so many bytes that were left out.
type piece struct {
	cut  int64
	text []byte
}

// writer is the log of a span.
type writer struct {
	keeper *Keeper
	span   Span
	id     string
	wake   chan struct{}

	mu     sync.Mutex
	pieces []piece
	// taken is how much was kept, left how much is being left out, and end its end.
	taken, left int64
	end         []byte
	closed      bool
}

// Write implements [io.Writer]. It fails only after Close.
func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return 0, errors.New("the log of this span is closed")
	}
	if w.taken >= SpanBytes || w.keeper.waiting.Load() >= WaitingBytes {
		w.left += int64(len(p))
		w.end = append(w.end, p...)
		if over := len(w.end) - EndBytes; over > 0 {
			w.end = append(w.end[:0], w.end[over:]...)
		}
		return len(p), nil
	}
	w.resume()
	w.add(p)
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return len(p), nil
}

// resume takes in the end of what was left out.
func (w *writer) resume() {
	if w.left == 0 {
		return
	}
	end := w.end
	if w.left > int64(len(end)) {
		// A line whose beginning is cut is no line.
		if _, whole, ok := bytes.Cut(end, []byte("\n")); ok {
			end = whole
		}
	}
	w.pieces = append(w.pieces, piece{cut: w.left - int64(len(end))})
	w.add(end)
	w.left, w.end = 0, nil
}

func (w *writer) add(p []byte) {
	if len(p) == 0 {
		return
	}
	w.taken += int64(len(p))
	w.keeper.waiting.Add(int64(len(p)))
	if len(w.pieces) == 0 {
		w.pieces = append(w.pieces, piece{})
	}
	last := &w.pieces[len(w.pieces)-1]
	last.text = append(last.text, p...)
}

// Close implements [io.Closer].
func (w *writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.resume()
	w.closed = true
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return nil
}

// next takes what can be handed in: whole lines, unless one is longer than a part or nothing follows it. Last says that it is the last.
func (w *writer) next() (p piece, some, last bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pieces) == 0 {
		return piece{}, w.closed, w.closed
	}
	first := &w.pieces[0]
	n := min(len(first.text), topology.LogPartBytes)
	whole := bytes.LastIndexByte(first.text[:n], '\n') + 1
	switch {
	case whole > 0:
		n = whole
	case n > 0 && n < topology.LogPartBytes && len(w.pieces) == 1 && !w.closed:
		return piece{}, false, false
	}
	p = piece{cut: first.cut, text: first.text[:n]}
	first.cut, first.text = 0, first.text[n:]
	if len(first.text) == 0 {
		w.pieces = w.pieces[1:]
	}
	return p, true, w.closed && len(w.pieces) == 0
}

// run hands in part after part until the last one.
func (w *writer) run() {
	tick := time.NewTicker(flushInterval)
	defer tick.Stop()
	for number := 1; ; {
		p, some, last := w.next()
		if !some {
			select {
			case <-w.wake:
				// What comes at once goes together.
				select {
				case <-tick.C:
				case <-w.keeper.ctx.Done():
				}
				continue
			case <-w.keeper.ctx.Done():
			}
		}
		if w.keeper.ctx.Err() != nil {
			w.drop()
			return
		}
		err := w.handIn(Part{Span: w.span, ID: w.id, Number: number, Cut: p.cut, Last: last, Text: string(p.text)})
		w.keeper.waiting.Add(-int64(len(p.text)))
		if err != nil {
			w.keeper.log.Warn("the log of a span is not kept any more", "module", w.span.Module, "deed", w.span.Deed, "part", number, "error", err)
			w.drop()
			return
		}
		if number++; last {
			return
		}
	}
}

// handIn hands in a part, again and again while the bus is away.
func (w *writer) handIn(p Part) error {
	pace := backoff.NewExponentialBackOff()
	pace.MaxInterval = longestPause
	_, err := backoff.Retry(w.keeper.ctx, func() (struct{}, error) {
		err := w.keeper.put(w.keeper.ctx, p)
		if err != nil && !errors.Is(err, es.ErrUnavailable) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pace), backoff.WithMaxElapsedTime(0))
	return err
}

// drop leaves out all that waits and all that comes.
func (w *writer) drop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pieces {
		w.keeper.waiting.Add(-int64(len(p.text)))
	}
	w.pieces, w.taken = nil, SpanBytes
}

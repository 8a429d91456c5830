package artifacts

import (
	"cmp"
	"context"
	"crypto/sha256"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/cockroachdb/errors"
)

const (
	// DefaultCacheBytes bounds a cache: a few releases of a few modules.
	DefaultCacheBytes = 4 << 30
	// fetchPatience is how long a download goes on asking without getting anywhere.
	fetchPatience = 30 * time.Second
	// partSuffix ends the name of the file of an artifact that is not there whole.
	partSuffix = ".part"
	dirMode    = 0o700
)

// CacheConfig is what a cache is told.
type CacheConfig struct {
	// Dir keeps it. It MUST be the cache's alone.
	Dir string
	// Bytes bounds it, but for what is applied and what is asked for. Zero means DefaultCacheBytes.
	Bytes int64
	// Places are where artifacts come from.
	Places Places
	// Applied gives the digests of what is applied now, which stay. Nil gives none.
	Applied func() ([]string, error)
	// Now is the clock. It only says what was used last.
	Now    func() time.Time
	Logger *slog.Logger
}

// Cache is a source that keeps what came from another: whoever asks again, or at the same time, shares one download. What it gives was
// compared with its digest, every time. When it is full, what was not used for the longest time goes, but for what is applied. It is safe
// for use by many goroutines, but by one process.
type Cache struct {
	cfg CacheConfig

	mu      sync.Mutex
	flights map[string]*flight
}

var _ Source = (*Cache)(nil)

// flight is a download that is on its way.
type flight struct {
	waiting int
	cancel  context.CancelFunc
	done    chan struct{}
	err     error
}

// OpenCache opens a cache, over what was kept before.
func OpenCache(c CacheConfig) (*Cache, error) {
	c.Bytes = cmp.Or(c.Bytes, DefaultCacheBytes)
	if c.Bytes < 0 || c.Dir == "" || len(c.Places) == 0 || c.Now == nil {
		return nil, errors.AssertionFailedf("a cache needs a directory, places, a clock, and a limit that is not %d", c.Bytes)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(c.Dir, dirMode); err != nil {
		return nil, errors.Wrap(err, "make the cache of artifacts")
	}
	return &Cache{cfg: c, flights: map[string]*flight{}}, nil
}

// Open implements [Source]. It gives what is kept, after it was compared, or else gets it first. Besides a source's, it gives errors marked
// [ErrMismatch] and those of the file system.
func (c *Cache) Open(ctx context.Context, digest string, from int64) (io.ReadCloser, error) {
	name, err := ParseDigest(digest)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(c.cfg.Dir, name)
	file, err := openVerified(path, digest)
	switch {
	case errors.Is(err, ErrMismatch):
		c.cfg.Logger.Warn("a cached artifact is damaged, and is fetched again", "artifact", digest, "error", err)
	case err == nil || !errors.Is(err, fs.ErrNotExist):
		return c.opened(file, path, from, err)
	}
	if err := c.fetch(ctx, digest, path); err != nil {
		return nil, err
	}
	file, err = openVerified(path, digest)
	return c.opened(file, path, from, err)
}

// opened gives a file from a place on, and notes that it was used.
func (c *Cache) opened(file *os.File, path string, from int64, err error) (io.ReadCloser, error) {
	if err != nil {
		return nil, errors.Wrap(err, "open a cached artifact")
	}
	now := c.cfg.Now()
	_, err = file.Seek(from, io.SeekStart)
	if err == nil {
		err = os.Chtimes(path, now, now)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.CombineErrors(errors.Wrap(err, "open a cached artifact"), file.Close())
	}
	return file, nil
}

// openVerified opens a file that has the digest. One that has not is removed, with an error marked [ErrMismatch].
func openVerified(path, digest string) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	if found := digestOf(sum); err == nil && found != digest {
		err = errors.CombineErrors(errors.WithStack(&Mismatch{Expected: digest, Found: found}), os.Remove(path))
	}
	if err != nil {
		return nil, errors.CombineErrors(err, file.Close())
	}
	return file, nil
}

// fetch gets an artifact, or waits for the download that is on its way. When all who wait have left it ends, and what has come stays.
func (c *Cache) fetch(ctx context.Context, digest, path string) error {
	for {
		err := c.share(ctx, digest, path)
		if !errors.Is(err, context.Canceled) || ctx.Err() != nil {
			return err
		}
		// All who had waited left at that moment.
	}
}

// share waits for the download that is on its way, and begins one when there is none.
func (c *Cache) share(ctx context.Context, digest, path string) error {
	c.mu.Lock()
	f := c.flights[digest]
	if f == nil {
		downloading, cancel := context.WithCancel(context.WithoutCancel(ctx))
		f = &flight{cancel: cancel, done: make(chan struct{})}
		c.flights[digest] = f
		go c.download(downloading, f, digest, path)
	}
	f.waiting++
	c.mu.Unlock()
	select {
	case <-f.done:
	case <-ctx.Done():
	}
	c.mu.Lock()
	f.waiting--
	leave := f.waiting == 0
	c.mu.Unlock()
	if leave {
		f.cancel()
		<-f.done
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return f.err
}

func (c *Cache) download(ctx context.Context, f *flight, digest, path string) {
	f.err = c.bring(ctx, digest, path)
	c.mu.Lock()
	delete(c.flights, digest)
	c.mu.Unlock()
	close(f.done)
}

// bring fetches, goes on after cuts as long as it gets anywhere, and makes room.
func (c *Cache) bring(ctx context.Context, digest, path string) error {
	part := path + partSuffix
	had, moved := size(part), time.Now()
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := c.cfg.Places.Fetch(ctx, digest, part)
		if has := size(part); has != had {
			had, moved = has, time.Now()
		}
		if err != nil && (!errors.Is(err, ErrUnavailable) || time.Since(moved) > fetchPatience || ctx.Err() != nil) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(backoff.NewExponentialBackOff()), backoff.WithMaxElapsedTime(0))
	if err != nil {
		return err
	}
	if err := os.Rename(part, path); err != nil {
		return errors.Wrap(err, "keep an artifact")
	}
	return c.makeRoom(digest)
}

// size is that of a file; zero when there is none.
func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// kept is a file of the cache.
type kept struct {
	name  string
	bytes int64
	used  time.Time
}

// makeRoom removes what was not used for the longest time until the rest fits, but for what is applied, what is on its way, and the one
// that was just asked for. Whoever reads a file that goes reads it to its end.
func (c *Cache) makeRoom(now string) error {
	stays := map[string]bool{now: true}
	if c.cfg.Applied != nil {
		applied, err := c.cfg.Applied()
		if err != nil {
			return errors.Wrap(err, "what is applied")
		}
		for _, digest := range applied {
			stays[digest] = true
		}
	}
	c.mu.Lock()
	for digest := range c.flights {
		stays[digest] = true
	}
	c.mu.Unlock()
	entries, err := os.ReadDir(c.cfg.Dir)
	if err != nil {
		return errors.Wrap(err, "look at the cache of artifacts")
	}
	var all []kept
	var total int64
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return errors.Wrap(err, "look at the cache of artifacts")
		}
		all = append(all, kept{e.Name(), info.Size(), info.ModTime()})
		total += info.Size()
	}
	slices.SortFunc(all, func(a, b kept) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.name, b.name)) })
	for _, k := range all {
		if total <= c.cfg.Bytes {
			return nil
		}
		if stays[Algorithm+strings.TrimSuffix(k.name, partSuffix)] {
			continue
		}
		if err := os.Remove(filepath.Join(c.cfg.Dir, k.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errors.Wrap(err, "make room in the cache of artifacts")
		}
		total -= k.bytes
	}
	if total > c.cfg.Bytes {
		c.cfg.Logger.Warn("what is applied does not fit into the cache of artifacts; give it a larger limit", "bytes", total, "limit", c.cfg.Bytes)
	}
	return nil
}

package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/cockroachdb/errors"

	"catenary/audit/proof"
	"catenary/es"
)

const (
	// segmentBytes is how large a file of events becomes before the next is begun: so that one can be copied again by itself.
	segmentBytes = 256 << 20
	// takePatience is for how long the source is asked again without anything coming.
	takePatience = time.Minute

	dirMode  = 0o700
	fileMode = 0o600
)

// Progress says how far a backup or a restore is.
type Progress struct {
	// Events of All, and how many bytes went to the disk or came from it.
	Events, All uint64
	Bytes       int64
}

// Config says how a backup is taken.
type Config struct {
	Source Source
	// Program is the version of the program that takes it.
	Program string
	Now     func() time.Time
	// Progress may be nil.
	Progress func(Progress)
	// Artifacts adds the artifacts; nil leaves them out.
	Artifacts func(ctx context.Context, add AddArtifact) error
}

// AddArtifact adds an artifact to a backup. Open gives its content, which ends with an error when it is not what the digest says; it is asked
// again after an error marked [es.ErrUnavailable].
type AddArtifact func(digest, title string, open func(context.Context) (io.ReadCloser, error)) error

// Take takes a backup into a directory, which it makes; an empty one will do. What has failed is removed, so far as the disk allows. It
// gives errors marked [ErrTaken], [es.ErrBrokenChain] for a stream that is damaged, [es.ErrUnavailable], and those of the disk.
func Take(ctx context.Context, dir string, c Config) (Manifest, error) {
	if c.Progress == nil {
		c.Progress = func(Progress) {}
	}
	made, err := begin(dir)
	if err != nil {
		return Manifest{}, err
	}
	t := &taking{Config: c, dir: dir, manifest: Manifest{Form: form, Program: c.Program, Artifacts: c.Artifacts != nil}}
	if err := t.take(ctx); err != nil {
		return Manifest{}, errors.WithHint(errors.CombineErrors(err, t.discard(made)), "nothing that was taken counts as a backup")
	}
	return t.manifest, nil
}

// begin makes the directory, and marks it as unfinished.
func begin(dir string) (made bool, err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		made = true
		if err := os.MkdirAll(dir, dirMode); err != nil {
			return false, errors.Wrap(err, "make the directory of the backup")
		}
	case err != nil:
		return false, errors.Wrap(err, "look at the directory of the backup")
	case len(entries) > 0:
		advice := "give a directory that does not exist, such as " + dir + "-2"
		if _, err := Read(dir); err == nil {
			advice = "there is a backup in it already: give each its own directory, such as one named by the day"
		} else if _, err := os.Stat(filepath.Join(dir, unfinishedFile)); err == nil {
			advice = "a backup was begun in it and has not ended: give another directory, or remove it if none is being taken there now"
		}
		return false, errors.WithHint(errors.Mark(errors.Newf("%s is not empty", dir), ErrTaken), advice)
	}
	f, err := os.OpenFile(filepath.Join(dir, unfinishedFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if errors.Is(err, os.ErrExist) {
		return false, errors.Mark(errors.Newf("another backup is being taken into %s", dir), ErrTaken)
	}
	if err == nil {
		err = f.Close()
	}
	return made, errors.Wrap(err, "begin the backup")
}

// taking is a backup on its way.
type taking struct {
	Config
	dir      string
	manifest Manifest
	bytes    int64 // written so far
}

func (t *taking) take(ctx context.Context) error {
	// Who does not even answer once is not waited for.
	if _, err := t.Source.Tail(ctx); err != nil {
		return err
	}
	// What speaks of events comes before them, and what events speak of after them: so nothing in the backup is about what is not in it. Commands
	// that wait come before them too: one that is done meanwhile is among the events, and what stands in both is done once.
	if err := t.checkpoints(ctx); err != nil {
		return err
	}
	if err := t.commands(ctx); err != nil {
		return err
	}
	if err := t.events(ctx); err != nil {
		return err
	}
	if err := t.actors(ctx); err != nil {
		return err
	}
	if t.Artifacts != nil {
		if err := t.artifacts(ctx); err != nil {
			return err
		}
	}
	return t.finish()
}

// again asks the source until it answers, or nothing came for long. What came counts: got says how much.
func (t *taking) again(ctx context.Context, got func() uint64, ask func() error) error {
	pace, before, moved := backoff.NewExponentialBackOff(), got(), time.Now()
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := ask()
		if now := got(); now > before {
			before, moved = now, time.Now()
			pace.Reset()
		}
		if err != nil && (!errors.Is(err, es.ErrUnavailable) || time.Since(moved) > takePatience || ctx.Err() != nil) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(pace), backoff.WithMaxElapsedTime(0))
	return err
}

func nothing() uint64 { return 0 }

// events takes the events up to the tail that is found now, each verified.
func (t *taking) events(ctx context.Context) error {
	var tail uint64
	err := t.again(ctx, nothing, func() (err error) {
		tail, err = t.Source.Tail(ctx)
		return err
	})
	if err != nil {
		return err
	}
	var out *file
	defer func() { out.abandon() }()
	head := &t.manifest.Head
	for head.Sequence < tail {
		err := t.again(ctx, func() uint64 { return head.Sequence }, func() error {
			return t.Source.Events(ctx, head.Sequence, tail, func(c Chunk) error {
				next, err := t.verify(*head, c)
				if err != nil {
					return err
				}
				if out == nil {
					if out, err = t.create(File{Name: fmt.Sprintf("events-%012d.ndjson.zst", c.First), Kind: Events, First: c.First}); err != nil {
						return err
					}
				}
				if err := out.write(c.Data); err != nil {
					return err
				}
				*head, out.Last = next, c.Last
				t.Progress(Progress{Events: head.Sequence, All: tail, Bytes: t.bytes})
				if out.Bytes < segmentBytes {
					return nil
				}
				full := out
				out = nil
				return full.close()
			})
		})
		if err != nil {
			return errors.Wrapf(err, "back up the events after %d of %d", head.Sequence, tail)
		}
	}
	last := out
	out = nil
	return last.close()
}

// verify makes sure that a chunk's events follow the head, and gives the new one.
func (t *taking) verify(head es.Head, c Chunk) (es.Head, error) {
	if c.First != head.Sequence+1 {
		return head, errors.Mark(errors.Newf("event %d came where event %d was to follow", c.First, head.Sequence+1), es.ErrUnavailable)
	}
	for l, err := range unpacked[line](bytes.NewReader(c.Data)) {
		if err != nil {
			return head, err
		}
		m := l.message()
		if head, err = head.Verify(m); err != nil {
			return head, errors.WithHint(err, "the stream is damaged, and a backup of it would be: see catenary verify, and bring it back from an older backup or a replica")
		}
		t.manifest.EventBytes += int64(m.Size()) + perMessage
		if head.Sequence == c.Last {
			t.manifest.Recorded = recorded(m)
		}
	}
	if head.Sequence != c.Last {
		return head, errors.Mark(errors.Newf("a chunk ends at event %d, and says %d", head.Sequence, c.Last), es.ErrUnavailable)
	}
	return head, nil
}

// perMessage is what the server's store needs for a message beside what is in it.
const perMessage = 96

// recorded gives an event's time; zero for one that can't be read, which is not this package's to judge.
func recorded(m es.Message) time.Time {
	e, err := es.ReadEvent(m)
	if err != nil {
		return time.Time{}
	}
	return e.Recorded.UTC()
}

// listed takes values of which all come for one question: they are written when all are there.
func listed[T any](ctx context.Context, t *taking, f File, all func(context.Context, func(T) error) error) error {
	var out *file
	defer func() { out.abandon() }()
	err := t.again(ctx, nothing, func() (err error) {
		out.abandon()
		if out, err = t.create(f); err != nil {
			return err
		}
		p, err := newPacker()
		if err != nil {
			return err
		}
		err = all(ctx, func(v T) error {
			out.Entries++
			full, err := p.add(v)
			if err == nil && full {
				err = out.write(p.chunk())
			}
			return err
		})
		if err == nil {
			err = out.write(p.chunk())
		}
		return err
	})
	if err != nil {
		return errors.Wrapf(err, "back up the %s", f.Kind)
	}
	whole := out
	out = nil
	return whole.close()
}

func (t *taking) checkpoints(ctx context.Context) error {
	return listed(ctx, t, File{Name: "checkpoints.ndjson.zst", Kind: Checkpoints}, func(ctx context.Context, add func(checkpoint) error) error {
		for signed, err := range t.Source.Checkpoints(ctx) {
			if err != nil {
				return err
			}
			c, err := proof.Peek([]byte(signed))
			if err != nil {
				return err
			}
			t.manifest.Chain = c.Origin
			if err := add(checkpoint{signed}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t *taking) commands(ctx context.Context) error {
	return listed(ctx, t, File{Name: "commands.ndjson.zst", Kind: Commands}, func(ctx context.Context, add func(Waiting) error) error {
		return each(t.Source.Waiting(ctx), add)
	})
}

func each[T any](values iter.Seq2[T, error], add func(T) error) error {
	for v, err := range values {
		if err == nil {
			err = add(v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *taking) actors(ctx context.Context) error {
	return listed(ctx, t, File{Name: "actors.ndjson.zst", Kind: Actors}, func(ctx context.Context, add func(Actor) error) error {
		return each(t.Source.Actors(ctx), add)
	})
}

func (t *taking) artifacts(ctx context.Context) error {
	return t.Artifacts(ctx, func(digest, title string, open func(context.Context) (io.ReadCloser, error)) error {
		f := File{Name: fmt.Sprintf("artifact-%06d", len(t.manifest.Files)), Kind: Artifact, Artifact: digest, Title: title}
		came := uint64(0)
		err := t.again(ctx, func() uint64 { return came }, func() error {
			return t.artifact(ctx, f, open, func(n int) { came += uint64(n) })
		})
		t.Progress(Progress{Events: t.manifest.Head.Sequence, All: t.manifest.Head.Sequence, Bytes: t.bytes})
		return errors.Wrapf(err, "back up artifact %s", digest)
	})
}

func (t *taking) artifact(ctx context.Context, f File, open func(context.Context) (io.ReadCloser, error), came func(int)) (err error) {
	content, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.CombineErrors(err, content.Close()) }()
	out, err := t.create(f)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(writerFunc(func(data []byte) error {
		came(len(data))
		return out.write(data)
	}), content, make([]byte, 1<<20))
	if err != nil {
		out.abandon()
		return err
	}
	return out.close()
}

type writerFunc func([]byte) error

func (w writerFunc) Write(p []byte) (int, error) { return len(p), w(p) }

// finish writes the manifest, when all else is on the disk.
func (t *taking) finish() (err error) {
	t.manifest.Taken = t.Now().UTC()
	if t.manifest.Digest, err = t.manifest.digest(); err != nil {
		return err
	}
	text, err := json.MarshalIndent(t.manifest, "", "  ")
	if err != nil {
		return errors.Wrap(err, "encode the manifest")
	}
	out, err := os.OpenFile(filepath.Join(t.dir, unfinishedFile), os.O_WRONLY|os.O_TRUNC, fileMode)
	if err == nil {
		_, err = out.Write(append(text, '\n'))
		if err == nil {
			err = out.Sync()
		}
		err = errors.CombineErrors(err, out.Close())
	}
	if err == nil {
		err = os.Rename(filepath.Join(t.dir, unfinishedFile), filepath.Join(t.dir, manifestFile))
	}
	if err == nil {
		err = syncDir(t.dir)
	}
	return errors.Wrap(err, "finish the backup")
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.CombineErrors(d.Sync(), d.Close())
}

// discard removes what was written. The mark goes last: what can't be removed stays recognised.
func (t *taking) discard(made bool) error {
	var err error
	for _, f := range t.manifest.Files {
		err = errors.CombineErrors(err, os.Remove(filepath.Join(t.dir, f.Name)))
	}
	if err == nil {
		err = os.Remove(filepath.Join(t.dir, unfinishedFile))
	}
	if err == nil && made {
		err = os.Remove(t.dir)
	}
	return errors.Wrapf(err, "remove the unfinished backup in %s", t.dir)
}

// file is a file of the backup on its way.
type file struct {
	File
	taking *taking
	out    *os.File
	sum    hash.Hash
}

func (t *taking) create(f File) (*file, error) {
	out, err := os.OpenFile(filepath.Join(t.dir, f.Name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return nil, errors.Wrap(err, "write the backup")
	}
	return &file{File: f, taking: t, out: out, sum: sha256.New()}, nil
}

func (f *file) write(data []byte) error {
	n, err := f.out.Write(data)
	_, _ = f.sum.Write(data[:n]) // a hash takes everything
	f.Bytes += int64(n)
	f.taking.bytes += int64(n)
	return errors.Wrap(err, "write the backup")
}

// close ends the file, all of it on disk, and enters it into the manifest. Of no file it does nothing.
func (f *file) close() error {
	if f == nil {
		return nil
	}
	f.SHA256 = hex.EncodeToString(f.sum.Sum(nil))
	f.taking.manifest.Files = append(f.taking.manifest.Files, f.File)
	return errors.Wrap(errors.CombineErrors(f.out.Sync(), f.out.Close()), "write the backup")
}

// abandon ends a file that is not whole, and removes it. Of no file it does nothing.
func (f *file) abandon() {
	if f == nil {
		return
	}
	f.taking.bytes -= f.Bytes
	// What can't be removed here is in a directory that stays marked as unfinished.
	_ = f.out.Close()
	_ = os.Remove(f.out.Name())
}

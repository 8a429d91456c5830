package backup

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// What a person has to know of a directory before it is used.
var (
	// ErrNoBackup means that there is no backup in a directory, or one that was not finished.
	ErrNoBackup = errors.New("there is no whole backup")
	// ErrDamaged means that a backup is not what was taken.
	ErrDamaged = errors.New("the backup is damaged")
	// ErrTaken means that a directory is not free for a new backup.
	ErrTaken = errors.New("the directory is not empty")
)

const (
	// manifestFile says what a backup holds. It is written last.
	manifestFile = "manifest.json"
	// unfinishedFile stands in the directory until then.
	unfinishedFile = "UNFINISHED"
	// form is the version of a backup's form. The first held no commands.
	form = 2
)

// Kind says what a file of a backup holds.
type Kind string

// The kinds of files.
const (
	Events      Kind = "events"
	Checkpoints Kind = "checkpoints"
	Actors      Kind = "actors"
	Commands    Kind = "commands"
	Artifact    Kind = "artifact"
)

// File is a file of a backup.
type File struct {
	Name  string `json:"name"`
	Kind  Kind   `json:"kind"`
	Bytes int64  `json:"bytes"`
	// SHA256 is that of the file as it stands, in hex.
	SHA256 string `json:"sha256"`
	// First and Last are the sequences of the events in it.
	First uint64 `json:"first,omitempty"`
	Last  uint64 `json:"last,omitempty"`
	// Entries counts what else is in it.
	Entries int `json:"entries,omitempty"`
	// Artifact and Title are an artifact's digest, and the name of the file it was published from.
	Artifact string `json:"artifact,omitempty"`
	Title    string `json:"title,omitempty"`
}

// Manifest says what a backup holds.
type Manifest struct {
	Form int `json:"form"`
	// Program is the version of the program that took it, Taken is when it was finished.
	Program string    `json:"program"`
	Taken   time.Time `json:"taken"`
	// Chain is the name that the chain's checkpoints bear; empty when none was signed.
	Chain string `json:"chain,omitempty"`
	// Head is the last event with its hash, which stands for all before it.
	Head es.Head `json:"head"`
	// Recorded is when the last event was.
	Recorded time.Time `json:"recorded,omitzero"`
	// EventBytes is what the events take in a store, about.
	EventBytes int64 `json:"event-bytes"`
	// Artifacts says that the artifacts are in it.
	Artifacts bool   `json:"artifacts"`
	Files     []File `json:"files"`
	// Digest is that of the manifest itself, without this.
	Digest string `json:"digest"`
}

// Bytes is the size of all files.
func (m Manifest) Bytes() (sum int64) {
	for _, f := range m.Files {
		sum += f.Bytes
	}
	return sum
}

// files gives those of a kind, in order.
func (m Manifest) files(kind Kind) []File {
	return slices.DeleteFunc(slices.Clone(m.Files), func(f File) bool { return f.Kind != kind })
}

// ArtifactFiles gives the files of artifacts.
func (m Manifest) ArtifactFiles() []File { return m.files(Artifact) }

func (m Manifest) digest() (string, error) {
	m.Digest = ""
	text, err := json.Marshal(m)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), errors.Wrap(err, "encode the manifest")
}

// Read reads the manifest of a backup. It gives errors marked [ErrNoBackup] or [ErrDamaged].
func Read(dir string) (Manifest, error) {
	var m Manifest
	text, err := os.ReadFile(filepath.Join(dir, manifestFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(filepath.Join(dir, unfinishedFile)); err == nil {
			return m, errors.WithHint(errors.Mark(errors.Newf("the backup in %s was interrupted before it was whole", dir), ErrNoBackup), "remove it, and take another")
		}
		return m, errors.WithHint(errors.Mark(errors.Newf("there is no backup in %s", dir), ErrNoBackup), "give the directory that catenary backup was given")
	case err != nil:
		return m, errors.Wrap(err, "read the backup's manifest")
	}
	damaged := func(err error) error {
		return errors.Mark(errors.Wrapf(err, "the manifest of the backup in %s", dir), ErrDamaged)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, damaged(err)
	}
	if m.Form > form {
		return m, errors.WithHint(errors.Mark(errors.Newf("the backup in %s has the form %d, this program knows %d", dir, m.Form, form), ErrNoBackup), "use the program that took it, or a newer one")
	}
	want, err := m.digest()
	if err != nil {
		return m, err
	}
	if m.Digest != want {
		return m, damaged(errors.Newf("it has the digest %.16s…, and says %.16s…", want, m.Digest))
	}
	return m, m.whole(damaged)
}

// whole says whether the files' events are all up to the head.
func (m Manifest) whole(damaged func(error) error) error {
	last := uint64(0)
	for _, f := range m.files(Events) {
		if f.First != last+1 || f.Last < f.First {
			return damaged(errors.Newf("event %d is in no file", last+1))
		}
		last = f.Last
	}
	if last != m.Head.Sequence {
		return damaged(errors.Newf("the files end at event %d, the head is event %d", last, m.Head.Sequence))
	}
	for _, f := range m.Files {
		if !filepath.IsLocal(f.Name) {
			return damaged(errors.Newf("the file %q is not in the backup", f.Name))
		}
	}
	return nil
}

// CheckFiles compares every file with its digest. Progress hears how many bytes were read; it may be nil. It gives errors marked
// [ErrDamaged], and the context's.
func (m Manifest) CheckFiles(ctx context.Context, dir string, progress func(done int64)) error {
	var done int64
	for _, f := range m.Files {
		err := f.check(ctx, dir, func(n int) {
			done += int64(n)
			if progress != nil {
				progress(done)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (f File) check(ctx context.Context, dir string, read func(int)) error {
	damaged := func(err error) error {
		return errors.WithHint(errors.Mark(errors.Wrapf(err, "%s in the backup %s", f.Name, dir), ErrDamaged), "use another backup, or another copy of this one; nothing was written")
	}
	path := filepath.Join(dir, f.Name)
	// To open a pipe would wait for who writes to it, and nothing could end that.
	if kind, err := os.Stat(path); err == nil && !kind.Mode().IsRegular() {
		return damaged(errors.New("it is no file"))
	}
	in, err := os.Open(path)
	if err != nil {
		return damaged(err)
	}
	defer func() { _ = in.Close() }() // it was only read
	sum, buffer, size := sha256.New(), make([]byte, 1<<20), int64(0)
	for {
		n, err := in.Read(buffer)
		_, _ = sum.Write(buffer[:n]) // a hash takes everything
		size += int64(n)
		read(n)
		switch {
		case ctx.Err() != nil:
			return errors.Wrap(ctx.Err(), "check the backup")
		case errors.Is(err, io.EOF):
			if found := hex.EncodeToString(sum.Sum(nil)); size != f.Bytes || found != f.SHA256 {
				return damaged(errors.Newf("it has %d bytes with the digest %.16s…, and was %d with %.16s…", size, found, f.Bytes, f.SHA256))
			}
			return nil
		case err != nil:
			return damaged(err)
		}
	}
}

// open opens a file of the backup.
func (f File) open(dir string) (*bufio.Reader, io.Closer, error) {
	in, err := os.Open(filepath.Join(dir, f.Name))
	if err != nil {
		return nil, nil, errors.Mark(errors.Wrapf(err, "the backup %s", dir), ErrDamaged)
	}
	return bufio.NewReaderSize(in, 1<<20), in, nil
}

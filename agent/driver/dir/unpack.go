package dir

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cockroachdb/errors"
)

// ErrArchive marks an archive that is refused: it is none that is known, holds what may not be in one, or more than may be.
var ErrArchive = errors.New("the archive is refused")

func refused(format string, args ...any) error {
	return errors.Mark(errors.Newf(format, args...), ErrArchive)
}

// Unpack unpacks a tar, a tar compressed with gzip, or a zip into an empty directory. Files and directories are all that may be in
// one. What is unpacked is on disk when this returns. It gives errors marked [ErrArchive], those of the file system, and the
// context's.
func Unpack(ctx context.Context, archive, dir string, limits Limits) (err error) {
	limits, err = limits.withDefaults()
	if err != nil {
		return err
	}
	file, err := os.Open(archive)
	if err != nil {
		return errors.Wrap(err, "open the archive")
	}
	defer func() { err = errors.CombineErrors(err, file.Close()) }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return errors.Wrap(err, "open the directory to unpack into")
	}
	defer func() { err = errors.CombineErrors(err, root.Close()) }()
	u := &unpacking{ctx: ctx, root: root, limits: limits, seen: map[string]bool{}, dirs: []string{"."}}
	if err := u.archive(file); err != nil {
		return err
	}
	return u.sync()
}

// unpacking is one archive on its way.
type unpacking struct {
	ctx    context.Context
	root   *os.Root
	limits Limits
	bytes  int64
	seen   map[string]bool // true for directories
	dirs   []string        // in the order they were made
}

// archive finds out what kind it is by how it begins: a name can say anything.
func (u *unpacking) archive(file *os.File) error {
	buffered := bufio.NewReader(file)
	magic, err := buffered.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return errors.Wrap(err, "read the archive")
	}
	switch {
	case bytes.HasPrefix(magic, []byte("PK\x03\x04")), bytes.HasPrefix(magic, []byte("PK\x05\x06")):
		return u.zip(file)
	case bytes.HasPrefix(magic, []byte("\x1f\x8b")):
		plain, err := gzip.NewReader(buffered)
		if err != nil {
			return refused("it begins like gzip, and is none: %v", err)
		}
		return u.tar(plain)
	case len(magic) == 512 && bytes.Equal(magic[257:262], []byte("ustar")):
		return u.tar(buffered)
	}
	return refused("it is no tar, no tar.gz and no zip")
}

func (u *unpacking) tar(from io.Reader) error {
	archive := tar.NewReader(from)
	for {
		h, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return refused("it can't be read: %v", err)
		}
		switch h.Typeflag {
		case tar.TypeXGlobalHeader:
			continue // comments, such as git archive leaves
		case tar.TypeReg:
			err = u.file(h.Name, h.FileInfo().Mode(), archive)
		case tar.TypeDir:
			err = u.dir(h.Name)
		case tar.TypeSymlink, tar.TypeLink:
			err = refused("%.200q is a link: an archive holds files and directories", h.Name)
		default:
			err = refused("%.200q is no file and no directory (type %q)", h.Name, h.Typeflag)
		}
		if err != nil {
			return err
		}
	}
}

func (u *unpacking) zip(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return errors.Wrap(err, "read the archive")
	}
	archive, err := zip.NewReader(file, info.Size())
	if err != nil {
		return refused("it can't be read: %v", err)
	}
	for _, f := range archive.File {
		switch mode := f.Mode(); {
		case mode.IsDir():
			err = u.dir(f.Name)
		case mode.IsRegular():
			err = u.zipped(f)
		default:
			err = refused("%.200q is no file and no directory (%s)", f.Name, mode.Type())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacking) zipped(f *zip.File) error {
	content, err := f.Open()
	if err != nil {
		return refused("%.200q can't be read: %v", f.Name, err)
	}
	return errors.CombineErrors(u.file(f.Name, f.Mode(), content), content.Close())
}

// place checks a name and gives it in its shortest form.
func (u *unpacking) place(name string) (string, error) {
	if err := context.Cause(u.ctx); err != nil {
		return "", err
	}
	clean := path.Clean(name)
	switch {
	case name == "" || !utf8.ValidString(name) || strings.ContainsAny(name, "\x00\\"):
		return "", refused("%.200q is no name of a file", name)
	case path.IsAbs(name) || clean == ".." || strings.HasPrefix(clean, "../") || slices.Contains(strings.Split(name, "/"), ".."):
		return "", refused("%.200q leads out of the archive", name)
	case strings.Count(clean, "/") >= u.limits.Depth:
		return "", refused("%.200q lies deeper than %d directories", name, u.limits.Depth)
	}
	return clean, nil
}

func (u *unpacking) dir(name string) error {
	at, err := u.place(name)
	if err != nil {
		return err
	}
	return u.mkdir(at)
}

// mkdir makes a directory and those above it. One that is there already is no harm, but a file in its place is.
func (u *unpacking) mkdir(at string) error {
	if at == "." {
		return nil
	}
	isDir, there := u.seen[at]
	switch {
	case there && isDir:
		return nil
	case there:
		return refused("%.200q is a file and a directory", at)
	}
	if err := u.mkdir(path.Dir(at)); err != nil {
		return err
	}
	if len(u.seen) >= u.limits.Entries {
		return refused("it has more than %d entries", u.limits.Entries)
	}
	if err := u.root.Mkdir(filepath.FromSlash(at), dirMode); err != nil {
		return errors.Wrapf(err, "unpack %.200q", at)
	}
	u.seen[at] = true
	u.dirs = append(u.dirs, at)
	return nil
}

// file unpacks one file. Of its mode only whether it can be run is taken over.
func (u *unpacking) file(name string, mode fs.FileMode, content io.Reader) error {
	at, err := u.place(name)
	if err != nil {
		return err
	}
	if at == "." || strings.HasSuffix(name, "/") {
		return refused("%.200q is no name of a file", name)
	}
	if _, there := u.seen[at]; there {
		return refused("%.200q is there twice", name)
	}
	if err := u.mkdir(path.Dir(at)); err != nil {
		return err
	}
	if len(u.seen) >= u.limits.Entries {
		return refused("it has more than %d entries", u.limits.Entries)
	}
	perm := fs.FileMode(0o644)
	if mode&0o111 != 0 {
		perm = 0o755
	}
	u.seen[at] = false
	file, err := u.root.OpenFile(filepath.FromSlash(at), os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm)
	if err != nil {
		return errors.Wrapf(err, "unpack %.200q", at)
	}
	written, err := io.Copy(file, &within{ctx: u.ctx, from: io.LimitReader(content, u.limits.Bytes-u.bytes+1)})
	u.bytes += written
	switch {
	case err == nil && u.bytes > u.limits.Bytes:
		err = refused("its files have more than %d bytes together", u.limits.Bytes)
	case err == nil:
		err = errors.Wrap(file.Sync(), "sync")
	case context.Cause(u.ctx) != nil:
		err = context.Cause(u.ctx)
	case !errors.HasType(err, (*fs.PathError)(nil)):
		err = refused("%.200q can't be read: %v", name, err)
	}
	return errors.CombineErrors(err, file.Close())
}

// sync makes the names durable; the contents are already.
func (u *unpacking) sync() error {
	for _, dir := range slices.Backward(u.dirs) {
		d, err := u.root.Open(filepath.FromSlash(dir))
		if err != nil {
			return errors.Wrapf(err, "sync %.200q", dir)
		}
		if err := errors.CombineErrors(d.Sync(), d.Close()); err != nil {
			return errors.Wrapf(err, "sync %.200q", dir)
		}
	}
	return nil
}

// within is a reader that ends with its context.
type within struct {
	ctx  context.Context
	from io.Reader
}

func (r *within) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}

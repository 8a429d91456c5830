package ndjson

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/errors"
)

// MaxLineBytes bounds one row. Real ones have a few hundred bytes.
const MaxLineBytes = 1 << 20

// Standard names the standard input as a source.
const Standard = "-"

// Source is a file of rows. It is read more than once, so standard input is first put into a file that goes
// away with the source.
type Source struct {
	// Name is the source's own name: the file's, without folder and .gz, so that packing it makes no other source of it.
	Name string
	path string
	// spooled is set when path is ours to remove.
	spooled bool
}

// Open returns the source at path; for [Standard] it reads all of stdin. It gives errors for a file that can't be
// read.
func Open(path string, stdin io.Reader) (*Source, error) {
	if path == Standard {
		return spool(stdin)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, errors.Wrap(err, "open the file of rows")
	}
	info, err := f.Stat()
	if err = errors.CombineErrors(err, f.Close()); err != nil {
		return nil, errors.Wrap(err, "open the file of rows")
	}
	if !info.Mode().IsRegular() {
		return nil, errors.Newf("%s is not a regular file: it is read more than once; give other input to standard input (%s)", path, Standard)
	}
	return &Source{Name: strings.TrimSuffix(filepath.Base(path), ".gz"), path: path}, nil
}

func spool(stdin io.Reader) (*Source, error) {
	f, err := os.CreateTemp("", "catenary-rows-*")
	if err != nil {
		return nil, errors.Wrap(err, "keep standard input in a file")
	}
	s := &Source{Name: "stdin", path: f.Name(), spooled: true}
	_, err = io.Copy(f, stdin)
	if err = errors.CombineErrors(err, f.Close()); err != nil {
		return nil, errors.CombineErrors(errors.Wrapf(err, "keep standard input in %s", s.path), s.Close())
	}
	return s, nil
}

// Close removes what standard input was put into.
func (s *Source) Close() error {
	if !s.spooled {
		return nil
	}
	return errors.Wrap(os.Remove(s.path), "remove the copy of standard input")
}

// errLineTooLong is the reason why a line is no row; reading goes on after it.
var errLineTooLong = errors.Newf("the line is over %d bytes, which is the limit", MaxLineBytes)

// Lines gives each line that is not empty, with its number from 1. The bytes are only good until yield returns. A line that
// is too long is given as an error beside nil. What it returns itself is an error of the file as a whole.
func (s *Source) Lines(yield func(number int, line []byte, broken error) error) error {
	f, err := os.Open(s.path)
	if err != nil {
		return errors.Wrap(err, "read the file")
	}
	// Nothing was written, so there is nothing that closing could lose.
	defer func() { _ = f.Close() }()
	in, err := unpacked(f)
	if err != nil {
		return errors.Wrapf(err, "read %s", s.Name)
	}
	for number := 1; ; number++ {
		line, broken, err := readLine(in)
		if err != nil && err != io.EOF {
			return errors.Wrapf(err, "read %s at line %d", s.Name, number)
		}
		if number == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")) // some editors begin a file with a byte order mark
		}
		if line = bytes.TrimSpace(line); len(line) > 0 || broken != nil {
			if err := yield(number, line, broken); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

// unpacked gives the text of a file that may be packed by gzip.
func unpacked(f io.Reader) (*bufio.Reader, error) {
	const buffer = 64 << 10
	in := bufio.NewReaderSize(f, buffer)
	if magic, err := in.Peek(2); err != nil || !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		if err == io.EOF {
			err = nil // it has one byte or none
		}
		return in, err
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(z, buffer), nil
}

// readLine gives the next line; err is io.EOF with the last one.
func readLine(in *bufio.Reader) (line []byte, broken, err error) {
	line, err = in.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return line, nil, err
	}
	line = bytes.Clone(line)
	for err == bufio.ErrBufferFull {
		var more []byte
		more, err = in.ReadSlice('\n')
		if broken != nil {
			continue
		}
		if line = append(line, more...); len(bytes.TrimRight(line, "\r\n")) > MaxLineBytes {
			line, broken = nil, errLineTooLong
		}
	}
	return line, broken, err
}

package snapshot

import (
	"encoding/binary"
	"io"
	"slices"

	"github.com/cockroachdb/errors"
)

// ErrForm marks bytes that no writer wrote.
var ErrForm = errors.New("not a snapshot")

// maxBlockBytes bounds a block: a row more than the writer gathers, and no row comes near to it.
const maxBlockBytes = 16 << 20

// maxReserve bounds what is made room for on the word of a number alone.
const maxReserve = 1 << 20

// Reader reads rows back. After the first error all it gives is empty; [Reader.Close] gives the error.
type Reader struct {
	in io.Reader
	// buffer is a block as it was read; rows is what is left of its fields, texts of a copy of its letters.
	buffer []byte
	rows   []byte
	texts  string
	known  []string
	err    error
}

// NewReader returns a reader of what a writer wrote.
func NewReader(in io.Reader) *Reader { return &Reader{in: in} }

// Number reads a number.
func (r *Reader) Number() uint64 {
	if !r.more() {
		return 0
	}
	n, size := binary.Uvarint(r.rows)
	if size <= 0 {
		r.fail("a number has no end")
		return 0
	}
	r.rows = r.rows[size:]
	return n
}

// Signed reads a number that may be negative.
func (r *Reader) Signed() int64 {
	if !r.more() {
		return 0
	}
	n, size := binary.Varint(r.rows)
	if size <= 0 {
		r.fail("a number has no end")
		return 0
	}
	r.rows = r.rows[size:]
	return n
}

// Small reads a number of at most 32 bits.
func (r *Reader) Small() uint32 {
	n := r.Number()
	if n > 1<<32-1 {
		r.fail("a number is too large")
		return 0
	}
	return uint32(n)
}

// Kind reads one of the first `kinds` numbers.
func (r *Reader) Kind(kinds uint8) uint8 {
	n := r.Number()
	if n >= uint64(kinds) {
		if n > 0 {
			r.fail("a kind is not known")
		}
		return 0
	}
	return uint8(n)
}

// Flag reads a yes or no.
func (r *Reader) Flag() bool { return r.Kind(2) == 1 }

// Digest reads a digest.
func (r *Reader) Digest() (d [16]byte) {
	if !r.Flag() {
		return d
	}
	if len(r.rows) < len(d) {
		r.fail("a digest has no end")
		return d
	}
	r.rows = r.rows[copy(d[:], r.rows):]
	return d
}

// Name reads a text that does not come again.
func (r *Reader) Name() string {
	n := r.Number()
	if n > uint64(len(r.texts)) {
		r.fail("a text has no end")
		return ""
	}
	s := r.texts[:n]
	r.texts = r.texts[n:]
	return s
}

// Text reads a text that may come again.
func (r *Reader) Text() string {
	switch n := r.Number(); {
	case n == textEmpty:
		return ""
	case n == textNew:
		s := r.Name()
		if r.err == nil {
			r.known = append(r.known, s)
		}
		return s
	case n-textKnown < uint64(len(r.known)):
		return r.known[n-textKnown]
	}
	r.fail("a text is not known")
	return ""
}

// Texts reads a list of texts; nil when it is empty.
func (r *Reader) Texts() []string {
	n := r.Number()
	if n == 0 {
		return nil
	}
	list := make([]string, 0, min(n, uint64(len(r.rows))))
	for range n {
		if r.err != nil {
			return nil
		}
		list = append(list, r.Text())
	}
	return list
}

// Labels reads names with their values; nil when there are none.
func (r *Reader) Labels() map[string]string {
	n := r.Number()
	if n == 0 {
		return nil
	}
	labels := make(map[string]string, min(n, uint64(len(r.rows))))
	for range n {
		if r.err != nil {
			return nil
		}
		name := r.Text()
		labels[name] = r.Text()
	}
	return labels
}

// Blob reads bytes; nil when there are none.
func (r *Reader) Blob() []byte {
	if s := r.Name(); s != "" {
		return []byte(s)
	}
	return nil
}

// Rows reads a number of rows, and gives them one by one with what to make room for. It stops at the first error.
func (r *Reader) Rows(reserve func(n int), row func()) {
	n := r.Number()
	if n > 0 && r.err == nil {
		reserve(int(min(n, maxReserve)))
	}
	for i := uint64(0); i < n && r.err == nil; i++ {
		row()
	}
}

// Fail ends the work with an error.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = errors.Mark(err, ErrForm)
	}
	r.rows, r.texts = nil, ""
}

// Close gives the first error. What was left unread is one. Errors are marked [ErrForm] or come from below.
func (r *Reader) Close() error {
	if r.err != nil {
		return r.err
	}
	if len(r.rows) > 0 || len(r.texts) > 0 {
		r.fail("there is more than was read")
		return r.err
	}
	switch n, err := io.ReadFull(r.in, make([]byte, 1)); {
	case n > 0:
		r.fail("there is more than was read")
	case err != io.EOF:
		r.err = errors.Wrap(err, "read to the end")
	}
	return r.err
}

func (r *Reader) fail(why string) { r.Fail(errors.Newf("%s", why)) }

// more makes sure that there is something to read, and takes in the next block when this one is read.
func (r *Reader) more() bool {
	if len(r.rows) > 0 {
		return true
	}
	if r.err != nil {
		return false
	}
	if len(r.texts) > 0 {
		r.fail("a block has more texts than fields")
		return false
	}
	var sizes [blockHeaderBytes]byte
	if _, err := io.ReadFull(r.in, sizes[:]); err != nil {
		r.ended(err)
		return false
	}
	rows, texts := binary.BigEndian.Uint32(sizes[:]), binary.BigEndian.Uint32(sizes[4:])
	if rows == 0 || rows > maxBlockBytes || texts > maxBlockBytes {
		r.fail("a block has no sensible size")
		return false
	}
	r.buffer = slices.Grow(r.buffer[:0], int(rows+texts))
	block := r.buffer[:rows+texts]
	if _, err := io.ReadFull(r.in, block); err != nil {
		r.ended(err)
		return false
	}
	r.rows, r.texts = block[:rows:rows], string(block[rows:])
	return true
}

// ended keeps why there is no more.
func (r *Reader) ended(err error) {
	if errors.IsAny(err, io.EOF, io.ErrUnexpectedEOF) {
		r.fail("it ends too early")
		return
	}
	r.err = errors.Wrap(err, "read a block")
}

package snapshot

import (
	"encoding/binary"
	"io"
	"maps"
	"slices"

	"github.com/cockroachdb/errors"
)

// blockBytes is how much is gathered before it is written: enough that the texts of a block are worth a piece of memory of
// their own.
const blockBytes = 128 << 10

// Writer writes rows. The first error ends its work; [Writer.Close] gives it.
type Writer struct {
	out io.Writer
	// rows holds the fields of the block that is being gathered, texts the letters of all its texts.
	rows, texts []byte
	// known numbers the texts that may come again.
	known map[string]uint64
	err   error
}

// NewWriter returns a writer. It MUST be closed.
func NewWriter(out io.Writer) *Writer {
	return &Writer{out: out, known: map[string]uint64{}}
}

// Number writes a number; small ones are short.
func (w *Writer) Number(n uint64) { w.rows = binary.AppendUvarint(w.rows, n) }

// Signed writes a number that may be negative.
func (w *Writer) Signed(n int64) { w.rows = binary.AppendVarint(w.rows, n) }

// Flag writes a yes or no.
func (w *Writer) Flag(yes bool) {
	if yes {
		w.Number(1)
	} else {
		w.Number(0)
	}
}

// Digest writes a digest; the zero one is short.
func (w *Writer) Digest(d [16]byte) {
	some := d != [16]byte{}
	if w.Flag(some); some {
		w.rows = append(w.rows, d[:]...)
	}
}

// Name writes a text that does not come again.
func (w *Writer) Name(s string) {
	w.Number(uint64(len(s)))
	w.texts = append(w.texts, s...)
}

// How a text is written: empty, new, or as the number of one that came before.
const (
	textEmpty = iota
	textNew
	textKnown
)

// Text writes a text that may come again.
func (w *Writer) Text(s string) {
	if s == "" {
		w.Number(textEmpty)
		return
	}
	if n, ok := w.known[s]; ok {
		w.Number(textKnown + n)
		return
	}
	w.known[s] = uint64(len(w.known))
	w.Number(textNew)
	w.Name(s)
}

// Texts writes a list of texts.
func (w *Writer) Texts(list []string) {
	w.Number(uint64(len(list)))
	for _, s := range list {
		w.Text(s)
	}
}

// Labels writes names with their values, in the order of the names.
func (w *Writer) Labels(labels map[string]string) {
	w.Number(uint64(len(labels)))
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		w.Text(name)
		w.Text(labels[name])
	}
}

// Blob writes bytes.
func (w *Writer) Blob(b []byte) {
	w.Number(uint64(len(b)))
	w.texts = append(w.texts, b...)
}

// EndRow ends a row. A row is never torn apart, so that a reader has all of it in memory.
func (w *Writer) EndRow() {
	if len(w.rows)+len(w.texts) >= blockBytes {
		w.flush()
	}
}

// Fail ends the work with an error.
func (w *Writer) Fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// Close writes what is gathered and gives the first error.
func (w *Writer) Close() error {
	w.flush()
	return w.err
}

func (w *Writer) flush() {
	if w.err != nil || len(w.rows) == 0 {
		return
	}
	var sizes [blockHeaderBytes]byte
	binary.BigEndian.PutUint32(sizes[:], uint32(len(w.rows)))
	binary.BigEndian.PutUint32(sizes[4:], uint32(len(w.texts)))
	for _, part := range [][]byte{sizes[:], w.rows, w.texts} {
		if _, err := w.out.Write(part); err != nil {
			w.Fail(errors.Wrap(err, "write a block"))
			return
		}
	}
	w.rows, w.texts = w.rows[:0], w.texts[:0]
}

// blockHeaderBytes holds the sizes of a block's two parts.
const blockHeaderBytes = 8

package export

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"io"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/parquet-go/parquet-go"

	"catenary/audit"
)

// Format is how rows are written.
type Format string

// The formats.
const (
	NDJSON  Format = "ndjson"
	CSV     Format = "csv"
	Parquet Format = "parquet"
)

// Formats lists the names of all formats.
func Formats() []string { return []string{string(NDJSON), string(CSV), string(Parquet)} }

// ErrFormat is given for a format that is none.
var ErrFormat = errors.New("no such format")

// Writer writes rows. After an error nothing more can be written.
type Writer[T any] interface {
	// Write writes rows behind those before.
	Write(rows []T) error
	// Close completes what was written; it does not close what it was written to.
	Close() error
}

// Events returns a writer of events. It gives [ErrFormat].
func Events(w io.Writer, f Format) (Writer[Event], error) {
	return newWriter(w, f, func(e Event) any { return e.line() }, Event.row)
}

// Assignments returns a writer of what was said of assignments. It gives [ErrFormat].
func Assignments(w io.Writer, f Format) (Writer[audit.ExportedAssignment], error) {
	return newWriter(w, f, func(a audit.ExportedAssignment) any { return a }, rowOfAssignment)
}

// flat is a row of columns.
type flat interface {
	// cells are the values of the columns as text, in order.
	cells() []string
}

func newWriter[T any, R flat](w io.Writer, f Format, line func(T) any, row func(T) R) (Writer[T], error) {
	switch f {
	case NDJSON:
		out := bufio.NewWriterSize(w, bufferBytes)
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		return jsonWriter[T]{out, e, line}, nil
	case CSV:
		c := csv.NewWriter(w)
		var columns []string
		for _, field := range parquet.SchemaOf(*new(R)).Fields() {
			columns = append(columns, field.Name())
		}
		return &csvWriter[T, R]{csv: c, row: row, columns: columns}, nil
	case Parquet:
		p := parquet.NewGenericWriter[R](w, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(groupRows))
		return parquetWriter[T, R]{p, row}, nil
	}
	return nil, errors.Wrapf(ErrFormat, "%q: it is one of %s", f, strings.Join(Formats(), ", "))
}

// bufferBytes is what goes out at once: a line alone is small.
const bufferBytes = 64 << 10

// jsonWriter writes an object a line.
type jsonWriter[T any] struct {
	out     *bufio.Writer
	encoder *json.Encoder
	line    func(T) any
}

// Write writes a line for each row.
func (w jsonWriter[T]) Write(rows []T) error {
	for _, r := range rows {
		if err := w.encoder.Encode(w.line(r)); err != nil {
			return errors.Wrap(err, "write a line")
		}
	}
	return errors.Wrap(w.out.Flush(), "write lines")
}

// Close has nothing to complete.
func (w jsonWriter[T]) Close() error { return nil }

// csvWriter writes a header and then a record a row.
type csvWriter[T any, R flat] struct {
	csv     *csv.Writer
	row     func(T) R
	columns []string
	begun   bool
}

// Write writes a record for each row.
func (w *csvWriter[T, R]) Write(rows []T) error {
	if err := w.begin(); err != nil {
		return err
	}
	for _, r := range rows {
		if err := w.csv.Write(w.row(r).cells()); err != nil {
			return errors.Wrap(err, "write a record")
		}
	}
	w.csv.Flush()
	return errors.Wrap(w.csv.Error(), "write records")
}

func (w *csvWriter[T, R]) begin() error {
	if w.begun {
		return nil
	}
	w.begun = true
	return errors.Wrap(w.csv.Write(w.columns), "write the header")
}

// Close writes the header when there was no row.
func (w *csvWriter[T, R]) Close() error {
	err := w.begin()
	w.csv.Flush()
	return errors.CombineErrors(err, w.csv.Error())
}

// groupRows is how many rows are held before they are written: a row group of usual size, some tens of megabytes of events.
const groupRows = 20_000

// parquetWriter writes columns.
type parquetWriter[T any, R flat] struct {
	file *parquet.GenericWriter[R]
	row  func(T) R
}

// Write takes rows in, and writes those before when they fill a group.
func (w parquetWriter[T, R]) Write(rows []T) error {
	made := make([]R, len(rows))
	for i, r := range rows {
		made[i] = w.row(r)
	}
	_, err := w.file.Write(made)
	return errors.Wrap(err, "write rows")
}

// Close writes what is held, and the file's footer.
func (w parquetWriter[T, R]) Close() error { return errors.Wrap(w.file.Close(), "write the footer") }

package snapshot_test

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"catenary/aggregates/snapshot"
)

// row has a field of each kind.
type row struct {
	Number uint64
	Signed int64
	Flag   bool
	Digest [16]byte
	Name   string
	Text   string
	Texts  []string
	Blob   []byte
}

func write(out io.Writer, rows []row) error {
	w := snapshot.NewWriter(out)
	w.Number(uint64(len(rows)))
	w.EndRow()
	for _, v := range rows {
		w.Number(v.Number)
		w.Signed(v.Signed)
		w.Flag(v.Flag)
		w.Digest(v.Digest)
		w.Name(v.Name)
		w.Text(v.Text)
		w.Texts(v.Texts)
		w.Blob(v.Blob)
		w.EndRow()
	}
	return w.Close()
}

func read(in io.Reader) ([]row, error) {
	r := snapshot.NewReader(in)
	var rows []row
	r.Rows(func(n int) { rows = make([]row, 0, n) }, func() {
		rows = append(rows, row{
			Number: r.Number(), Signed: r.Signed(), Flag: r.Flag(), Digest: r.Digest(), Name: r.Name(), Text: r.Text(), Texts: r.Texts(), Blob: r.Blob(),
		})
	})
	return rows, r.Close()
}

func anyRows(t *rapid.T) []row {
	text := rapid.OneOf(rapid.SampledFrom([]string{"", "web", "n1", "節点🚀"}), rapid.String())
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) row {
		v := row{
			Number: rapid.Uint64().Draw(t, "number"), Signed: rapid.Int64().Draw(t, "signed"), Flag: rapid.Bool().Draw(t, "flag"),
			Name: text.Draw(t, "name"), Text: text.Draw(t, "text"),
		}
		if rapid.Bool().Draw(t, "has digest") {
			copy(v.Digest[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "digest"))
		}
		if list := rapid.SliceOfN(text, 0, 4).Draw(t, "texts"); len(list) > 0 {
			v.Texts = list
		}
		if blob := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "blob"); len(blob) > 0 {
			v.Blob = blob
		}
		return v
	}), 1, 20).Draw(t, "rows")
}

func TestRowsComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rows := anyRows(t)
		var first, second bytes.Buffer
		if err := errors.CombineErrors(write(&first, rows), write(&second, rows)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatal("the same rows gave other bytes")
		}
		got, err := read(iotest.HalfReader(&first))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(rows, got); diff != "" {
			t.Fatalf("rows (-written +read):\n%s", diff)
		}
	})
}

// TestBlocks writes more than fits into one block.
func TestBlocks(t *testing.T) {
	t.Parallel()
	rows := make([]row, 20_000)
	for i := range rows {
		rows[i] = row{Number: uint64(i), Name: string(bytes.Repeat([]byte{'n'}, i%40)), Text: []string{"web", "api"}[i%2]}
	}
	var out bytes.Buffer
	if err := write(&out, rows); err != nil {
		t.Fatal(err)
	}
	got, err := read(&out)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rows, got); diff != "" {
		t.Fatalf("rows (-written +read):\n%s", diff)
	}
}

// TestDamageIsAnError cuts and changes what was written: reading must give an error or rows, and never panic.
func TestDamageIsAnError(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var out bytes.Buffer
		if err := write(&out, anyRows(t)); err != nil {
			t.Fatal(err)
		}
		whole := out.Bytes()
		cut := rapid.IntRange(0, len(whole)-1).Draw(t, "cut at")
		if _, err := read(bytes.NewReader(whole[:cut])); !errors.Is(err, snapshot.ErrForm) {
			t.Fatalf("cut at %d of %d: got %v", cut, len(whole), err)
		}
		if _, err := read(bytes.NewReader(append(bytes.Clone(whole), 0))); !errors.Is(err, snapshot.ErrForm) {
			t.Fatalf("a byte more: got %v", err)
		}
		changed := bytes.Clone(whole)
		changed[rapid.IntRange(0, len(whole)-1).Draw(t, "change at")] ^= rapid.Byte().Draw(t, "by")
		if _, err := read(bytes.NewReader(changed)); err != nil && !errors.Is(err, snapshot.ErrForm) {
			t.Fatalf("changed: got %v", err)
		}
	})
}

func FuzzRead(f *testing.F) {
	var out bytes.Buffer
	if err := write(&out, []row{{Number: 1, Name: "a", Text: "b", Texts: []string{"b", "c"}, Blob: []byte("d")}}); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := read(bytes.NewReader(data)); err != nil && !errors.Is(err, snapshot.ErrForm) {
			t.Errorf("got %v", err)
		}
	})
}

// TestErrorsFromBelow passes on what the writer and the reader beneath say.
func TestErrorsFromBelow(t *testing.T) {
	t.Parallel()
	if err := write(failing{}, []row{{Name: "a"}}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("writing: got %v", err)
	}
	if _, err := read(iotest.ErrReader(io.ErrClosedPipe)); !errors.Is(err, io.ErrClosedPipe) || errors.Is(err, snapshot.ErrForm) {
		t.Errorf("reading: got %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

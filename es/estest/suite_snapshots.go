package estest

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// Snapshots is what every keeper of snapshots gives, as es/dispatch states it.
type Snapshots interface {
	Save(ctx context.Context, sequence uint64, write func(io.Writer) error) error
	Load(ctx context.Context, below uint64) (sequence uint64, base io.ReadCloser, err error)
}

// RunSnapshotsSuite holds a keeper of snapshots to its contract. Open gives an empty one.
func RunSnapshotsSuite(t *testing.T, open func(t *testing.T) Snapshots) {
	t.Helper()
	t.Run("nothing is kept yet", func(t *testing.T) {
		t.Parallel()
		wantNoBase(t, open(t), 0)
	})
	t.Run("what was saved comes back", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		for i, size := range []int{0, 1, 1 << 20, 3<<20 + 17} {
			sequence, want := uint64(i+1), base(i, size)
			if err := s.Save(t.Context(), sequence, writeInParts(want)); err != nil {
				t.Fatal(err)
			}
			wantBase(t, s, 0, sequence, want)
		}
	})
	t.Run("the one before stays, older ones go", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		for _, sequence := range []uint64{7, 9, 1 << 40, 1<<40 + 1} {
			if err := s.Save(t.Context(), sequence, writeInParts(base(int(sequence%100), 1000))); err != nil {
				t.Fatal(err)
			}
		}
		wantBase(t, s, 0, 1<<40+1, base((1<<40+1)%100, 1000))
		wantBase(t, s, 1<<40+1, 1<<40, base((1<<40)%100, 1000))
		wantBase(t, s, 1<<40+9, 1<<40+1, base((1<<40+1)%100, 1000))
		wantNoBase(t, s, 1<<40)
	})
	t.Run("one that was saved again is the later one", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		for i := range 2 {
			if err := s.Save(t.Context(), 5, writeInParts(base(i, 1000))); err != nil {
				t.Fatal(err)
			}
		}
		wantBase(t, s, 0, 5, base(1, 1000))
	})
	t.Run("a failed one does not show up", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		if err := s.Save(t.Context(), 3, writeInParts(base(3, 1000))); err != nil {
			t.Fatal(err)
		}
		broken := errors.New("broken")
		err := s.Save(t.Context(), 4, func(out io.Writer) error {
			if _, err := out.Write(base(4, 1<<20)); err != nil {
				return err
			}
			return broken
		})
		if !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		ended, cancel := context.WithCancel(t.Context())
		err = s.Save(ended, 5, func(out io.Writer) error {
			cancel()
			return writeInParts(base(5, 4<<20))(out)
		})
		if err == nil {
			t.Error("saved with a context that has ended")
		}
		wantBase(t, s, 0, 3, base(3, 1000))
	})
	t.Run("one that is being read is read to its end", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		want := base(1, 2<<20)
		if err := s.Save(t.Context(), 1, writeInParts(want)); err != nil {
			t.Fatal(err)
		}
		_, reading, err := s.Load(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Save(t.Context(), 2, writeInParts(base(2, 1000))); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(reading)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("read %d bytes of %d, %v", len(got), len(want), err)
		}
		if err := reading.Close(); err != nil {
			t.Error(err)
		}
	})
}

// base gives content that is other for each number.
func base(number, size int) []byte {
	out := make([]byte, size)
	for i := range out {
		out[i] = byte(i*7 + i>>8 + number)
	}
	return out
}

func writeInParts(data []byte) func(io.Writer) error {
	return func(out io.Writer) error {
		for part := range bytes.Lines(data) {
			if _, err := out.Write(part); err != nil {
				return err
			}
		}
		return nil
	}
}

func wantBase(t *testing.T, s Snapshots, below, sequence uint64, want []byte) {
	t.Helper()
	found, base, err := s.Load(t.Context(), below)
	if err != nil {
		t.Fatalf("load below %d: %v", below, err)
	}
	got, err := io.ReadAll(base)
	if err := errors.CombineErrors(err, base.Close()); err != nil {
		t.Fatalf("read base %d: %v", found, err)
	}
	if found != sequence || !bytes.Equal(got, want) {
		t.Errorf("below %d: base %d with %d bytes, want %d with %d", below, found, len(got), sequence, len(want))
	}
}

func wantNoBase(t *testing.T, s Snapshots, below uint64) {
	t.Helper()
	if sequence, _, err := s.Load(t.Context(), below); !errors.Is(err, es.ErrNotFound) {
		t.Errorf("below %d: base %d, %v", below, sequence, err)
	}
}

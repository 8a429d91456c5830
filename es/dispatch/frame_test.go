package dispatch

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"

	"github.com/cockroachdb/errors"
	"pgregory.net/rapid"
)

func framed(t interface{ Fatal(...any) }, parts ...[]byte) []byte {
	var out bytes.Buffer
	w := newFrameWriter(&out, unpaced)
	for _, p := range parts {
		if n, err := w.Write(p); err != nil || n != len(p) {
			t.Fatal(n, err)
		}
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func unframed(data []byte) ([]byte, error) {
	r := newFrameReader(iotest.HalfReader(bytes.NewReader(data)), unpaced)
	content, err := io.ReadAll(r)
	return content, errors.CombineErrors(err, r.close())
}

func TestFramesComeBack(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, frameBytes - 1, frameBytes, frameBytes + 1, 3*frameBytes + 17} {
		want := bytes.Repeat([]byte("catenary"), size/8+1)[:size]
		got, err := unframed(framed(t, want[:size/3], want[size/3:]))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: got %d, %v", size, len(got), err)
		}
	}
}

// TestDamagedFramesAreFound changes anything that can be changed: what comes out then is an error, or a part of what was
// written and then an error.
func TestDamagedFramesAreFound(t *testing.T) {
	t.Parallel()
	want := bytes.Repeat([]byte{1, 2, 3, 4, 5}, frameBytes/2)
	whole := framed(t, want)
	frame := frameHeaderBytes + frameBytes
	rapid.Check(t, func(t *rapid.T) {
		data := bytes.Clone(whole)
		switch rapid.SampledFrom([]string{"flip", "cut", "longer", "swap", "leave out", "again"}).Draw(t, "damage") {
		case "flip":
			data[rapid.IntRange(0, len(data)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		case "cut":
			data = data[:rapid.IntRange(0, len(data)-1).Draw(t, "at")]
		case "longer":
			data = append(data, 0)
		case "swap":
			copy(data, whole[frame:2*frame])
			copy(data[frame:], whole[:frame])
		case "leave out":
			data = data[frame:]
		case "again":
			data = append(bytes.Clone(whole[:frame]), whole...)
		}
		got, err := unframed(data)
		if !errors.Is(err, errDamaged) {
			t.Fatalf("got %v", err)
		}
		if !bytes.HasPrefix(want, got) {
			t.Fatal("what was read was never written")
		}
	})
}

func TestPaceEndsTheWork(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	paced := func() error { return stop }
	w := newFrameWriter(io.Discard, paced)
	if _, err := w.Write(make([]byte, 2*frameBytes)); !errors.Is(err, stop) {
		t.Errorf("writing: %v", err)
	}
	if _, err := io.ReadAll(newFrameReader(bytes.NewReader(framed(t, []byte("a"))), paced)); !errors.Is(err, stop) {
		t.Errorf("reading: %v", err)
	}
}

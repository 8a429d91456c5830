package depot

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/agent/artifacts"
	"catenary/es"
	"catenary/internal/parts"
	"catenary/internal/topology"
)

// fetch gets an artifact as an agent does.
func fetch(t *testing.T, source artifacts.Source, digest string) ([]byte, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "artifact")
	if err := artifacts.Fetch(bounded(t), source, digest, path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

func TestPublishAndFetch(t *testing.T) {
	t.Parallel()
	d := start(t, 256<<20)
	for _, size := range []content{1, ChunkBytes - 1, ChunkBytes, ChunkBytes + 1, WindowBytes, 2*WindowBytes + 3*ChunkBytes + 17} {
		done := d.publish(t, size)
		if done.Again || done.Bytes != int64(size) || done.File != "app.tgz" || !done.Stored.Stored.Equal(d.now) {
			t.Errorf("%d bytes: %+v", size, done)
		}
		got, err := fetch(t, d, size.digest())
		if err != nil || !bytes.Equal(got, size.bytes()) {
			t.Errorf("%d bytes: %d came, %v", size, len(got), err)
		}
		for _, from := range []int64{1, int64(size) - 1, int64(size), int64(size) + 5} {
			r, err := d.Open(bounded(t), size.digest(), from)
			if err != nil {
				t.Fatalf("%d bytes from %d: %v", size, from, err)
			}
			rest, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(rest, size.bytes()[min(from, int64(size)):]) {
				t.Errorf("%d bytes from %d: %d came, %v", size, from, len(rest), err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	before := d.subjects(t, ">")
	d.now = d.now.Add(time.Hour)
	if again := d.publish(t, ChunkBytes); !again.Again || !again.Used.Equal(d.now) || again.Stored.Stored.Equal(d.now) {
		t.Errorf("published again it is %+v", again)
	}
	if after := d.subjects(t, ">"); len(after) != len(before) {
		t.Errorf("publishing again stores more: %v, before %v", after, before)
	}
	js, err := jetstream.New(d.nc)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := js.ObjectStore(bounded(t), topology.ObjectsArtifacts)
	if err != nil {
		t.Fatal(err)
	}
	// Whoever has only the usual tools can get it, too, and these compare their own digest.
	if got, err := objects.GetBytes(bounded(t), content(ChunkBytes+1).digest()); err != nil || !bytes.Equal(got, content(ChunkBytes+1).bytes()) {
		t.Errorf("as an object it has %d bytes, %v", len(got), err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	d := start(t, 4<<20)
	const size = content(ChunkBytes + 100)
	for _, c := range []struct {
		name   string
		digest string
		bytes  int64
		fails  error
		says   string
	}{
		{name: "too large", digest: size.digest(), bytes: MaxBytes + 1, fails: es.ErrTooLarge, says: "the limit is 4294967296"},
		{name: "nothing", digest: size.digest(), fails: parts.ErrRequest, says: "nothing to keep"},
		{name: "no digest", digest: "web@1.20", bytes: int64(size), fails: artifacts.ErrDigest, says: "64 hexadecimal digits"},
		{name: "another digest", digest: content(5).digest(), bytes: int64(size), fails: artifacts.ErrMismatch, says: "expected " + content(5).digest() + ", found " + size.digest()},
		// The last: its pieces are there until they are removed.
		{name: "no room", digest: content(8 << 20).digest(), bytes: 8 << 20, fails: es.ErrFull, says: "maximum bytes exceeded"},
	} {
		_, err := d.Publish(bounded(t), content(8<<20), c.digest, c.bytes, "f", nil)
		if c.bytes == int64(size) {
			_, err = d.Publish(bounded(t), size, c.digest, c.bytes, "f", nil)
		}
		if !errors.Is(err, c.fails) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got error %v, want %v that says %q", c.name, err, c.fails, c.says)
		}
	}
	if left := d.subjects(t, topology.ObjectChunkSubject(topology.ObjectsArtifacts, content(5).digest()[7:]+"-0")); len(left) > 0 {
		t.Errorf("what did not match is left: %v", left)
	}
	if _, err := fetch(t, d, content(5).digest()); !errors.Is(err, artifacts.ErrNotFound) {
		t.Errorf("what was never stored: %v", err)
	}
}

// errCut is what a file gives that can't be read on.
var errCut = errors.New("the disk is gone")

// cutAfter reads so many bytes and then no more.
type cutAfter struct {
	content
	at int64
}

func (c cutAfter) ReadAt(p []byte, at int64) (int, error) {
	if at >= c.at {
		return 0, errCut
	}
	return c.content.ReadAt(p, at)
}

// TestUploadGoesOn: whoever was cut short goes on where the pieces end, also when what is there is somebody else's that does not match.
func TestUploadGoesOn(t *testing.T) {
	t.Parallel()
	d := start(t, 64<<20)
	const size = content(7*ChunkBytes + 9)
	if _, err := d.Publish(bounded(t), cutAfter{size, 3 * ChunkBytes}, size.digest(), int64(size), "f", nil); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	var first int64 = -1
	_, err := d.Publish(bounded(t), size, size.digest(), int64(size), "f", func(done int64) {
		if first < 0 {
			first = done
		}
	})
	if err != nil || first != 3*ChunkBytes {
		t.Errorf("it went on from %d, want %d: %v", first, 3*ChunkBytes, err)
	}
	const other = content(2*ChunkBytes + 1)
	bad := cutAfter{size, ChunkBytes}
	if _, err := d.Publish(bounded(t), reversed{bad}, other.digest(), int64(other), "f", nil); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	d.publish(t, other)
	if got, err := fetch(t, d, other.digest()); err != nil || !bytes.Equal(got, other.bytes()) {
		t.Errorf("%d bytes came, %v", len(got), err)
	}
}

// reversed has other bytes.
type reversed struct{ cutAfter }

func (r reversed) ReadAt(p []byte, at int64) (int, error) {
	n, err := r.cutAfter.ReadAt(p, at)
	for i := range p[:n] {
		p[i] ^= 0xFF
	}
	return n, err
}

// TestUploadersShare: several who upload the same at once make one artifact, while the service is stopped and started between.
func TestUploadersShare(t *testing.T) {
	t.Parallel()
	d := start(t, 64<<20)
	const size = content(20*ChunkBytes + 1)
	var uploads sync.WaitGroup
	for range 4 {
		client := NewClient(d.bus.Connect(t), nil)
		uploads.Go(func() {
			if _, err := client.Publish(bounded(t), size, size.digest(), int64(size), "f", nil); err != nil {
				t.Error(err)
			}
		})
	}
	uploads.Wait()
	rows := d.subjects(t, chunkSubject(">"))
	if len(rows) != 1 || rows[chunkSubject(strings.TrimPrefix(size.digest(), "sha256:")+"-0")] != 21 {
		t.Errorf("the pieces are %v, want one row of 21", rows)
	}
	if got, err := fetch(t, d, size.digest()); err != nil || !bytes.Equal(got, size.bytes()) {
		t.Errorf("%d bytes came, %v", len(got), err)
	}
}

// TestServerGoesInTheMiddle: the server is stopped and started again while something is published, and while it is fetched.
func TestServerGoesInTheMiddle(t *testing.T) {
	t.Parallel()
	d := start(t, 64<<20)
	const size = content(16*ChunkBytes + 1)
	var once sync.Once
	_, err := d.Publish(bounded(t), size, size.digest(), int64(size), "f", func(done int64) {
		if done >= 5*ChunkBytes {
			once.Do(func() { d.bus.Stop(); d.bus.Start(t) })
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "artifact")
	cut := &cutting{Source: d, at: WindowBytes, cut: d.bus.Stop}
	if err := artifacts.Fetch(bounded(t), cut, size.digest(), path); !errors.Is(err, artifacts.ErrUnavailable) {
		t.Fatalf("without a server: %v", err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() == 0 || info.Size() >= int64(size) {
		t.Fatalf("what came is not kept: %v, %v", info, err)
	}
	d.bus.Start(t)
	cut.cut = func() {}
	deadline := time.After(waitLimit)
	for tick := time.Tick(20 * time.Millisecond); ; {
		err := artifacts.Fetch(bounded(t), cut, size.digest(), path)
		if err == nil {
			break
		}
		if !errors.Is(err, artifacts.ErrUnavailable) {
			t.Fatal(err)
		}
		select {
		case <-tick:
		case <-deadline:
			t.Fatal("the artifact does not come any more")
		}
	}
	if cut.from != info.Size() {
		t.Errorf("the fetch went on from %d, want %d", cut.from, info.Size())
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, size.bytes()) {
		t.Errorf("%d bytes are there, %v", len(got), err)
	}
}

// cutting lets something happen when a place is passed.
type cutting struct {
	artifacts.Source
	at, from int64
	cut      func()
	read     int64
}

func (c *cutting) Open(ctx context.Context, digest string, from int64) (io.ReadCloser, error) {
	c.from, c.read = from, from
	r, err := c.Source.Open(ctx, digest, from)
	if err != nil {
		return nil, err
	}
	return &cuttingReader{r, c}, nil
}

type cuttingReader struct {
	io.ReadCloser
	c *cutting
}

func (r *cuttingReader) Read(p []byte) (int, error) {
	before := r.c.read
	n, err := r.ReadCloser.Read(p)
	if r.c.read += int64(n); before < r.c.at && r.c.read >= r.c.at {
		r.c.cut()
	}
	return n, err
}

// TestForgedPiece: a piece that is not what was published is found by the agent, and nothing of it stays.
func TestForgedPiece(t *testing.T) {
	t.Parallel()
	d := start(t, 64<<20)
	const size = content(3 * ChunkBytes)
	d.publish(t, size)
	o, err := d.store.object(bounded(t), size.digest())
	if err != nil {
		t.Fatal(err)
	}
	// The description is led to another row, in which one byte is another.
	js, err := jetstream.New(d.nc)
	if err != nil {
		t.Fatal(err)
	}
	all := size.bytes()
	all[ChunkBytes+7] ^= 1
	o.NUID = "forged"
	for i := range 3 {
		m := nats.NewMsg(chunkSubject(o.NUID))
		m.Header.Set(headerPlace, []string{"1", "2", "3"}[i])
		m.Data = all[i*ChunkBytes : (i+1)*ChunkBytes]
		if _, err := js.PublishMsg(bounded(t), m); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.store.describe(bounded(t), &o); err != nil {
		t.Fatal(err)
	}
	var found *artifacts.Mismatch
	if _, err := fetch(t, d, size.digest()); !errors.As(err, &found) || found.Expected != size.digest() || found.Found == found.Expected {
		t.Errorf("got error %v", err)
	}
}

// TestFlippedByte: a byte of the store's file is another after a restart. The artifact does not come, and never wrongly.
func TestFlippedByte(t *testing.T) {
	t.Parallel()
	d := start(t, 64<<20)
	const size = content(3 * ChunkBytes)
	d.publish(t, size)
	d.bus.Stop()
	piece := size.bytes()[ChunkBytes : ChunkBytes+100]
	flipped := 0
	err := filepath.Walk(d.bus.StoreDir(), func(path string, info os.FileInfo, err error) error {
		if err != nil || !strings.HasSuffix(path, ".blk") {
			return err
		}
		file, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if at := bytes.Index(file, piece); at >= 0 {
			file[at] ^= 1
			flipped++
			return os.WriteFile(path, file, info.Mode())
		}
		return nil
	})
	if err != nil || flipped != 1 {
		t.Fatalf("%d bytes are flipped: %v", flipped, err)
	}
	d.bus.Start(t)
	deadline := time.After(waitLimit)
	for tick := time.Tick(20 * time.Millisecond); ; {
		// What is asked while the connection is made again may be lost.
		asking, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := d.store.object(asking, size.digest())
		cancel()
		if err == nil {
			break
		}
		select {
		case <-tick:
		case <-deadline:
			t.Fatal(err)
		}
	}
	got, err := fetch(t, d, size.digest())
	if err == nil {
		t.Fatalf("%d bytes came, and one of them is wrong", len(got))
	}
	if !errors.IsAny(err, artifacts.ErrMismatch, artifacts.ErrUnavailable) {
		t.Errorf("got error %v", err)
	}
	// Publishing it again mends it.
	if done := d.publish(t, size); done.Again {
		t.Errorf("it is said to be there: %+v", done)
	}
	if got, err := fetch(t, d, size.digest()); err != nil || !bytes.Equal(got, size.bytes()) {
		t.Errorf("published again, %d bytes came, %v", len(got), err)
	}
}

// TestLargeArtifact takes 100 MB in and out, and holds little of it at any time.
func TestLargeArtifact(t *testing.T) {
	t.Parallel()
	d := start(t, 256<<20)
	const size = content(100_000_000)
	var most uint64
	look := func(done int64) {
		if done%(64*ChunkBytes) == 0 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
	}
	digest := size.digest()
	if _, err := d.Publish(bounded(t), size, digest, int64(size), "f", look); err != nil {
		t.Fatal(err)
	}
	r, err := d.Open(bounded(t), digest, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	piece := make([]byte, ChunkBytes)
	for at := int64(0); ; {
		n, err := io.ReadFull(r, piece)
		at += int64(n)
		look(at)
		if err != nil {
			if at != int64(size) {
				t.Errorf("%d bytes came: %v", at, err)
			}
			break
		}
	}
	if most >= uint64(size) {
		t.Errorf("up to %d bytes were held, of %d", most, size)
	}
}

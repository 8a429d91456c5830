package depot

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es/estest"
	"catenary/internal/topology"
)

func TestMain(m *testing.M) { estest.VerifyTestMain(m) }

// waitLimit bounds every wait. It is reached only when something is broken.
const waitLimit = 4 * time.Minute

func bounded(t testing.TB) context.Context {
	t.Helper()
	return estest.Bounded(t, waitLimit)
}

// content is a file of any length that is nowhere: pages that differ in their numbers.
type content int64

const pageBytes = 4096

func (c content) ReadAt(p []byte, at int64) (int, error) {
	n := int(min(int64(len(p)), int64(c)-at))
	page := make([]byte, pageBytes)
	for i := 0; i < pageBytes; i += 8 {
		binary.LittleEndian.PutUint64(page[i:], uint64(i+1)*0x9E3779B97F4A7C15)
	}
	for i := 0; i < n; {
		place := at + int64(i)
		binary.BigEndian.PutUint64(page, uint64(place/pageBytes))
		i += copy(p[i:n], page[place%pageBytes:])
	}
	return n, nil
}

func (c content) bytes() []byte {
	all := make([]byte, c)
	_, _ = c.ReadAt(all, 0)
	return all
}

func (c content) digest() string {
	sum := sha256.New()
	piece := make([]byte, ChunkBytes)
	for at := int64(0); at < int64(c); at += ChunkBytes {
		n, _ := c.ReadAt(piece, at)
		sum.Write(piece[:n])
	}
	return fmt.Sprintf("sha256:%x", sum.Sum(nil))
}

// place is a depot on a server of its own.
type depotOn struct {
	*Client
	bus     *estest.Bus
	nc      *nats.Conn
	store   *Store
	service *Service
	now     time.Time
	facts   Facts
}

// start starts a depot that has room for some bytes.
func start(t testing.TB, bytes int64) *depotOn {
	t.Helper()
	d := &depotOn{bus: estest.Server(t, false), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	d.nc = d.bus.Connect(t)
	js, err := jetstream.New(d.nc)
	if err != nil {
		t.Fatal(err)
	}
	config := topology.Artifacts(topology.Options{})
	config.MaxBytes = bytes
	if _, err := js.CreateStream(bounded(t), config); err != nil {
		t.Fatal(err)
	}
	if err := Ensure(bounded(t), d.nc, topology.Options{}); err != nil {
		t.Fatal(err)
	}
	clock := func() time.Time { return d.now }
	if d.store, err = OpenStore(bounded(t), d.nc, clock); err != nil {
		t.Fatal(err)
	}
	d.service, err = Serve(d.nc, Config{
		Store: d.store, Version: "0.1.0", Now: clock, Logger: slog.New(slog.DiscardHandler),
		Facts: func(context.Context, time.Time) (Facts, error) { return d.facts, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.service.Stop(); err != nil {
			t.Error(err)
		}
	})
	d.Client = NewClient(d.bus.Connect(t), nil)
	return d
}

// publish stores something, which must succeed.
func (d *depotOn) publish(t testing.TB, c content) Finished {
	t.Helper()
	done, err := d.Publish(bounded(t), c, c.digest(), int64(c), "dir/app.tgz", nil)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// subjects are what the stream holds.
func (d *depotOn) subjects(t testing.TB, filter string) map[string]uint64 {
	t.Helper()
	found, err := d.store.subjects(bounded(t), filter)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

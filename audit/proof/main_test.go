package proof_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"golang.org/x/mod/sumdb/note"

	"catenary/audit/proof"
	"catenary/es"
	"catenary/es/estest"
	"catenary/es/memstore"
)

func TestMain(m *testing.M) { estest.VerifyTestMain(m) }

// waitLimit bounds every wait of a test. It is reached only when something is broken.
const waitLimit = time.Minute

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	t.Cleanup(cancel)
	return ctx
}

// memory keeps tiles and checkpoints.
type memory struct {
	mu      sync.Mutex
	tiles   map[string][]byte
	signed  [][]byte
	written int
}

func newMemory() *memory { return &memory{tiles: map[string][]byte{}} }

func (m *memory) Tile(_ context.Context, level int, n int64) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	data, ok := m.tiles[fmt.Sprint(level, ".", n)]
	if !ok {
		return nil, errors.Mark(errors.Newf("no tile %d.%d", level, n), es.ErrNotFound)
	}
	return data, nil
}

func (m *memory) PutTile(_ context.Context, level int, n int64, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.written++
	m.tiles[fmt.Sprint(level, ".", n)] = bytes.Clone(data)
	return nil
}

func (m *memory) Newest(context.Context) ([]byte, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.signed) == 0 {
		return nil, 0, nil
	}
	return m.signed[len(m.signed)-1], uint64(len(m.signed)), nil
}

func (m *memory) Append(_ context.Context, after uint64, signed []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if after != uint64(len(m.signed)) {
		return errors.Mark(errors.New("another one was faster"), es.ErrConflict)
	}
	m.signed = append(m.signed, signed)
	return nil
}

func (m *memory) After(_ context.Context, place uint64) iter.Seq2[proof.Kept, error] {
	m.mu.Lock()
	all := slices.Clone(m.signed)
	m.mu.Unlock()
	return func(yield func(proof.Kept, error) bool) {
		for i, signed := range all {
			if at := uint64(i + 1); at > place && !yield(proof.Kept{Place: at, Signed: signed}, nil) {
				return
			}
		}
	}
}

// fixture is a chain in memory with a log over it.
type fixture struct {
	t      *testing.T
	chain  estest.Chain
	events es.Store
	kept   *memory
	keys   proof.KeyFile
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return &fixture{t: t, chain: estest.Chain{Label: "a"}, events: memstore.New(memstore.Config{}), kept: newMemory(), keys: newKeys(t, "test-chain")}
}

func newKeys(t *testing.T, name string) proof.KeyFile {
	t.Helper()
	keys, err := proof.OpenKeyFile(filepath.Join(t.TempDir(), "checkpoint.key"), name, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func public(t *testing.T, f proof.KeyFile) proof.Keys {
	t.Helper()
	var all proof.Keys
	for _, text := range f.Public {
		keys, err := proof.ParseKeys(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, keys...)
	}
	return all
}

func (f *fixture) config() proof.Config {
	return proof.Config{
		Events: f.events, Tiles: f.kept, Checkpoints: f.kept, Signers: f.keys.Signers, Public: f.keys.Public,
		Every: time.Hour, AfterEvents: 1 << 40, Now: estest.Epoch,
	}
}

// run runs a log until the test ends or the function it gives is called.
func (f *fixture) run(c proof.Config) (*proof.Log, func()) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.t.Context()))
	log := proof.New(c)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := log.Run(ctx); err != nil {
			f.t.Errorf("the log ended with %v", err)
		}
	}()
	stop := sync.OnceFunc(func() {
		cancel()
		<-ended
	})
	f.t.Cleanup(stop)
	return log, stop
}

func (f *fixture) append(n int) []es.Message { return f.chain.Append(f.t, f.events, n) }

// sign signs a checkpoint as the chain's own key would.
func sign(t *testing.T, c proof.Checkpoint, signers ...note.Signer) []byte {
	t.Helper()
	signed, err := c.Sign(signers...)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func wantKind(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("found %v, want an error that means: %v", err, kind)
	}
}

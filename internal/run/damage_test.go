package run

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/audit"
	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/estest"
	"catenary/internal/topology"
)

// damageOptions make the blocks of the event stream as small as the server has them, so that some hundred events fill several.
func damageOptions() topology.Options {
	return topology.Options{EventStoreBytes: 127_000, BucketBytes: 16 << 20}
}

// stoppedStore is the store of a chain that does not run, whose files may be damaged and are made whole again.
type stoppedStore struct {
	bus         *estest.Bus
	pristine    string
	first, last string // the first and the last block of the event stream
	tail        uint64
	yesterday   string // the stream's state file of some events earlier
}

// account is where the server keeps the streams of a server without accounts.
const account = "$G"

func (s *stoppedStore) stream(dir string) string {
	return filepath.Join(dir, "jetstream", account, "streams", topology.EventStream)
}

// filled runs a chain until its event stream has several blocks, and stops it.
func filled(t *testing.T) *stoppedStore {
	t.Helper()
	s := &stoppedStore{bus: estest.Server(t, false), pristine: filepath.Join(t.TempDir(), "pristine")}
	s.write(t, 70)
	s.yesterday = filepath.Join(t.TempDir(), "yesterday")
	copyTo(t, s.stream(s.bus.StoreDir()), s.yesterday)
	s.write(t, 70)
	copyTo(t, s.bus.StoreDir(), s.pristine)
	blocks, err := filepath.Glob(filepath.Join(s.stream(s.pristine), "msgs", "*.blk"))
	if err != nil || len(blocks) < 3 {
		t.Fatalf("the blocks are %v, error %v", blocks, err)
	}
	slices.SortFunc(blocks, func(a, b string) int { return numberOf(t, a) - numberOf(t, b) })
	s.first, s.last = filepath.Base(blocks[0]), filepath.Base(blocks[len(blocks)-1])
	return s
}

func numberOf(t *testing.T, block string) (n int) {
	t.Helper()
	if _, err := fmt.Sscanf(filepath.Base(block), "%d.blk", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func copyTo(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// write lets a chain record nodes, until its views show them all, and stops the server.
func (s *stoppedStore) write(t *testing.T, nodes int) {
	t.Helper()
	nc := s.bus.Connect(t)
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	parts := map[string]func(context.Context, func()) error{
		"writer": func(ctx context.Context, ready func()) error {
			return Writer(ctx, nc, WriterConfig{Streams: damageOptions(), SnapshotEvery: 40, Logger: slog.New(slog.DiscardHandler), Ready: ready})
		},
		"projector": func(ctx context.Context, ready func()) error {
			return Projector(ctx, nc, ProjectorConfig{Streams: damageOptions(), Logger: slog.New(slog.DiscardHandler), Ready: ready})
		},
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, len(parts))
	for _, name := range []string{"writer", "projector"} {
		ready := make(chan struct{})
		go func() { ended <- parts[name](running, func() { close(ready) }) }()
		select {
		case <-ready:
		case <-ctx.Done():
			t.Fatalf("the %s is not ready", name)
		}
	}
	client := commands.NewClient(dispatch.NewClient(nc))
	var last uint64
	for range nodes {
		answer, err := client.Send(ctx, commands.RegisterNode{Node: "n" + newID(), Labels: map[string]string{"text": strings.Repeat("x", 200)}}, dispatch.Options{ID: newID()})
		if err != nil {
			t.Fatal(err)
		}
		last = answer.Sequence
	}
	if _, err := audit.NewClient(nc, nil).Position(ctx, audit.PositionQuestion{Sequence: last, Wait: audit.Duration(waitLimit)}); err != nil {
		t.Fatal(err)
	}
	stop()
	for range parts {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	s.tail = last
	nc.Close()
	s.bus.Stop()
	if s.yesterday == "" {
		s.bus.Start(t)
	}
}

// on starts the server over a damaged copy of the store, and a writer, and gives why that ended; nil when it is ready for commands. Nothing may
// have been recorded by one that was not.
func (s *stoppedStore) on(t *testing.T, damage func(stream string) error) error {
	t.Helper()
	dir := s.bus.StoreDir()
	if err := os.RemoveAll(filepath.Join(dir, "jetstream")); err != nil {
		t.Fatal(err)
	}
	copyTo(t, s.pristine, dir)
	if err := damage(s.stream(dir)); err != nil {
		t.Fatal(err)
	}
	s.bus.Start(t)
	defer s.bus.Stop()
	nc := s.bus.Connect(t)
	defer nc.Close()
	before := streamState(t, nc)
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	said, verified, ended := &estest.Log{}, make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- Writer(ctx, nc, WriterConfig{Streams: damageOptions(), Logger: slog.New(slog.NewTextHandler(said, nil))})
	}()
	go func() {
		eventually(t, "that all is verified, or the writer's end", func() bool { return ctx.Err() != nil || strings.Contains(said.String(), "every event is verified") })
		close(verified)
	}()
	defer func() {
		cancel()
		<-verified
	}()
	select {
	case err := <-ended:
		if after := streamState(t, nc); before.LastSeq != 0 && !strings.Contains(said.String(), "commands are taken") && (after.Msgs != before.Msgs || after.LastSeq != before.LastSeq) {
			t.Errorf("something was appended: %+v, before %+v", after, before)
		}
		return err
	case <-verified:
		cancel()
		return <-ended
	case <-time.After(waitLimit):
		t.Fatal("the writer is neither ready nor has it ended")
		return nil
	}
}

// streamState is what the server believes the event stream to be; empty when there is none.
func streamState(t *testing.T, nc *nats.Conn) jetstream.StreamState {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), topology.EventStream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return jetstream.StreamState{}
	}
	if err != nil {
		t.Fatal(err)
	}
	return stream.CachedInfo().State
}

// TestDamage starts a chain over an event stream whose files were damaged while it was stopped, in every way. What was lost is found at the start,
// nothing is recorded over it, and the refusal names what was found and a way out. What the server makes again by itself is no damage.
func TestDamage(t *testing.T) {
	t.Parallel()
	s := filled(t)
	in := func(block string, how func([]byte) []byte) func(string) error {
		return func(stream string) error { return rewrite(filepath.Join(stream, "msgs", block), how) }
	}
	remove := func(name string) func(string) error {
		return func(stream string) error { return os.Remove(filepath.Join(stream, name)) }
	}
	both := func(damages ...func(string) error) func(string) error {
		return func(stream string) (err error) {
			for _, d := range damages {
				err = errors.CombineErrors(err, d(stream))
			}
			return err
		}
	}
	noIndex := remove("msgs/index.db")
	for _, c := range []struct {
		name     string
		damage   func(string) error
		harmless bool
	}{
		{name: "nothing", damage: func(string) error { return nil }, harmless: true},
		{name: "the index deleted", damage: noIndex, harmless: true},
		{name: "the index damaged", damage: in("index.db", flipped), harmless: true},
		{name: "the index of yesterday", damage: func(stream string) error {
			data, err := os.ReadFile(filepath.Join(s.yesterday, "msgs", "index.db"))
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(stream, "msgs", "index.db"), data, 0o600)
		}, harmless: true},
		{name: "a bit of the first block", damage: in(s.first, flipped)},
		{name: "a bit of the first block, and no index", damage: both(in(s.first, flipped), noIndex)},
		{name: "a bit of the last block", damage: in(s.last, flipped)},
		{name: "a bit of the last block, and no index", damage: both(in(s.last, flipped), noIndex)},
		{name: "zeros in the first block", damage: both(in(s.first, zeroed), noIndex)},
		{name: "the first block cut", damage: both(in(s.first, cut), noIndex)},
		{name: "the last block cut", damage: both(in(s.last, cut), noIndex)},
		{name: "the last block cut, with its index", damage: in(s.last, cut)},
		{name: "the first block deleted", damage: both(remove("msgs/"+s.first), noIndex)},
		{name: "the last block deleted", damage: both(remove("msgs/"+s.last), noIndex)},
		{name: "the last block deleted, with its index", damage: remove("msgs/" + s.last)},
		{name: "all blocks deleted", damage: func(stream string) error { return os.RemoveAll(filepath.Join(stream, "msgs")) }},
		// The server makes it anew of what it is asked for, over the blocks that are there.
		{name: "the stream's description deleted", damage: both(remove("meta.inf"), remove("meta.sum")), harmless: true},
		{name: "the stream's description damaged", damage: func(stream string) error { return rewrite(filepath.Join(stream, "meta.inf"), flipped) }, harmless: true},
		{name: "the stream deleted", damage: os.RemoveAll},
		{name: "yesterday's stream", damage: func(stream string) error {
			return errors.CombineErrors(os.RemoveAll(stream), os.CopyFS(stream, os.DirFS(s.yesterday)))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := s.on(t, c.damage)
			switch {
			case c.harmless && err != nil:
				t.Errorf("nothing was lost, and the writer says %v", err)
			case c.harmless:
			case !errors.IsAny(err, es.ErrBrokenChain, ErrContradicted, dispatch.ErrEventsLost):
				t.Errorf("the writer says %v", err)
			case !strings.Contains(hinted(err), "backup"):
				t.Errorf("the writer says %v, with the hints %q: want a way out", err, errors.GetAllHints(err))
			}
		})
	}
}

func hinted(err error) string { return err.Error() + strings.Join(errors.GetAllHints(err), "; ") }

func rewrite(path string, how func([]byte) []byte) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, how(bytes.Clone(data)), 0o600)
}

func flipped(data []byte) []byte {
	data[len(data)/2] ^= 1
	return data
}

func zeroed(data []byte) []byte {
	clear(data[len(data)/3 : len(data)/2])
	return data
}

func cut(data []byte) []byte { return data[:len(data)/2] }

// TestServerRestoredUnderAWriter brings the whole server back from yesterday while a writer runs: it notices when the server is there again, without
// a command, and so does every writer after it, though nothing in the server knows better.
func TestServerRestoredUnderAWriter(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	nc := bus.Connect(t)
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	client := commands.NewClient(dispatch.NewClient(nc))
	register := func(nodes int) {
		t.Helper()
		for range nodes {
			eventually(t, "a node is registered", func() bool {
				answer, err := client.Send(ctx, commands.RegisterNode{Node: "n" + newID()}, dispatch.Options{ID: newID()})
				return err == nil && answer.Status == es.StatusAccepted
			})
		}
	}
	write := func() chan error {
		ended, ready := make(chan error, 1), make(chan struct{})
		go func() {
			ended <- Writer(ctx, nc, WriterConfig{Streams: damageOptions(), Logger: slog.New(slog.DiscardHandler), Ready: func() { close(ready) }})
		}()
		select {
		case <-ready:
		case err := <-ended:
			ended <- err
		}
		return ended
	}
	ended := write()
	register(5)
	bus.Stop()
	yesterday := filepath.Join(t.TempDir(), "yesterday")
	copyTo(t, bus.StoreDir(), yesterday)
	bus.Start(t)
	register(5)
	bus.Stop()
	if err := os.RemoveAll(filepath.Join(bus.StoreDir(), "jetstream")); err != nil {
		t.Fatal(err)
	}
	copyTo(t, yesterday, bus.StoreDir())
	bus.Start(t)
	if err := <-ended; !errors.Is(err, dispatch.ErrEventsLost) {
		t.Errorf("the writer ended with %v", err)
	}
	if err := <-write(); !errors.IsAny(err, dispatch.ErrEventsLost, ErrContradicted) {
		t.Errorf("the next writer ended with %v", err)
	}
	if last := streamState(t, nc).LastSeq; last != 6 {
		t.Errorf("the stream ends at event %d, want the 6 of yesterday", last)
	}
}

package backup_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
	"golang.org/x/mod/sumdb/note"

	"catenary/audit/proof"
	"catenary/es"
	"catenary/es/estest"
	"catenary/es/natskv"
	"catenary/es/natsstore"
	"catenary/internal/backup"
	"catenary/internal/parts"
	"catenary/internal/topology"
)

func TestMain(m *testing.M) { estest.VerifyTestMain(m) }

// waitLimit bounds every wait. It is reached only when something is broken.
const waitLimit = time.Minute

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	t.Cleanup(cancel)
	return ctx
}

func options() topology.Options {
	return topology.Options{EventStoreBytes: 256 << 20, BucketBytes: 64 << 20}
}

// record is a server with a record in it.
type record struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	store  *natsstore.Store
	chain  estest.Chain
	ledger *backup.Ledger
}

// recorded makes a record of so many events, with checkpoints and actors.
func recorded(t *testing.T, events int) *record {
	t.Helper()
	ctx := bounded(t)
	r := &record{nc: estest.Server(t, false).Connect(t), chain: estest.Chain{Label: "a"}}
	var err error
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	r.js, err = jetstream.New(r.nc)
	must(err)
	must(natsstore.Ensure(ctx, r.nc, options()))
	r.store = open(t, r.nc)
	r.chain.Append(t, r.store, events)
	must(proof.EnsureCheckpoints(ctx, r.nc, options()))
	kept, err := proof.OpenCheckpoints(ctx, r.nc)
	must(err)
	for place := range uint64(3) {
		must(kept.Append(ctx, place, r.sign(t, uint64(events)/3*(place+1))))
	}
	must(natskv.Ensure(ctx, r.nc, topology.Actors(options())))
	kv, err := r.js.KeyValue(ctx, topology.BucketActors)
	must(err)
	for _, name := range []string{"ann", "bob", "ann"} {
		_, err := kv.Put(ctx, name+"-id", []byte(`{"name":"`+name+`"}`))
		must(err)
	}
	for _, c := range []jetstream.StreamConfig{topology.Inbox(options()), topology.Parked(options())} {
		_, err := r.js.CreateStream(ctx, c)
		must(err)
	}
	for _, subject := range []string{"inbox.node.n1", "inbox.node.n2", "parked.one", "inbox.node.n1"} {
		m := nats.NewMsg(subject)
		m.Header["Cat-Command"], m.Data = []string{"id of " + subject}, []byte{0, 1, 0xff}
		var guards []jetstream.PublishOpt
		if subject == "parked.one" {
			guards = []jetstream.PublishOpt{jetstream.WithExpectStream(topology.ParkedStream), jetstream.WithExpectLastSequencePerSubject(0)}
		}
		_, err := r.js.PublishMsg(ctx, m, guards...)
		must(err)
	}
	// One that is done leaves a hole.
	inbox, err := r.js.Stream(ctx, topology.InboxStream)
	must(err)
	must(inbox.DeleteMsg(ctx, 2))
	r.ledger, err = backup.NewLedger(r.nc, r.store)
	must(err)
	return r
}

func open(t *testing.T, nc *nats.Conn) *natsstore.Store {
	t.Helper()
	s, err := natsstore.Open(t.Context(), nc, natsstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// sign gives a checkpoint over the events up to a sequence.
func (r *record) sign(t *testing.T, size uint64) []byte {
	t.Helper()
	secret, _, err := note.GenerateKey(rand.Reader, "chain-a")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := note.NewSigner(secret)
	if err != nil {
		t.Fatal(err)
	}
	head, err := es.HeadAt(t.Context(), r.store, size)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := proof.Checkpoint{Origin: "chain-a", Size: size, Head: head.Hash, Time: time.Unix(1_800_000_000, 0).UTC()}.Sign(signer)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// client serves the record, and gives a client of the service.
func (r *record) client(t *testing.T) *backup.Client {
	t.Helper()
	service, err := parts.Serve(parts.Config{
		Conn: r.nc, Name: "backup-test", Version: "0.0.1", Endpoints: r.ledger.Endpoints(), Most: 4, Logger: slog.New(slog.DiscardHandler),
		Admit: func(micro.Request) error { return nil }, Code: func(error) string { return "500" },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := service.Stop(); err != nil {
			t.Error(err)
		}
	})
	return backup.NewClient(r.nc, nil)
}

func now() time.Time { return time.Unix(1_800_000_000, 0) }

func take(t *testing.T, source backup.Source) (dir string, m backup.Manifest) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "b")
	m, err := backup.Take(bounded(t), dir, backup.Config{Source: source, Program: "1.2.3", Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return dir, m
}

// all gives all messages of a stream, with their sequences.
func all(t *testing.T, s es.Store) (list []es.Message) {
	t.Helper()
	for m, err := range s.Read(bounded(t), 0) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, m)
	}
	return list
}

func restore(t *testing.T, nc *nats.Conn, dir string) error {
	t.Helper()
	m, err := backup.Read(dir)
	if err != nil {
		return err
	}
	if err := m.CheckFiles(t.Context(), dir, nil); err != nil {
		return err
	}
	return backup.Restore(bounded(t), m, dir, backup.Target{Conn: nc, Streams: options()})
}

// TestThereAndBack takes a backup over the bus while events are appended, restores it onto another server, and goes on there.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	const events = 5000
	r := recorded(t, events)
	source := &meddling{Source: r.client(t), before: func() { r.chain.Append(t, r.store, 10) }}
	dir, m := take(t, source)
	if m.Head.Sequence != events || m.Chain != "chain-a" || m.Program != "1.2.3" || !m.Taken.Equal(now()) || m.Recorded.IsZero() {
		t.Errorf("got %+v", m)
	}
	nc := estest.Server(t, false).Connect(t)
	if err := restore(t, nc, dir); err != nil {
		t.Fatal(err)
	}
	store := open(t, nc)
	if diff := cmp.Diff(all(t, r.store)[:events], all(t, store)); diff != "" {
		t.Errorf("the events differ (-taken +restored):\n%s", diff)
	}
	// The next writer's first event follows the last one.
	after := estest.Chain{Label: "b", Head: m.Head}
	after.Append(t, store, 1)
	if after.Head.Sequence != events+1 {
		t.Errorf("it goes on with event %d", after.Head.Sequence)
	}
	ledger, err := backup.NewLedger(nc, store)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(collect(t, r.ledger.Checkpoints(t.Context())), collect(t, ledger.Checkpoints(t.Context()))); diff != "" {
		t.Errorf("the checkpoints differ (-taken +restored):\n%s", diff)
	}
	if diff := cmp.Diff(collect(t, r.ledger.Actors(t.Context())), collect(t, ledger.Actors(t.Context()))); diff != "" {
		t.Errorf("the actors differ (-taken +restored):\n%s", diff)
	}
	if diff := cmp.Diff(collect(t, r.ledger.Waiting(t.Context())), collect(t, ledger.Waiting(t.Context()))); diff != "" || len(collect(t, ledger.Waiting(t.Context()))) != 3 {
		t.Errorf("the commands that wait differ (-taken +restored), or are not two beside one that is parked:\n%s", diff)
	}
	// A store with something in it is left as it is.
	if err := restore(t, nc, dir); !errors.Is(err, backup.ErrNotEmpty) {
		t.Errorf("restored onto what is there: %v", err)
	}
}

func collect[T any](t *testing.T, values iter.Seq2[T, error]) (list []T) {
	t.Helper()
	for v, err := range values {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, v)
	}
	return list
}

// meddling is a source during which something happens.
type meddling struct {
	backup.Source
	before func()
	// fail is asked for an error before each window, with the number of the window; with a chunk's number when it is to come in the
	// middle.
	fail    func(window int) error
	windows int
}

func (s *meddling) Events(ctx context.Context, after, last uint64, take func(backup.Chunk) error) error {
	if s.before != nil {
		s.before()
		s.before = nil
	}
	s.windows++
	if s.fail == nil {
		return s.Source.Events(ctx, after, last, take)
	}
	chunks := 0
	return s.Source.Events(ctx, after, last, func(c backup.Chunk) error {
		if chunks++; chunks == 2 {
			if err := s.fail(s.windows); err != nil {
				return err
			}
		}
		return take(c)
	})
}

// TestTakeOverACutConnection goes on where it was cut, and says so when nothing comes any more: then nothing is left.
func TestTakeOverACutConnection(t *testing.T) {
	t.Parallel()
	const events = 4000 // some chunks
	r := recorded(t, events)
	away := errors.Mark(errors.New("the connection to the bus was lost"), es.ErrUnavailable)
	s := &meddling{Source: r.ledger, fail: func(window int) error {
		if window <= 2 {
			return away
		}
		return nil
	}}
	if _, m := take(t, s); m.Head != r.chain.Head || s.windows < 3 {
		t.Errorf("got %+v in %d windows", m, s.windows)
	}
	for name, broken := range map[string]error{"the disk is full": errors.New("no space left on device"), "the person ends it": context.Canceled} {
		dir := filepath.Join(t.TempDir(), "b")
		s := &meddling{Source: r.ledger, fail: func(int) error { return broken }}
		if _, err := backup.Take(bounded(t), dir, backup.Config{Source: s, Now: now}); !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: something is left of it (%v)", name, err)
		}
	}
}

// TestNobodyThere is told at once: only what has begun is waited for.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	s := &absent{}
	dir := filepath.Join(t.TempDir(), "b")
	if _, err := backup.Take(bounded(t), dir, backup.Config{Source: s, Now: now}); !errors.Is(err, es.ErrUnavailable) || s.asked != 1 {
		t.Errorf("asked %d times: %v", s.asked, err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something is left of it (%v)", err)
	}
}

// absent is a source that does not answer.
type absent struct {
	backup.Source
	asked int
}

var errAbsent = errors.Mark(errors.New("nobody answers"), es.ErrUnavailable)

func (s *absent) Tail(context.Context) (uint64, error) {
	s.asked++
	return 0, errAbsent
}

func (s *absent) Checkpoints(context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		s.asked++
		yield("", errAbsent)
	}
}

// TestADamagedStreamIsNotBackedUp: each event is checked on its way.
func TestADamagedStreamIsNotBackedUp(t *testing.T) {
	t.Parallel()
	r := recorded(t, 30)
	if _, err := r.js.Publish(t.Context(), "evt.node.n1", []byte("not an event")); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Take(bounded(t), filepath.Join(t.TempDir(), "b"), backup.Config{Source: r.ledger, Now: now}); !errors.Is(err, es.ErrBrokenChain) {
		t.Errorf("got %v", err)
	}
}

// TestDirectories: each backup has its own, and one that was interrupted is none.
func TestDirectories(t *testing.T) {
	t.Parallel()
	r := recorded(t, 30)
	dir, m := take(t, r.ledger)
	again := func(dir string) error {
		_, err := backup.Take(bounded(t), dir, backup.Config{Source: r.ledger, Now: now})
		return err
	}
	if err := again(dir); !errors.Is(err, backup.ErrTaken) || !strings.Contains(hints(err), "already") {
		t.Errorf("a second backup into the same directory: %v, %s", err, hints(err))
	}
	if read, err := backup.Read(dir); err != nil || cmp.Diff(m, read) != "" {
		t.Errorf("the first one is %+v, error %v", read, err)
	}
	// As a kill leaves it: all files, and no manifest yet.
	cut := filepath.Join(t.TempDir(), "cut")
	if err := os.CopyFS(cut, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(cut, "manifest.json"), filepath.Join(cut, "UNFINISHED")); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Read(cut); !errors.Is(err, backup.ErrNoBackup) || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("an interrupted backup: %v", err)
	}
	if err := again(cut); !errors.Is(err, backup.ErrTaken) || !strings.Contains(hints(err), "has not ended") {
		t.Errorf("into an interrupted backup: %v, %s", err, hints(err))
	}
	if _, err := backup.Read(t.TempDir()); !errors.Is(err, backup.ErrNoBackup) {
		t.Errorf("an empty directory: %v", err)
	}
	if err := again(t.TempDir()); err != nil {
		t.Errorf("into an empty directory: %v", err)
	}
}

func hints(err error) string { return strings.Join(errors.GetAllHints(err), "; ") }

// TestDamagedBackups: whatever is not as it was taken is refused before anything is written.
func TestDamagedBackups(t *testing.T) {
	t.Parallel()
	r := recorded(t, 300)
	dir, m := take(t, r.ledger)
	events := m.Files[slices.IndexFunc(m.Files, func(f backup.File) bool { return f.Kind == backup.Events })].Name
	change := func(name string, how func([]byte) []byte) func(string) error {
		return func(dir string) error {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(dir, name), how(data), 0o600)
		}
	}
	flip := func(data []byte) []byte {
		data[len(data)/2] ^= 1
		return data
	}
	nc := estest.Server(t, false).Connect(t)
	for name, damage := range map[string]func(dir string) error{
		"a bit of the events":      change(events, flip),
		"a bit of the checkpoints": change("checkpoints.ndjson.zst", flip),
		"a bit of the actors":      change("actors.ndjson.zst", flip),
		"a bit of the commands":    change("commands.ndjson.zst", flip),
		"events cut short":         change(events, func(data []byte) []byte { return data[:len(data)-1] }),
		"events with more":         change(events, func(data []byte) []byte { return append(data, data...) }),
		"a pipe for the events": func(dir string) error { // to open it would wait for ever
			return errors.CombineErrors(os.Remove(filepath.Join(dir, events)), syscall.Mkfifo(filepath.Join(dir, events), 0o600))
		},
		"no events":            func(dir string) error { return os.Remove(filepath.Join(dir, events)) },
		"a manifest cut short": change("manifest.json", func(data []byte) []byte { return data[:len(data)/2] }),
		"a manifest that says another head": change("manifest.json", func(data []byte) []byte {
			return bytes.Replace(data, []byte(`"sequence": 300`), []byte(`"sequence": 299`), 1)
		}),
		"a manifest with another digest of the events": change("manifest.json", func(data []byte) []byte {
			return bytes.Replace(data, []byte(`"sha256": "`), []byte(`"sha256": "0`), 1)
		}),
	} {
		copied := filepath.Join(t.TempDir(), "b")
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		if err := damage(copied); err != nil {
			t.Fatal(err)
		}
		if err := restore(t, nc, copied); !errors.Is(err, backup.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Stream(t.Context(), topology.EventStream); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("something was written: %v", err)
	}
	if err := restore(t, nc, dir); err != nil {
		t.Errorf("the undamaged one: %v", err)
	}
}

// TestARestoreThatWasInterrupted: nobody takes what is there for all of it, and the same backup goes on; another one does not.
func TestARestoreThatWasInterrupted(t *testing.T) {
	t.Parallel()
	const events = 3000
	r := recorded(t, events)
	dir, m := take(t, r.ledger)
	r.chain.Append(t, r.store, 1)
	otherDir, _ := take(t, r.ledger)
	nc := estest.Server(t, false).Connect(t)
	ctx, cancel := context.WithCancel(bounded(t))
	err := backup.Restore(ctx, m, dir, backup.Target{Conn: nc, Streams: options(), Progress: func(p backup.Progress) {
		if p.Events >= 1000 {
			cancel()
		}
	}})
	if err == nil {
		t.Fatal("it was not interrupted")
	}
	if _, err := natsstore.Open(t.Context(), nc, natsstore.Config{}); err == nil || !strings.Contains(err.Error(), "restore") {
		t.Errorf("a writer may begin on it: %v", err)
	}
	var unsafe *natsstore.ConfigError
	if err := natsstore.Ensure(bounded(t), nc, options()); !errors.As(err, &unsafe) {
		t.Errorf("a writer may take it over: %v", err)
	}
	if err := restore(t, nc, otherDir); !errors.Is(err, backup.ErrNotEmpty) {
		t.Errorf("another backup goes on: %v", err)
	}
	// Nor does it end before the artifacts are there, which come last.
	cut := errors.New("the artifacts were cut")
	if err := backup.Restore(bounded(t), m, dir, backup.Target{Conn: nc, Streams: options(), Artifacts: func(context.Context) error { return cut }}); !errors.Is(err, cut) {
		t.Errorf("it ended with %v", err)
	}
	if _, err := natsstore.Open(t.Context(), nc, natsstore.Config{}); err == nil {
		t.Error("a writer may begin before the artifacts are there")
	}
	if err := restore(t, nc, dir); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all(t, r.store)[:events], all(t, open(t, nc))); diff != "" {
		t.Errorf("the events differ (-taken +restored):\n%s", diff)
	}
	ledger, err := backup.NewLedger(nc, open(t, nc))
	if err != nil {
		t.Fatal(err)
	}
	if waiting := collect(t, ledger.Waiting(bounded(t))); len(waiting) != 3 {
		t.Errorf("what waits was restored twice, or not at all: %+v", waiting)
	}
}

// TestALeftover: nothing of another chain, or of what is lost of this one, is left beside what is restored: marks say how far views have read,
// and commands that wait would be done.
func TestALeftover(t *testing.T) {
	t.Parallel()
	dir, _ := take(t, recorded(t, 30).ledger)
	marks, inbox := topology.Marks(options()), topology.Inbox(options())
	for subject, left := range map[string]jetstream.StreamConfig{topology.BucketSubject(topology.BucketMarks, "nodes"): marks, topology.InboxStoredPrefix + ".node.n1": inbox} {
		nc := estest.Server(t, false).Connect(t)
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := js.CreateStream(t.Context(), left); err != nil {
			t.Fatal(err)
		}
		if _, err := js.Publish(t.Context(), subject, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := restore(t, nc, dir); !errors.Is(err, backup.ErrNotEmpty) || !strings.Contains(err.Error(), left.Name) {
			t.Errorf("beside stream %s: %v", left.Name, err)
		}
	}
}

// TestAStoreTooSmall is told before anything is written.
func TestAStoreTooSmall(t *testing.T) {
	t.Parallel()
	r := recorded(t, 300)
	dir, m := take(t, r.ledger)
	nc := estest.Server(t, false).Connect(t)
	err := backup.Restore(bounded(t), m, dir, backup.Target{Conn: nc, Streams: topology.Options{EventStoreBytes: m.EventBytes - 1}})
	if !errors.Is(err, es.ErrFull) {
		t.Errorf("got %v", err)
	}
}

// TestArtifacts keeps what is given beside the record, also when it was cut.
func TestArtifacts(t *testing.T) {
	t.Parallel()
	opened := 0
	r := recorded(t, 3)
	dir := filepath.Join(t.TempDir(), "b")
	m, err := backup.Take(bounded(t), dir, backup.Config{Source: r.ledger, Now: now, Artifacts: func(_ context.Context, add backup.AddArtifact) error {
		return add("sha256:aa", "web.tar", func(context.Context) (io.ReadCloser, error) {
			if opened++; opened == 1 {
				return io.NopCloser(io.MultiReader(strings.NewReader("con"), iotest.ErrReader(errors.Mark(errors.New("cut"), es.ErrUnavailable)))), nil
			}
			return io.NopCloser(strings.NewReader("content")), nil
		})
	}})
	if err != nil {
		t.Fatal(err)
	}
	files := m.ArtifactFiles()
	if len(files) != 1 || files[0].Artifact != "sha256:aa" || files[0].Title != "web.tar" || files[0].Bytes != 7 || !m.Artifacts {
		t.Fatalf("got %+v", m)
	}
	if text, err := os.ReadFile(filepath.Join(dir, files[0].Name)); err != nil || string(text) != "content" {
		t.Errorf("it holds %q, error %v", text, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil || !json.Valid(text) {
		t.Errorf("the manifest is %s, error %v", text, err)
	}
}

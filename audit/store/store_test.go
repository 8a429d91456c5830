package store

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/audit"
	"catenary/chain"
	"catenary/es"
	"catenary/es/memstore"
	"catenary/events"
)

// assign records that a node was told a version, and gives the sequence.
func (r *recorder) assign(node, module, version string) uint64 {
	r.t.Helper()
	e := r.add(es.Event{Ref: ref(node, module)}, events.AssignmentAssigned{Told: told(node, module, version)})
	r.flush()
	return e.Sequence
}

// stands gives the version that stands; empty for none.
func stands(t *testing.T, s *Store, node, module string) string {
	t.Helper()
	found, err := s.AsOf(t.Context(), audit.AsOfQuestion{Node: node, Module: module})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Assignments) == 0 {
		return ""
	}
	return found.Assignments[0].Package.Version
}

func TestFollows(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	s := running(t, Config{Events: r.stream})
	caughtUp(t, s, r.stream)
	for i := range 5 {
		r.assign("n1", "web", fmt.Sprint("v", i))
		caughtUp(t, s, r.stream)
		if got := stands(t, s, "n1", "web"); got != fmt.Sprint("v", i) {
			t.Errorf("after v%d, %q stands", i, got)
		}
	}
	if state := s.Status(); state.Event != 5 || state.Building || state.Stopped != "" || state.Trouble != "" {
		t.Errorf("state is %+v", state)
	}
}

// TestReadersSeeOneState asks from several sides while the file is written: every answer is of one state.
func TestReadersSeeOneState(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	s := running(t, Config{Events: r.stream, Linger: time.Millisecond})
	// Each append tells two nodes the same: no state shows them differ.
	both := func(version string) {
		for _, node := range []string{"n1", "n2"} {
			r.add(es.Event{Ref: ref(node, "web")}, events.AssignmentAssigned{Told: told(node, "web", version)})
		}
		r.flush()
	}
	both("v0")
	caughtUp(t, s, r.stream)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				d, err := s.Diff(t.Context(), audit.DiffQuestion{From: audit.Side{Node: "n1"}, To: audit.Side{Node: "n2"}})
				if err != nil || d.Through%2 == 0 && d.Differs() {
					t.Errorf("through %d: %+v (%v)", d.Through, d.Differences, err)
					return
				}
			}
		})
	}
	for i := range 200 {
		both(fmt.Sprint("v", i))
	}
	caughtUp(t, s, r.stream)
	close(done)
	readers.Wait()
}

func TestGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	c := Config{Events: r.stream, Path: filepath.Join(t.TempDir(), "deep", "audit.db")}
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o700); err != nil {
		t.Fatal(err)
	}
	r.assign("n1", "web", "v1")
	first, err := New(withDefaults(t, c))
	if err != nil {
		t.Fatal(err)
	}
	stop := start(t, first)
	caughtUp(t, first, r.stream)
	stop()
	before, err := os.Stat(c.Path)
	if err != nil {
		t.Fatal(err)
	}
	if mode := before.Mode().Perm(); mode != 0o600 {
		t.Errorf("the file has mode %v: others could read it", mode)
	}
	r.assign("n1", "web", "v2")
	second := running(t, c)
	caughtUp(t, second, r.stream)
	after, err := os.Stat(c.Path)
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the file was made anew (%v)", err)
	}
	if got := stands(t, second, "n1", "web"); got != "v2" {
		t.Errorf("%q stands, want v2", got)
	}
	if _, err := first.AsOf(t.Context(), audit.AsOfQuestion{}); !errors.Is(err, audit.ErrStoreBehind) {
		t.Errorf("a store that has ended answers with %v", err)
	}
}

// damageFile overwrites what SQLite finds everything by.
func damageFile(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xee}, 9000), 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// cutOff leaves a file as a run does that was killed within a transaction, outside of WAL mode: with a journal by which it is to be undone, which
// only who may write can do. A file is not in that mode for a moment after it was built.
func cutOff(t *testing.T, path string) {
	t.Helper()
	db, err := openFile(source(path, append(pragmas("journal_mode(DELETE)", "cache_size(1)"), "mode=rw")...), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "CREATE TABLE half AS SELECT randomblob(100000) FROM (VALUES (1), (2), (3), (4), (5), (6), (7), (8))"); err != nil {
		t.Fatal(err)
	}
	cut := map[string][]byte{}
	for _, suffix := range []string{"", "-journal"} {
		if cut[suffix], err = os.ReadFile(path + suffix); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.CombineErrors(tx.Rollback(), db.Close()); err != nil {
		t.Fatal(err)
	}
	for suffix, text := range cut {
		if err := os.WriteFile(path+suffix, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBuildsAnew starts over files that can't be gone on with: each is built anew from the stream.
func TestBuildsAnew(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, path string){
		"damaged":             damageFile,
		"of another version":  altered("UPDATE meta SET value = 'other' WHERE name = ?", metaSchema),
		"without a table":     altered("DROP TABLE record"),
		"at a false position": altered("UPDATE meta SET value = 'nowhere' WHERE name = ?", metaPosition),
		"with a false hash":   altered("UPDATE meta SET value = 'none' WHERE name = ?", metaHash),
		"empty": func(t *testing.T, path string) {
			if err := removeFile(path); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"with a transaction that was cut off": cutOff,
		"gone": func(t *testing.T, path string) {
			if err := removeFile(path); err != nil {
				t.Fatal(err)
			}
		},
		"with a half built one beside it": func(t *testing.T, path string) {
			if err := removeFile(path); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path+buildSuffix, []byte("half"), 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRecorder(t)
			c := Config{Events: r.stream, Path: filepath.Join(t.TempDir(), "audit.db")}
			r.assign("n1", "web", "v1")
			first, err := New(withDefaults(t, c))
			if err != nil {
				t.Fatal(err)
			}
			stop := start(t, first)
			caughtUp(t, first, r.stream)
			stop()
			spoil(t, c.Path)
			r.assign("n1", "web", "v2")
			s := running(t, c)
			caughtUp(t, s, r.stream)
			if got := stands(t, s, "n1", "web"); got != "v2" {
				t.Errorf("%q stands, want v2", got)
			}
			if _, err := os.Stat(c.Path + buildSuffix); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the file that was built is still beside it: %v", err)
			}
		})
	}
}

// TestDamagedWhileItRuns finds the damage by a question, and builds the file anew.
func TestDamagedWhileItRuns(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	r.assign("n1", "web", "v1")
	path := filepath.Join(t.TempDir(), "audit.db")
	s := running(t, Config{Events: r.stream, Path: path})
	caughtUp(t, s, r.stream)
	// What is erased leaves no journal, so that all is read from the file.
	if err := s.SetActor(t.Context(), "a-9", chain.Actor{}); err != nil {
		t.Fatal(err)
	}
	damageFile(t, path)
	ctx, cancel := contextOf(t)
	defer cancel()
	for found := false; ; {
		_, err := s.Log(ctx, audit.LogQuestion{})
		switch {
		case err == nil && found:
			return
		case err == nil:
			t.Fatal("a question is answered from a file that is damaged")
		case !errors.Is(err, audit.ErrStoreBehind):
			t.Fatalf("it gave %v", err)
		}
		found = true
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("it stays damaged: %v", err)
		}
	}
}

// TestWaitsForItsPlace can't look at what is in the place of its file at first: it tries again, and goes on when it can.
func TestWaitsForItsPlace(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	r.assign("n1", "web", "v1")
	path := filepath.Join(t.TempDir(), "audit.db")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	s := running(t, Config{Events: r.stream, Path: path})
	state := untilState(t, s, "with a folder in its place", func(state audit.StoreState) bool { return state.Trouble+state.Stopped != "" })
	if state.Stopped != "" {
		t.Fatalf("it has stopped: %s", state.Stopped)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	caughtUp(t, s, r.stream)
	if got := stands(t, s, "n1", "web"); got != "v1" {
		t.Errorf("%q stands, want v1", got)
	}
}

// TestStops meets what only a person can deal with: the store stops, says why, and goes on answering where it has a file. A
// shorter and another stream are case A11.
func TestStops(t *testing.T) {
	t.Parallel()
	type part struct {
		r    *recorder
		path string
	}
	fresh := func(t *testing.T, versions ...string) *memstore.Store {
		other := newRecorder(t)
		for _, v := range versions {
			other.assign("n1", "web", v)
		}
		return other.stream
	}
	for name, c := range map[string]struct {
		meet   func(t *testing.T, p part) es.Store
		says   []string
		stands string
	}{
		"a shorter stream": {
			meet: func(t *testing.T, _ part) es.Store { return fresh(t, "v1") },
			says: []string{"event 2", "ends at event 1", "restore the right stream"},
		},
		"another stream": {
			meet: func(t *testing.T, _ part) es.Store { return fresh(t, "v1", "other") },
			says: []string{"another stream", "event 2", "restore the right stream"},
		},
		"a file of somebody else": {
			meet: func(t *testing.T, p part) es.Store {
				if err := removeFile(p.path); err != nil {
					t.Fatal(err)
				}
				db, err := openBuild(p.path)
				if err == nil {
					_, err = db.ExecContext(t.Context(), "CREATE TABLE mine (a)")
				}
				if err == nil {
					err = db.Close()
				}
				if err != nil {
					t.Fatal(err)
				}
				return p.r.stream
			},
			says: []string{"no audit store", "give another path"},
		},
		"what is no event": {
			meet: func(_ *testing.T, p part) es.Store {
				p.r.addNone(ref("n1", "web"))
				p.r.flush()
				return p.r.stream
			},
			says: []string{"at event 3", "message 3"}, stands: "v2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := part{r: newRecorder(t), path: filepath.Join(t.TempDir(), "audit.db")}
			p.r.assign("n1", "web", "v1")
			p.r.assign("n1", "web", "v2")
			first, err := New(withDefaults(t, Config{Events: p.r.stream, Path: p.path}))
			if err != nil {
				t.Fatal(err)
			}
			stop := start(t, first)
			caughtUp(t, first, p.r.stream)
			stop()
			s := running(t, Config{Events: c.meet(t, p), Path: p.path})
			ctx, cancel := contextOf(t)
			defer cancel()
			err = s.Wait(ctx, 99)
			if !errors.Is(err, audit.ErrStoreBehind) {
				t.Fatalf("waiting gave %v", err)
			}
			for _, say := range c.says {
				if !strings.Contains(err.Error(), say) {
					t.Errorf("it says %v, want it to say %q", err, say)
				}
			}
			if c.stands == "" {
				if _, err := s.AsOf(ctx, audit.AsOfQuestion{}); !errors.Is(err, audit.ErrStoreStopped) {
					t.Errorf("asked, it gives %v", err)
				}
				return
			}
			if got := stands(t, s, "n1", "web"); got != c.stands {
				t.Errorf("%q stands, want %q", got, c.stands)
			}
			// A person can be erased all the same.
			if err := s.SetActor(ctx, "p1", chain.Actor{}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAcceptedLoss builds the file anew when somebody has accepted that events it has seen are lost, and keeps the old one.
func TestAcceptedLoss(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.db")
	before := newRecorder(t)
	for range 3 {
		before.assign("n1", "web", "v1")
	}
	first, err := New(withDefaults(t, Config{Events: before.stream, Path: path}))
	if err != nil {
		t.Fatal(err)
	}
	stop := start(t, first)
	caughtUp(t, first, before.stream)
	if err := first.SetActor(t.Context(), "a-9", chain.Actor{Name: "Zebulon Quagmire"}); err != nil {
		t.Fatal(err)
	}
	stop()
	after := newRecorder(t)
	after.assign("n1", "web", "v0")
	s := running(t, Config{Events: after.stream, Path: path})
	ctx, cancel := contextOf(t)
	defer cancel()
	if err := s.Wait(ctx, 99); !errors.Is(err, audit.ErrStoreBehind) {
		t.Fatalf("waiting gave %v", err)
	}
	after.add(es.Event{Ref: es.Ref{Aggregate: events.AggregateWriter, Key: events.WriterKey}}, events.WriterLossAccepted{Found: 1, Reason: "the disk is gone"})
	after.flush()
	for state, moved, _ := s.track.look(); state.Stopped != ""; state, moved, _ = s.track.look() {
		select {
		case <-moved:
		case <-ctx.Done():
			t.Fatalf("it goes on standing: %+v", state)
		}
	}
	if err := s.Wait(ctx, 2); err != nil {
		t.Fatal(err)
	}
	if got := stands(t, s, "n1", "web"); got != "v0" {
		t.Errorf("%q stands, want what the stream tells", got)
	}
	// Nothing follows the directory there any more, so whoever is forgotten later must not stand in it.
	if content, err := os.ReadFile(path + ".before-loss-3"); err != nil || bytes.Contains(content, []byte("Zebulon")) {
		t.Errorf("the file of before (%v) holds a name", err)
	}
}

// TestUnknownAggregate keeps what no kind reads, shown raw.
func TestUnknownAggregate(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	r.addStored(es.Event{Ref: es.Ref{Aggregate: "parade", Key: "x"}, Type: "parade.held.v1", Body: []byte{0x80}})
	r.assign("n1", "web", "v1")
	s := running(t, Config{Events: r.stream})
	caughtUp(t, s, r.stream)
	page, err := s.Log(t.Context(), audit.LogQuestion{Aggregate: "parade"})
	if err != nil || len(page.Items) != 1 || page.Items[0].Problem == "" || !bytes.Equal(page.Items[0].Body, []byte{0x80}) {
		t.Errorf("log gave %+v (%v), want the event as it is stored", page, err)
	}
}

// TestActors keeps names in one table, and leaves nothing of an erased one in the file.
func TestActors(t *testing.T) {
	t.Parallel()
	const name = "Annabella Nobody-Else"
	r := newRecorder(t)
	r.add(es.Event{Ref: ref("n1", "web"), Command: es.Cause{Actor: "a1", OnBehalfOf: "a2"}}, events.AssignmentAssigned{Told: told("n1", "web", "v1")})
	r.flush()
	path := filepath.Join(t.TempDir(), "audit.db")
	fed := make(chan struct{})
	c := withDefaults(t, Config{Events: r.stream, Path: path, Feeds: []Feed{func(ctx context.Context, s *Store) error {
		defer close(fed)
		if err := s.SetActor(ctx, "a1", chain.Actor{Name: name, Account: "OPS"}); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}}})
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	stop := start(t, s)
	caughtUp(t, s, r.stream)
	who := func() audit.Person {
		t.Helper()
		b, err := s.Blame(t.Context(), audit.BlameQuestion{Node: "n1", Module: "web"})
		if err != nil || b.Change.OnBehalfOf == nil || b.Change.OnBehalfOf.ID != "a2" {
			t.Fatalf("%+v (%v)", b, err)
		}
		return b.Change.Actor
	}
	ctx, cancel := contextOf(t)
	defer cancel()
	for who().Name == "" { // the feed runs beside
		if ctx.Err() != nil {
			t.Fatal("the feed has not brought the name")
		}
	}
	if p := who(); p.Name != name || p.ID != "a1" || p.String() != name {
		t.Errorf("it was %+v", p)
	}
	if err := s.SetActor(ctx, "a1", chain.Actor{}); err != nil {
		t.Fatal(err)
	}
	if p := who(); p.Name != "" || p.String() != "a1" {
		t.Errorf("once erased it was %+v", p)
	}
	stop()
	<-fed
	for _, suffix := range []string{"", "-wal", "-shm"} {
		text, err := os.ReadFile(path + suffix)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("Nobody-Else")) {
			t.Errorf("the name is still in %s", filepath.Base(path+suffix))
		}
	}
}

// altered changes a file by a statement, as no program of ours does.
func altered(statement string, arguments ...any) func(t *testing.T, path string) {
	return func(t *testing.T, path string) {
		t.Helper()
		db, err := openLive(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), statement, arguments...); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

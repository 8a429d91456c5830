package run

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/agent/artifacts"
	"catenary/agent/depot"
	"catenary/agent/driver/dir"
	"catenary/agent/logs"
	"catenary/chain"
	"catenary/commands"
	"catenary/events"
	"catenary/internal/natsconn"
	"catenary/internal/topology"
)

// release packs a file that no compression makes smaller.
func release(t *testing.T, bytesOfIt int) (archive []byte, digest string) {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	files := tar.NewWriter(zipped)
	content := make([]byte, bytesOfIt)
	_, _ = rand.Read(content)
	err := files.WriteHeader(&tar.Header{Name: "app.bin", Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg})
	if err == nil {
		_, err = files.Write(content)
	}
	if err := errors.CombineErrors(err, errors.CombineErrors(files.Close(), zipped.Close())); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes(), fmt.Sprintf("sha256:%x", sha256.Sum256(packed.Bytes()))
}

// TestAgentsGetWhatIsPublished: a file that a person publishes comes to two nodes at once, whole, by agents that may get artifacts and hand
// in their own logs, and nothing else.
func TestAgentsGetWhatIsPublished(t *testing.T) {
	t.Parallel()
	c := startOn(t, filepath.Join(t.TempDir(), "store"), "127.0.0.1:0", "n1", "n2")
	person, err := nats.Connect(c.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(person.Close)
	archive, digest := release(t, 9<<20)
	people := depot.NewClient(person, nil)
	if _, err := people.Publish(t.Context(), bytes.NewReader(archive), digest, int64(len(archive)), "app.tar.gz", nil); err != nil {
		t.Fatal(err)
	}
	named, other := events.Reference{Package: &events.Package{Name: "app", Version: "1.20"}}, artifacts.Algorithm+strings.Repeat("0", 64)
	c.send(t, commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: "app"}}, commands.RegisterNode{Node: "n1"}, commands.RegisterNode{Node: "n2"},
		commands.RecordPublication{Reference: events.Reference{Artifact: digest}, Module: "app"}, commands.RecordPublication{Reference: named, Module: "app"},
		commands.AttestPublication{Reference: named, Attestation: events.Attestation{Kind: chain.AttestedArtifact, Reference: digest}},
		// A name means what it meant first.
		commands.AttestPublication{Reference: named, Attestation: events.Attestation{Kind: chain.AttestedArtifact, Reference: other}})
	roots := map[string]string{}
	for node, told := range map[string]events.Reference{"n1": {Artifact: digest}, "n2": named} {
		s := newSimulated(t, c, node)
		roots[node] = t.TempDir()
		startWithDir(t, s, roots[node])
		c.send(t, commands.Assign{Node: node, Module: "app", Reference: told})
	}
	for node, root := range roots {
		eventually(t, node+" has the release", func() bool {
			_, err := os.Stat(filepath.Join(root, "app", "current", "app.bin"))
			return err == nil
		})
	}
	c.send(t, commands.Assign{Node: "n1", Module: "app", Reference: events.Reference{Package: &events.Package{Name: "app", Version: "0"}}})
	eventually(t, "what is no artifact fails, and says so", func() bool {
		n, err := c.nodes(t).Node(t.Context(), "n1")
		return err == nil && n.Status != nil && len(n.Status.Failed) == 1 && strings.Contains(n.Status.Failed[0].Reason, "no artifact was published as app@0")
	})
	facts := func() (why string) {
		for v, err := range people.Judge(t.Context(), digest, 1) {
			if err != nil || !v.Keep {
				t.Fatalf("the verdict is %+v, %v", v, err)
			}
			why = v.Why
		}
		return why
	}
	if why := facts(); !strings.HasPrefix(why, "node n") {
		t.Errorf("it is kept, since %s", why)
	}
}

// startWithDir starts an agent that unpacks artifacts.
func startWithDir(t *testing.T, s *simulated, root string) {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	source, err := newAgentArtifacts(AgentSettings{State: s.state, CacheBytes: artifacts.DefaultCacheBytes}, log)
	if err != nil {
		t.Fatal(err)
	}
	conn := s.connect()
	source.over(conn)
	files, err := dir.New(dir.Config{Name: "files", Root: root}, source, time.Now, "1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	s.startWith(conn, files)
}

// TestAgentsReachOfBulk: the agent of a node hands in its own logs; another's, and all else about logs and artifacts, is denied.
func TestAgentsReachOfBulk(t *testing.T) {
	t.Parallel()
	c := startOn(t, filepath.Join(t.TempDir(), "store"), "127.0.0.1:0", "n1", "n2")
	person, err := nats.Connect(c.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(person.Close)
	c.send(t, commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: "app"}}, commands.RegisterNode{Node: "n1"})
	s := newSimulated(t, c, "n1")
	s.start()
	c.send(t, commands.Assign{Node: "n1", Module: "app", Reference: events.Reference{Package: &events.Package{Name: "app", Version: "1"}}})
	reader := logs.NewClient(person, nil)
	var said string
	eventually(t, "what was said is kept", func() bool {
		said = ""
		for p, err := range reader.Read(t.Context(), logs.Question{Node: "n1", Module: "app"}) {
			if err != nil {
				t.Fatal(err)
			}
			if said += p.Text; p.Last && p.Deed == "apply" {
				return true
			}
		}
		return false
	})
	if !strings.Contains(said, "app") {
		t.Errorf("it says %q", said)
	}

	conn := s.connect()
	defer conn.Close()
	own, artifactsOf := logs.NewClient(conn.Conn, conn.WithDenial), depot.NewClient(conn.Conn, conn.WithDenial)
	if err := own.Put(t.Context(), logs.Part{Span: logs.Span{Node: "n1", Module: "app"}, ID: "x", Number: 1}); err != nil {
		t.Errorf("its own log: %v", err)
	}
	if _, err := artifactsOf.Open(t.Context(), "sha256:"+strings.Repeat("0", 64), 0); !errors.Is(err, artifacts.ErrNotFound) {
		t.Errorf("getting an artifact: %v", err)
	}
	for what, try := range map[string]func(context.Context) error{
		"another's log": func(ctx context.Context) error {
			return own.Put(ctx, logs.Part{Span: logs.Span{Node: "n2", Module: "app"}, ID: "x", Number: 1})
		},
		"reading logs": func(ctx context.Context) error {
			for _, err := range own.Read(ctx, logs.Question{Node: "n1"}) {
				return err
			}
			return nil
		},
		"publishing": func(ctx context.Context) error {
			_, err := artifactsOf.Publish(ctx, strings.NewReader("x"), "sha256:"+strings.Repeat("0", 64), 1, "x", nil)
			return err
		},
		"listing": func(ctx context.Context) error {
			for _, err := range artifactsOf.List(ctx) {
				return err
			}
			return nil
		},
		"removing": func(ctx context.Context) error {
			for _, err := range artifactsOf.Prune(ctx, 0) {
				return err
			}
			return nil
		},
		"writing the store": func(ctx context.Context) error {
			_, err := natsconn.Request(ctx, conn, &nats.Msg{Subject: topology.LogsStoredSubject("n1", "app")})
			return err
		},
	} {
		if err := try(t.Context()); !errors.Is(err, natsconn.ErrDenied) {
			t.Errorf("%s: %v, want it denied", what, err)
		}
	}
}

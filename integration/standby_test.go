package integration

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/estest"
	"catenary/es/natsstore"
)

const (
	// takeoverLimit is when a takeover counts as failed. It takes a second, as docs/performance.md says; a machine that is busy
	// with other things may need longer.
	takeoverLimit = 20 * time.Second
	// sendTry is how long a sender waits before it sends the same command again.
	sendTry = 200 * time.Millisecond
)

// startWriter starts the binary writer against a server.
func startWriter(t *testing.T, url string) *running { return startPart(t, "writer", url) }

// startPart starts one of the binaries that run a part of the chain against a server.
func startPart(t *testing.T, name, url string, more ...string) *running {
	t.Helper()
	r := &running{talk: &estest.Log{}, ended: make(chan struct{})}
	r.cmd = exec.Command(filepath.Join(binaries, name), append([]string{"--durability", "interval", "--event-store-bytes", "100000000", "--bucket-bytes", "10000000"}, more...)...)
	r.cmd.Env = quietEnv(binaries, url)
	r.cmd.Stderr = r.talk
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		_ = r.cmd.Wait() // the exit code is looked at by who cares
	}()
	t.Cleanup(r.kill)
	return r
}

// awaitWord waits until one of some processes has said something, and gives its place.
func awaitWord(t *testing.T, processes []*running, word string) int {
	t.Helper()
	tick, limit := time.NewTicker(5*time.Millisecond), time.After(waitLimit)
	defer tick.Stop()
	for {
		if i := slices.IndexFunc(processes, func(r *running) bool { return strings.Contains(r.talk.String(), word) }); i >= 0 {
			return i
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("no process has said %q", word)
		}
	}
}

// TestWriterKilled kills the active one of three writers again and again, while senders go on. Another takes over in less than
// two seconds, and every command is done once.
func TestWriterKilled(t *testing.T) {
	t.Parallel()
	bus := estest.Server(t, false)
	nc := bus.Connect(t)
	var writers []*running
	for range 3 {
		writers = append(writers, startWriter(t, bus.URL()))
	}
	awaitWord(t, writers, "commands are taken")
	for _, w := range writers {
		awaitWord(t, []*running{w}, "INF") // it has begun
	}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var mu sync.Mutex
	var done []time.Time
	nodes := map[string]uint64{}
	var senders sync.WaitGroup
	for s := range 4 {
		senders.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				node := fmt.Sprintf("n%d-%d", s, n)
				sequence := insist(t, nc, node)
				mu.Lock()
				done, nodes[node] = append(done, time.Now()), sequence
				mu.Unlock()
			}
		})
	}
	for range 3 {
		active := awaitWord(t, writers, "commands are taken")
		// A successor must be there, and work must be going on.
		others := slices.Delete(slices.Clone(writers), active, active+1)
		awaitWord(t, others, "standing by")
		killed := time.Now()
		writers[active].kill()
		writers = append(others, startWriter(t, bus.URL()))
		awaitWord(t, writers, "commands are taken")
		if d := gapAfter(t, &mu, &done, killed); d > takeoverLimit {
			t.Errorf("after the active writer was killed nothing was done for %v", d)
		} else {
			t.Logf("killed: the next command was done after %v", d)
		}
	}
	stop()
	senders.Wait()

	store, err := natsstore.Open(t.Context(), nc, natsstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var head es.Head
	stand := map[string]uint64{}
	for m, err := range es.VerifyChain(&head, store.Read(t.Context(), 0)) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := es.ReadEvent(m)
		if err != nil {
			t.Fatal(err)
		}
		if e.Ref.Aggregate != "node" {
			continue
		}
		if at, ok := stand[e.Ref.Key]; ok {
			t.Errorf("%s is registered by event %d and by event %d", e.Ref.Key, at, e.Sequence)
		}
		stand[e.Ref.Key] = e.Sequence
	}
	for node, sequence := range nodes {
		if stand[node] != sequence {
			t.Errorf("%s was answered with event %d, and stands at %d", node, sequence, stand[node])
		}
	}
	if len(stand) != len(nodes) {
		t.Errorf("%d nodes stand, %d were registered", len(stand), len(nodes))
	}
}

// insist registers a node, again and again with the same id until it is done.
func insist(t *testing.T, nc *nats.Conn, node string) uint64 {
	client, id := commands.NewClient(dispatch.NewClient(nc)), uuid.Must(uuid.NewV7()).String()
	for start := time.Now(); time.Since(start) < waitLimit; {
		ctx, cancel := context.WithTimeout(t.Context(), sendTry)
		a, err := client.Send(ctx, commands.RegisterNode{Node: node}, dispatch.Options{ID: id})
		cancel()
		switch {
		case errors.IsAny(err, dispatch.ErrNoWriter, dispatch.ErrTimeout), err == nil && (a.Status == es.StatusBusy || a.Status == es.StatusUnknown):
			<-time.After(2 * time.Millisecond)
		case err != nil || a.Status != es.StatusAccepted:
			t.Errorf("%s: %+v, %v", node, a, err)
			return 0
		default:
			return a.Sequence
		}
	}
	t.Errorf("%s was not done within %v", node, waitLimit)
	return 0
}

// gapAfter gives the longest time without a command done, from a moment on until work goes on.
func gapAfter(t *testing.T, mu *sync.Mutex, done *[]time.Time, from time.Time) time.Duration {
	t.Helper()
	tick, limit := time.NewTicker(5*time.Millisecond), time.After(waitLimit)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("nothing is done any more")
		}
		mu.Lock()
		times := slices.Clone(*done)
		mu.Unlock()
		var longest time.Duration
		last, count := from, 0
		for _, d := range times {
			if d.After(from) {
				longest, last = max(longest, d.Sub(last)), d
				count++
			}
		}
		// The first ones may have been done by the one that was killed.
		if count >= 20 && longest > 100*time.Millisecond {
			return longest
		}
	}
}

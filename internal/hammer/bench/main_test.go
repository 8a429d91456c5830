package main

import (
	"context"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func noEnv(string) string { return "" }

// One row of each kind, run as short as it gets: the figures mean nothing, and nothing may fail.
func TestRowsRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rows, name string }{
		{"^one node, interval, 64 callers$", "64 callers"},
		{"^one node, interval, 64 callers, over", "64 callers, over the bus"},
		{"^one node, fsync, 1 caller", "1 caller, latency"},
		{"import", "import of the load set"},
		{"lag at the copies", rowLag},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			runRow(t, c.rows, c.name)
		})
	}
}

// The row about rollouts stands alone: it is no matter of milliseconds, and would take them from the others.
func TestRolloutRowRuns(t *testing.T) {
	runRow(t, "rollout over tiers", "rollout over tiers of 20, 30 and 50, half at once")
}

func runRow(t *testing.T, rows, name string) {
	t.Helper()
	var out, talk strings.Builder
	args := []string{"-runs", "1", "-time", "10ms", "-store", t.TempDir(), "-data", t.TempDir(), "-rows", rows}
	if code := program(t.Context(), args, noEnv, &out, &talk); code != exitOK {
		t.Fatalf("exit code %d:\n%s", code, talk.String())
	}
	found := regexp.MustCompile(`(?m)^\| `+regexp.QuoteMeta(name)+` +\|`).FindAllString(out.String(), -1)
	if len(found) != 1 {
		t.Errorf("the row stands %d times in\n%s", len(found), out.String())
	}
}

// A load from elsewhere, over the bus of a whole chain.
func TestLoad(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := unsynced.onChain(ctx, t.TempDir(), func(ctx context.Context, s server, _ *nats.Conn) error {
		var out, talk strings.Builder
		args := []string{"load", "-server", s.ClientURL(), "-callers", "4", "-commands", "20", "-for", "0", "-nodes", "2", "-modules", "2"}
		if code := program(ctx, args, noEnv, &out, &talk); code != exitOK || !strings.HasPrefix(out.String(), "20 accepted in ") {
			t.Errorf("exit code %d: %s%s", code, out.String(), talk.String())
		}
		out.Reset()
		nc, err := s.Ledger()
		if err != nil {
			return err
		}
		engine, err := startParts(ctx, enginePart(nc))
		if err != nil {
			return err
		}
		args = []string{"agents", "-server", s.ClientURL(), "-count", "5", "-rounds", "2", "-tiers", "2"}
		code := program(ctx, args, noEnv, &out, &talk)
		for _, says := range []string{"round 1: 5 nodes told in ", "an agent", "rollout: 5 nodes in 2 tiers"} {
			if code != exitOK || !strings.Contains(out.String(), says) {
				t.Errorf("exit code %d, without %q: %s%s", code, says, out.String(), talk.String())
			}
		}
		return engine.stop()
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestArgumentsThatCantWork(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"-runs 0", "-time 0s", "-rows (", "-nothing", "more", "load -for 0", "load more", "agents -count 0", "agents -count 3 -tiers 4", "agents more"} {
		var talk strings.Builder
		if code := program(t.Context(), strings.Fields(args), noEnv, io.Discard, &talk); code != exitUsage || talk.Len() == 0 {
			t.Errorf("%s: exit code %d, said %q", args, code, talk.String())
		}
	}
	var talk strings.Builder
	if code := program(t.Context(), []string{"load", "-server", "nats://127.0.0.1:1", "-commands", "1"}, noEnv, io.Discard, &talk); code != exitFailed || talk.Len() == 0 {
		t.Errorf("a bus that is away: exit code %d, said %q", code, talk.String())
	}
}

func TestDataFolder(t *testing.T) {
	t.Parallel()
	if got := dataFolder(func(string) string { return "named" }); got != "named" {
		t.Errorf("the folder is %s", got)
	}
}

package catenary_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const modulePath = "catenary"

// Third-party packages that stand for the bus. Whoever imports one can bypass the rules of the ledger, so few may.
var busPackages = []string{
	"github.com/nats-io/nats.go",
	"github.com/nats-io/nkeys",
	"github.com/nats-io/jwt",
	"github.com/synadia-io/orbit.go",
}

// serverPackages is the server itself.
var serverPackages = []string{"github.com/nats-io/nats-server"}

// impurePackages let a decision depend on more than its arguments: on time, on the machine, on chance.
var impurePackages = []string{
	"context", "crypto/rand", "database/sql", "log", "math/rand", "net", "os", "runtime", "sync", "syscall", "testing",
}

// impureSelectors are the functions of otherwise pure packages that read a clock or wait for one.
var impureSelectors = map[string][]string{
	"time": {"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"},
}

// busUse says which files of a package may import the bus.
type busUse int

const (
	noBus    busUse = iota // none
	busFiles               // those named bus*.go: the rest of the package works without a bus
	anyFile                // all
)

// row is what one directory may import. Patterns are directories of this module; "x/*" means those directly below x, and
// "..." means all.
type row struct {
	dir     string
	imports []string
	bus     busUse
	server  bool
	// pure: production files must give the same result for the same arguments, for ever. They have no context, clock, I/O
	// or chance.
	pure bool
	// harness: made for tests. Production files never import it, but for those of another harness.
	harness bool
}

// importTable is the table of docs/architecture/README.md. Production files import what their row names and nothing else
// of ours. Test files may import the same, their own package, and everything in testHarnesses.
//
// A new directory gets a row here first: that is where its place in the order is decided.
var importTable = []row{
	{dir: "."},

	// The domain-free core. es imports nothing of ours; what lies below it is built on it.
	{dir: "es"},
	{dir: "es/dispatch", imports: []string{"es", "internal/serving", "internal/streams", "internal/failpoint"}, bus: busFiles},
	{dir: "es/project", imports: []string{"es", "internal/failpoint"}},
	{dir: "es/project/projecttest", imports: []string{"es", "es/memstore", "es/project"}, harness: true},
	{dir: "es/natsstore", imports: []string{"es", "internal/answers", "internal/pull", "internal/streams", "internal/topology", "internal/failpoint"}, bus: anyFile},
	// Implements the buckets that es/project states, with the error translation of es/natsstore: there is one of it.
	{dir: "es/natskv", imports: []string{"es", "es/natsstore", "es/project", "internal/answers", "internal/pull", "internal/streams", "internal/topology"}, bus: anyFile},
	{dir: "es/memstore", imports: []string{"es"}},
	// Starts real servers for tests: there is no stand-in for NATS.
	{dir: "es/estest", imports: []string{"es"}, bus: anyFile, server: true, harness: true},

	// What is said: facts and intents.
	{dir: "events", imports: []string{"es"}, pure: true},
	// The client for Go programs stands beside the intents, so they know how a command is sent.
	{dir: "commands", imports: []string{"es", "es/dispatch", "events"}},

	// What is decided.
	{dir: "aggregates", imports: []string{"aggregates/*", "events", "commands", "es"}, pure: true},
	{dir: "aggregates/*", imports: []string{"aggregates/*", "events", "commands", "es"}, pure: true},

	// What is read.
	{dir: "chain", imports: []string{"events", "commands", "es", "es/project", "internal/topology"}},
	{dir: "projections", imports: []string{"projections/*", "chain", "events", "es", "es/project"}},
	{dir: "projections/*", imports: []string{"projections/perkey", "projections/viewtest", "chain", "events", "es", "es/project"}},
	{dir: "projections/perkey", imports: []string{"chain", "es", "es/project", "internal/failpoint"}},
	{dir: "projections/viewtest", imports: []string{"events", "es", "es/project", "es/project/projecttest"}, harness: true},
	// The times that people write; whoever answers questions is given moments.
	{dir: "audit/when", imports: []string{"internal/spelling"}, pure: true},
	{dir: "audit/export", imports: []string{"audit", "events", "es"}},
	{dir: "audit", imports: []string{"chain", "events", "es", "es/project", "internal/serving", "internal/topology"}, bus: anyFile},
	// One more place that the folds of events go to, and no other way of folding them.
	{dir: "audit/store", imports: []string{"audit", "projections", "chain", "events", "es", "es/project", "internal/failpoint"}},

	{dir: "audit/proof", imports: []string{"es", "es/natsstore", "internal/serving", "internal/ndjson", "internal/streams", "internal/topology"}, bus: busFiles},

	// What acts: through commands only.
	{dir: "rollout", imports: []string{"audit", "chain", "events", "commands", "es", "es/dispatch", "rollout/plan", "rollout/strategy", "rollout/walk", "internal/failpoint"}},
	{dir: "rollout/strategy", imports: []string{"events"}},
	// The engine's decisions: the same for the same events, so that a second engine is the first one.
	{dir: "rollout/walk", imports: []string{"commands", "events", "es"}, pure: true},
	// The writer's decisions and the engine's beside each other, without a bus.
	{dir: "rollout/stage", imports: []string{"aggregates", "aggregates/*", "rollout/walk", "internal/hammer", "commands", "events", "es"}, harness: true},
	// What becomes of rollouts when everything goes wrong. Who judges it knows neither the deciders nor the engine.
	{dir: "rollout/simulate", imports: []string{"aggregates", "chain", "commands", "events", "es", "rollout/plan", "rollout/stage", "rollout/walk", "rollout/simulate/check"}, harness: true},
	{dir: "rollout/simulate/check", imports: []string{"events", "es"}, harness: true, pure: true},
	{dir: "rollout/plan", imports: []string{"chain", "commands", "events", "es", "rollout/strategy"}},
	{dir: "agent", imports: []string{"agent/driver", "agent/process", "chain", "events", "commands", "es", "es/dispatch", "internal/topology", "internal/failpoint"}, bus: busFiles},
	{dir: "agent/artifacts"},
	{dir: "agent/process"},
	{dir: "agent/driver", imports: []string{"events", "es"}},
	{dir: "agent/driver/*", imports: []string{"agent/artifacts", "agent/driver", "agent/driver/drivertest", "agent/process", "events", "es"}},
	{dir: "agent/driver/drivertest", imports: []string{"agent/driver"}, harness: true},
	// What agents check in at: it keeps what each node was told, and when each agent was heard last.
	{dir: "agent/desk", imports: []string{"agent", "chain", "events", "es", "es/project", "internal/serving", "internal/topology"}, bus: busFiles},
	{dir: "agent/depot", imports: []string{"agent/artifacts", "chain", "events", "es", "es/dispatch", "es/natsstore", "internal/parts", "internal/streams", "internal/topology"}, bus: busFiles},
	{dir: "agent/logs", imports: []string{"es", "es/dispatch", "es/natsstore", "internal/parts", "internal/streams", "internal/topology"}, bus: busFiles},
	{dir: "internal/ndjson"},
	{dir: "internal/deliveries", imports: []string{"internal/ndjson", "commands", "events", "es", "es/dispatch"}},
	{dir: "internal/lineage", imports: []string{"internal/ndjson", "commands", "events", "es", "es/dispatch"}},

	// Where it runs.
	{dir: "embedded", imports: []string{"internal/mirrors", "internal/streams", "internal/topology"}, bus: anyFile, server: true},
	{dir: "internal/mirrors", imports: []string{"internal/streams", "internal/topology"}, bus: anyFile},
	{dir: "internal/topology", bus: anyFile},
	{dir: "internal/streams", bus: anyFile},
	{dir: "internal/pull", bus: anyFile},
	{dir: "internal/answers", bus: anyFile},
	{dir: "internal/serving", bus: anyFile},
	{dir: "internal/natsconn", bus: anyFile},
	{dir: "internal/parts", imports: []string{"internal/serving"}, bus: anyFile},
	// It puts back what was stored, so it knows how events and checkpoints are kept, and nothing of what they say.
	{dir: "internal/backup", imports: []string{"audit/proof", "es", "es/natskv", "es/natsstore", "internal/parts", "internal/streams", "internal/topology"}, bus: anyFile},
	{dir: "internal/guard", imports: []string{"es", "internal/streams", "internal/topology"}, bus: anyFile},
	{dir: "internal/cluster", imports: []string{"internal/health", "internal/topology"}, bus: busFiles},
	{dir: "internal/diagnosis", imports: []string{"agent", "agent/desk", "internal/cluster", "internal/health"}},
	{dir: "internal/room", imports: []string{"es", "internal/topology"}, bus: anyFile},
	{dir: "internal/health", imports: []string{"internal/topology"}, bus: busFiles},
	{dir: "internal/telemetry"},
	{dir: "internal/hammer", imports: []string{"commands", "events", "es", "es/dispatch"}},
	// The program that measures a whole chain beside bare nats.go, so it wires one together.
	{dir: "internal/hammer/bench", imports: []string{"..."}, bus: anyFile},
	{dir: "internal/realdata", harness: true},
	{dir: "internal/spelling", pure: true},
	// Moments at which a process can be made to fail: empty functions, unless a program is built to fail.
	{dir: "internal/failpoint"},
	{dir: "web", imports: []string{"audit", "chain", "events", "commands", "es", "es/dispatch"}},

	// Where it is wired together. internal/run is what the binaries of cmd share; no row but theirs lets it in.
	{dir: "internal/run", imports: []string{"..."}, bus: anyFile},
	{dir: "cmd/*", imports: []string{"..."}, bus: anyFile},
	{dir: "integration", imports: []string{"..."}, bus: anyFile, server: true},
	// What breaks a whole chain, and who judges what is left of it. The judges know the events, the folds and the rules of simulated rollouts.
	{dir: "integration/fault", imports: []string{"..."}, bus: anyFile, harness: true},
	{dir: "integration/fault/check", imports: []string{"chain", "events", "es", "es/project", "rollout/simulate/check"}, harness: true},
	{dir: "integration/fault/schedule", imports: []string{"internal/failpoint"}, harness: true},
}

// testHarnesses are what test files of every directory may import besides their row: real servers, the store in memory,
// the names on the bus and the tools made for tests. Nothing of the domain is among them, so that a test can't
// tie together what its package keeps apart.
var testHarnesses = []string{"es", "es/estest", "es/memstore", "es/natsstore", "es/natskv", "es/project/projecttest", "embedded", "internal/natsconn", "internal/realdata", "internal/topology"}

// apart lists directories that never import each other, neither in production nor in test files, whatever else the table
// says. The read side would otherwise show what a decider thinks instead of what was recorded.
var apart = [][2][]string{
	{{"chain", "projections", "projections/*", "audit", "web"}, {"aggregates", "aggregates/*"}},
}

// vagueNames say nothing about what belongs in a package and so collect everything.
var vagueNames = []string{"common", "helpers", "misc", "types", "util", "utils"}

var architecture = rules{
	module:          modulePath,
	table:           importTable,
	testHarnesses:   testHarnesses,
	apart:           apart,
	bus:             busPackages,
	server:          serverPackages,
	impure:          impurePackages,
	impureSelectors: impureSelectors,
	vagueNames:      vagueNames,
}

func TestArchitecture(t *testing.T) {
	t.Parallel()
	found, err := architecture.check(os.DirFS("."))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}

// TestArchitectureTable checks the table itself: a directory with two rows would be judged by whichever comes first.
func TestArchitectureTable(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range importTable {
		if seen[r.dir] {
			t.Errorf("%s has two rows", r.dir)
		}
		seen[r.dir] = true
	}
	for _, r := range importTable {
		for _, p := range r.imports {
			if p != "..." && !seen[p] {
				t.Errorf("%s may import %s, which has no row", r.dir, p)
			}
		}
	}
	for _, p := range testHarnesses {
		if !seen[p] {
			t.Errorf("the harness %s has no row", p)
		}
	}
}

// TestArchitectureCheckFinds plants one violation of each kind in a small tree: without it a checker that finds nothing
// would look like a tree that is clean.
func TestArchitectureCheckFinds(t *testing.T) {
	t.Parallel()
	const doc = "// Package p is documented.\npackage p\n"
	cases := []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{
			name: "a clean tree",
			files: map[string]string{
				"chain/doc.go":            doc,
				"chain/key.go":            "package p\nimport \"catenary/events\"\nvar _ = events.X\n",
				"chain/key_test.go":       "package p_test\nimport (\n\"catenary/chain\"\n\"catenary/embedded\"\n\"catenary/es/estest\"\n\"context\"\n)\nvar _ = chain.X\n",
				"aggregates/node/doc.go":  doc,
				"aggregates/node/x.go":    "package p\nimport \"time\"\nfunc f(t time.Time) time.Time { return t.Add(time.Second) }\n",
				"es/dispatch/doc.go":      doc,
				"es/dispatch/bus_nats.go": "package p\nimport _ \"github.com/nats-io/nats.go/micro\"\n",
				"testdata/x/bad.go":       "package p\nimport _ \"catenary/nowhere\"\n",
				"docs/adr/0001.md":        "# not Go",
			},
		},
		{
			name:  "an upward import",
			files: map[string]string{"chain/doc.go": doc, "chain/key.go": "package p\nimport _ \"catenary/rollout\"\n"},
			want:  []string{"chain/key.go:2: chain may not import rollout (see importTable)"},
		},
		{
			name:  "the core imports something of ours",
			files: map[string]string{"es/doc.go": doc, "es/x.go": "package p\nimport _ \"catenary/internal/topology\"\n"},
			want:  []string{"es/x.go:2: es may not import internal/topology (see importTable)"},
		},
		{
			name: "the read side and the deciders, from both sides and from a test",
			files: map[string]string{
				"projections/nodes/doc.go":    doc,
				"projections/nodes/x_test.go": "package p\nimport _ \"catenary/aggregates/node\"\n",
				"aggregates/doc.go":           doc,
				"aggregates/world.go":         "package p\nimport _ \"catenary/chain\"\n",
			},
			want: []string{
				"aggregates/world.go:2: aggregates and chain must stay apart: the read side shows what was recorded, not what a decider thinks",
				"projections/nodes/x_test.go:2: projections/nodes and aggregates/node must stay apart: the read side shows what was recorded, not what a decider thinks",
			},
		},
		{
			name: "the bus where it does not belong",
			files: map[string]string{
				"chain/doc.go":           doc,
				"chain/reader.go":        "package p\nimport _ \"github.com/nats-io/nats.go/jetstream\"\n",
				"chain/reader_test.go":   "package p\nimport _ \"github.com/synadia-io/orbit.go/natsext\"\n",
				"es/dispatch/doc.go":     doc,
				"es/dispatch/handler.go": "package p\nimport _ \"github.com/nats-io/nats.go\"\n",
			},
			want: []string{
				"chain/reader.go:2: chain may not import github.com/nats-io/nats.go/jetstream: the bus belongs to few packages (see importTable)",
				"chain/reader_test.go:2: chain may not import github.com/synadia-io/orbit.go/natsext: the bus belongs to few packages (see importTable)",
				"es/dispatch/handler.go:2: es/dispatch may import github.com/nats-io/nats.go in files named bus*.go only",
			},
		},
		{
			name: "a module whose name only begins like the bus",
			files: map[string]string{
				"chain/doc.go": doc,
				"chain/x.go":   "package p\nimport _ \"github.com/nats-io/nats.gold\"\n",
			},
		},
		{
			name: "the server where it does not belong",
			files: map[string]string{
				"es/natsstore/doc.go":    doc,
				"es/natsstore/x_test.go": "package p\nimport _ \"github.com/nats-io/nats-server/v2/server\"\n",
			},
			want: []string{"es/natsstore/x_test.go:2: es/natsstore may not import github.com/nats-io/nats-server/v2/server: only embedded and integration run a server"},
		},
		{
			name: "an aggregate that is not pure",
			files: map[string]string{
				"aggregates/lease/doc.go": doc,
				"aggregates/lease/a.go":   "package p\nimport (\n\"context\"\n\"net/http\"\n\"math/rand/v2\"\n)\n",
				"aggregates/lease/b.go":   "package p\nimport \"time\"\nvar now = time.Now\n",
				"aggregates/lease/c.go":   "package p\nimport clock \"time\"\nfunc f(t clock.Time) clock.Duration { return clock.Since(t) }\n",
				"aggregates/lease/d.go":   "package p\nimport . \"time\"\nvar now = Now\n",
				"aggregates/lease/e.go":   "package p\nvar time struct{ Now int }\nvar _ = time.Now\n",
			},
			want: []string{
				"aggregates/lease/a.go:3: aggregates/lease is pure and may not import context",
				"aggregates/lease/a.go:4: aggregates/lease is pure and may not import net/http",
				"aggregates/lease/a.go:5: aggregates/lease is pure and may not import math/rand/v2",
				"aggregates/lease/b.go:3: aggregates/lease is pure and may not use time.Now: take the time as an argument",
				"aggregates/lease/c.go:3: aggregates/lease is pure and may not use time.Since: take the time as an argument",
				"aggregates/lease/d.go:2: aggregates/lease is pure and may not import time with a dot",
			},
		},
		{
			name: "a harness in production",
			files: map[string]string{
				"cmd/catenary/doc.go":  doc,
				"cmd/catenary/main.go": "package p\nimport _ \"catenary/es/estest\"\n",
			},
			want: []string{"cmd/catenary/main.go:2: es/estest is made for tests: production files may not import it"},
		},
		{
			name: "a harness that its row does not let build on another",
			files: map[string]string{
				"es/estest/doc.go":            doc,
				"es/estest/x.go":              "package p\nimport _ \"catenary/internal/realdata\"\n",
				"projections/viewtest/doc.go": doc,
				"projections/viewtest/x.go":   "package p\nimport _ \"catenary/es/project/projecttest\"\n",
			},
			want: []string{"es/estest/x.go:2: es/estest may not import internal/realdata (see importTable)"},
		},
		{
			name:  "an unknown directory",
			files: map[string]string{"billing/doc.go": doc},
			want:  []string{"billing: no row in importTable: add the directory with what it may import, and to docs/architecture/README.md"},
		},
		{
			name:  "an import of a directory that has no row",
			files: map[string]string{"cmd/catenary/doc.go": doc, "cmd/catenary/main.go": "package p\nimport _ \"catenary/billing\"\n"},
			want:  []string{"cmd/catenary/main.go:2: billing has no row in importTable"},
		},
		{
			name:  "a vague name, which the table can't allow",
			files: map[string]string{"cmd/util/doc.go": doc},
			want:  []string{"cmd/util: util says nothing about what belongs there: name it after what it owns"},
		},
		{
			name: "no doc.go, or one that says nothing",
			files: map[string]string{
				"chain/key.go":  "package p\n",
				"events/doc.go": "package p\n",
			},
			want: []string{
				"chain: no doc.go: say what the package owns, what it leaves to others, and its invariants",
				"events/doc.go: no package comment: say what the package owns, what it leaves to others, and its invariants",
			},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			found, err := architecture.check(tree(c.files))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, found); diff != "" {
				t.Errorf("violations (-want +found):\n%s", diff)
			}
		})
	}
}

func TestArchitectureCheckRefusesWhatItCannotParse(t *testing.T) {
	t.Parallel()
	if _, err := architecture.check(tree(map[string]string{"chain/x.go": "package"})); err == nil {
		t.Error("a file that does not parse was passed over")
	}
}

package projections_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"

	"catenary/chain"
	"catenary/es"
	"catenary/es/memstore"
	"catenary/es/project"
	"catenary/es/project/projecttest"
	"catenary/events"
	"catenary/projections"
	"catenary/projections/perkey"
)

// What stands between the two marks is shown by docs/guides/views.md, which TestGuide compares.

// guide: the view

// version is raised with every change that makes other values of the same events.
const version = 1

// view keeps which modules stand on each node.
type view struct{ nodes map[string]Inventory }

// Inventory is the record of one node.
type Inventory struct {
	Node    string   `json:"node"`
	Modules []string `json:"modules"`
}

// New returns the view without records.
func New() project.View { return &view{nodes: map[string]Inventory{}} }

func (*view) Name() string         { return "chain-inventories" }
func (*view) Version() int         { return version }
func (*view) Aggregates() []string { return []string{events.AggregateAssignment} }

// Load takes in a value that stands in the bucket. The values are all the state there is: what is not in them is lost at
// the next start.
func (v *view) Load(key string, value []byte) error {
	var i Inventory
	if err := json.Unmarshal(value, &i); err != nil {
		return err
	}
	if es.Key(i.Node) != key {
		return errors.Newf("the inventory of %s stands under key %s", i.Node, key)
	}
	v.nodes[key] = i
	return nil
}

// Fold gives the values that an event leads to.
func (v *view) Fold(e es.Event) ([]project.Value, error) {
	fact, ok := e.Data.(events.Assignment)
	switch {
	case !ok:
		return nil, perkey.Unknown(e) // never passed in silence
	case e.Backfill:
		return nil, nil // it adds to history and changes nothing that stands
	}
	switch fact := fact.(type) {
	case events.AssignmentAssigned:
		return v.change(fact.Node, fact.Module, true)
	case events.AssignmentMovedIn:
		return v.change(fact.Node, fact.Module, true)
	case events.AssignmentEnded:
		return v.change(fact.Node, fact.Module, false)
	case events.AssignmentMovedOut:
		return v.change(fact.Node, fact.Module, false)
	case events.AssignmentPended, events.AssignmentApplied, events.AssignmentApplyFailed, events.AssignmentHealthy,
		events.AssignmentUnhealthy, events.AssignmentRemoved, events.AssignmentRemoveFailed, events.AssignmentDrifted:
		return nil, nil // what a node was told stays as it is
	}
	return nil, perkey.Unknown(e)
}

func (v *view) change(node, module string, stands bool) ([]project.Value, error) {
	key := es.Key(node)
	i := Inventory{Node: node, Modules: slices.Clone(v.nodes[key].Modules)}
	at, found := slices.BinarySearch(i.Modules, module)
	switch {
	case found == stands:
		return nil, nil // nothing new: no value
	case stands:
		i.Modules = slices.Insert(i.Modules, at, module)
	default:
		i.Modules = slices.Delete(i.Modules, at, at+1)
	}
	value, err := chain.Encode(i)
	if err != nil {
		return nil, err
	}
	v.nodes[key] = i // only now: after an error the state is as before
	return []project.Value{{Key: key, Data: value}}, nil
}

// guide: its test

func TestInventories(t *testing.T) {
	t.Parallel()
	told := func(node, module string) projecttest.Fact {
		return projecttest.Fact{
			Ref:  es.Ref{Aggregate: events.AggregateAssignment, Key: es.Key(node, module)},
			Data: events.AssignmentAssigned{Told: events.Told{Node: node, Module: module}},
		}
	}
	given := projecttest.Spec(t, events.Registry(), New).Given(told("n1", "web"))
	given.When(told("n1", "db")).Then(project.Value{Key: "n1", Data: []byte(`{"node":"n1","modules":["db","web"]}`)})
	given.When(told("n1", "web")).ThenNothing()
}

// guide: end

// TestGuide holds the guide to the code: what it shows is what is tested here, and the places it names are there.
func TestGuide(t *testing.T) {
	t.Parallel()
	guide := readFile(t, "../docs/guides/views.md")
	own := readFile(t, "guide_test.go")
	var shown []string
	for _, block := range regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllStringSubmatch(guide, -1) {
		shown = append(shown, strings.TrimSpace(block[1]))
	}
	var tested []string
	for _, part := range strings.Split(own, "\n// guide: ")[1:3] {
		_, code, _ := strings.Cut(part, "\n")
		tested = append(tested, strings.TrimSpace(code))
	}
	if diff := cmp.Diff(tested, shown); diff != "" {
		t.Errorf("the guide shows other code than is tested (-tested +shown):\n%s", diff)
	}
	for _, link := range regexp.MustCompile(`\]\((\.\./\.\./[^)]+\.go)\)`).FindAllStringSubmatch(guide, -1) {
		if _, err := os.Stat("../docs/guides/" + link[1]); err != nil {
			t.Error(err)
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestOneMoreView takes the guide's last step: with one line more in the list, the projector brings the new view up from the first
// event beside those that stand.
func TestOneMoreView(t *testing.T) {
	t.Parallel()
	s := memstore.New(memstore.Config{})
	tail := projecttest.Append(t, events.Registry(), s, longHistory(t)...)
	buckets := memoryBuckets()
	projecttest.Run(t, config(t, s, buckets), tail)
	before := all(t, buckets)

	buckets[New().Name()] = &projecttest.Bucket{}
	list, err := project.Specs(func() []project.View { return append(projections.All(), New()) },
		func(name string) (project.Bucket, error) { return buckets[name], nil })
	if err != nil {
		t.Fatal(err)
	}
	projecttest.Run(t, project.Config{Store: s, Registry: events.Registry(), Views: list, Orders: projections.Orders()}, tail)
	after := all(t, buckets)
	if len(after[New().Name()]) == 0 {
		t.Error("the new view has no value")
	}
	delete(after, New().Name())
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the other buckets have changed (-before +after):\n%s", diff)
	}
}

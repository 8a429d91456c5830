package desk

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/cockroachdb/errors"

	"catenary/agent"
	"catenary/chain"
)

// maxAnswerBytes bounds one answer, well under the bus's limit of a message. What is more comes in further ones.
const maxAnswerBytes = 512 << 10

// Index is what nodes are told, and what that takes to act on. It is safe for use by many goroutines.
type Index struct {
	mu      sync.Mutex
	nodes   map[string]*node
	modules map[string]module
	// through is the latest source of any assignment's value.
	through uint64
	passed  chan struct{} // closed, and made anew, when through grows
}

// node is what is known of a node.
type node struct {
	source    uint64
	managedBy string
	known     bool
	retired   bool
	// reported says that a report of it is on record.
	reported bool
	labels   map[string]string
	told     map[string]told
}

// told is the newest value of an assignment.
type told struct {
	source uint64 // of the value, which a report changes too
	record []byte
	told   uint64
}

// module is what agents need to know of a module.
type module struct {
	source uint64
	record chain.Module
}

// NewIndex returns an index that knows nothing.
func NewIndex() *Index {
	return &Index{nodes: map[string]*node{}, modules: map[string]module{}, passed: make(chan struct{})}
}

func (x *Index) node(name string) *node {
	n := x.nodes[name]
	if n == nil {
		n = &node{told: map[string]told{}}
		x.nodes[name] = n
	}
	return n
}

// Value is a value of a bucket.
type Value struct {
	// Source is the event that it comes from.
	Source uint64
	Record []byte
}

// TakeAssignment takes a value of an assignment, in any order.
func (x *Index) TakeAssignment(v Value) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.takeAssignment(v)
}

func (x *Index) takeAssignment(v Value) error {
	a, err := chain.Decode[chain.Assignment](v.Record)
	if err != nil {
		return errors.Wrap(err, "an assignment")
	}
	n := x.node(a.Node)
	n.reported = n.reported || a.Observed != nil
	if v.Source > n.told[a.Module].source {
		n.told[a.Module] = told{source: v.Source, record: v.Record, told: a.Told}
	}
	if v.Source > x.through {
		x.through = v.Source
		close(x.passed)
		x.passed = make(chan struct{})
	}
	return nil
}

// TakeNode takes a value of a node, in any order.
func (x *Index) TakeNode(v Value) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.takeNode(v)
}

func (x *Index) takeNode(v Value) error {
	r, err := chain.Decode[chain.Node](v.Record)
	if err != nil {
		return errors.Wrap(err, "a node")
	}
	if n := x.node(r.Node); v.Source > n.source {
		n.source, n.known, n.managedBy, n.retired, n.labels = v.Source, true, r.ManagedBy, !r.Stands(), r.Labels
	}
	return nil
}

// TakeModule takes a value of a module, in any order.
func (x *Index) TakeModule(v Value) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.takeModule(v)
}

func (x *Index) takeModule(v Value) error {
	r, err := chain.Decode[chain.Module](v.Record)
	if err != nil {
		return errors.Wrap(err, "a module")
	}
	if v.Source > x.modules[r.Name].source {
		x.modules[r.Name] = module{source: v.Source, record: r}
	}
	return nil
}

// ReplaceAssignments forgets all assignments, and takes these: all that stand in another generation of the bucket, which may lack what was
// lost. It gives the errors of those that can't be read, and takes the others.
func (x *Index) ReplaceAssignments(values []Value) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, n := range x.nodes {
		n.reported, n.told = false, map[string]told{}
	}
	x.through = 0
	return takeAll(values, x.takeAssignment)
}

// ReplaceNodes is what ReplaceAssignments is, of nodes.
func (x *Index) ReplaceNodes(values []Value) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for name, n := range x.nodes {
		x.nodes[name] = &node{reported: n.reported, told: n.told}
	}
	return takeAll(values, x.takeNode)
}

// ReplaceModules is what ReplaceAssignments is, of modules.
func (x *Index) ReplaceModules(values []Value) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	clear(x.modules)
	return takeAll(values, x.takeModule)
}

func takeAll(values []Value, take func(Value) error) error {
	var failure error
	for _, v := range values {
		failure = errors.CombineErrors(failure, take(v))
	}
	return failure
}

// Passed gives nil when the index has come to a value's source, and else what is closed as soon as it has come further.
func (x *Index) Passed(source uint64) <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.through >= source {
		return nil
	}
	return x.passed
}

// edition stands for all that is said of a node. What comes from several buckets has no common order, so it is no sequence.
func (x *Index) edition(n *node) string {
	sum := fnv.New64a()
	var number [8]byte
	add := func(name string, sources ...uint64) {
		_, _ = sum.Write([]byte(name)) // a hash takes everything
		for _, source := range sources {
			_, _ = sum.Write(binary.BigEndian.AppendUint64(number[:0], source))
		}
	}
	add("", n.source)
	for _, name := range slices.Sorted(maps.Keys(n.told)) {
		add(name, n.told[name].told, x.modules[name].source)
	}
	return strconv.FormatUint(sum.Sum64(), 16)
}

// Answer gives what an agent is told. It gives errors for a record that can't be read.
func (x *Index) Answer(c agent.CheckIn) (agent.Answer, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n, ok := x.nodes[c.Node]
	if !ok {
		return agent.Answer{Node: c.Node}, nil
	}
	a := agent.Answer{Node: c.Node, Known: n.known, ManagedBy: n.managedBy, Edition: x.edition(n)}
	if c.Known == a.Edition && c.Cursor == "" {
		a.Unchanged = true
		return a, nil
	}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(n.told)) {
		if name <= c.Cursor && c.Cursor != "" {
			continue
		}
		t := n.told[name]
		if size += len(t.record); size > maxAnswerBytes && len(a.Told) > 0 {
			a.Next = a.Told[len(a.Told)-1].Module
			return a, nil
		}
		i, err := x.instruction(t)
		if err != nil {
			return agent.Answer{}, err
		}
		a.Told = append(a.Told, i)
	}
	return a, nil
}

// instruction gives a value as agents act on it. Of what has ended, they need no more than what it was.
func (x *Index) instruction(t told) (agent.Instruction, error) {
	r, err := chain.Decode[chain.Assignment](t.record)
	if err != nil {
		return agent.Instruction{}, errors.Wrap(err, "an assignment")
	}
	m := x.modules[r.Module].record
	i := agent.Instruction{
		Source: cmp.Or(t.told, t.source), Module: r.Module, Stands: r.Stands(), Ended: !r.Ended.IsZero(), Reference: r.Reference, Build: r.Build, Commit: r.Commit,
		Rollout: r.Rollout, RequiredBy: r.RequiredBy, Requires: m.Requires, Delivery: m.Delivery,
	}
	if i.Stands {
		i.Record = json.RawMessage(t.record)
	}
	return i, nil
}

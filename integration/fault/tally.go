package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/integration/fault/check"
	"catenary/integration/fault/schedule"
)

// tally counts what was done in a run, and what was found.
type tally struct {
	Seed     uint64 `json:"seed"`
	Servers  int    `json:"servers"`
	Planted  string `json:"planted,omitempty"`
	Commands int    `json:"commands"`
	Tries    int    `json:"tries"`
	Accepted int    `json:"accepted"`
	Events   int    `json:"events"`
	// Counts are of what was done, by what it is called in the report.
	Counts map[string]int `json:"counts"`
	// Took says how long things took, in milliseconds.
	Took       map[string][]int64 `json:"took"`
	Violations []string           `json:"violations,omitempty"`

	mu sync.Mutex
}

func newTally(seed uint64, shape schedule.Shape) *tally {
	return &tally{Seed: seed, Servers: shape.Servers, Counts: map[string]int{}, Took: map[string][]int64{}}
}

func (t *tally) add(what string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Counts[what] += n
}

func (t *tally) took(what string, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Took[what] = append(t.Took[what], d.Milliseconds())
}

// Names of counts that are sums of others.
const (
	countKills    = "kills, all"
	countRestarts = "servers ended and started again"
	countHarmed   = "files harmed"
)

// fault counts a fault that was done.
func (t *tally) fault(f schedule.Fault) {
	name := string(f.Kind)
	if f.Harm != "" {
		name += ": " + f.Harm
		t.add(countHarmed, 1)
	}
	t.add(name, 1)
}

// conclude takes in what the processes say of themselves.
func (t *tally) conclude(r *rig, ev check.Evidence, violations []check.Violation) {
	for _, p := range r.processes {
		p.mu.Lock()
		t.add(countKills, p.kills)
		for name, n := range p.struck {
			t.add("point: "+string(name), n)
			t.add("points struck", n)
		}
		p.mu.Unlock()
	}
	for _, s := range r.servers {
		s.process.mu.Lock()
		t.add(countRestarts, s.starts-1)
		s.process.mu.Unlock()
	}
	t.Commands, t.Events = len(ev.Commands), len(ev.Events)
	for _, c := range ev.Commands {
		t.Tries += len(c.Tries)
		if slices.ContainsFunc(c.Tries, func(t check.Try) bool { return t.Outcome() == check.Done }) {
			t.Accepted++
		}
	}
	for _, v := range violations {
		t.Violations = append(t.Violations, v.String())
	}
}

// append writes a run's tally as a line of a file.
func (t *tally) append(path string) error {
	if path == "" {
		return nil
	}
	text, err := json.Marshal(t)
	if err != nil {
		return errors.Wrap(err, "write the report")
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return errors.Wrap(err, "write the report")
	}
	_, err = fmt.Fprintf(file, "%s\n", text)
	return errors.Wrap(errors.CombineErrors(err, file.Close()), "write the report")
}

// total adds up runs.
type total struct {
	tally
	found int
}

func newTotal() *total {
	return &total{tally: tally{Counts: map[string]int{}, Took: map[string][]int64{}}}
}

// add takes in a run.
func (s *total) add(t *tally) {
	s.Commands, s.Tries, s.Accepted, s.Events = s.Commands+t.Commands, s.Tries+t.Tries, s.Accepted+t.Accepted, s.Events+t.Events
	for name, n := range t.Counts {
		s.Counts[name] += n
	}
	for name, list := range t.Took {
		s.Took[name] = append(s.Took[name], list...)
	}
	s.Counts[fmt.Sprintf("runs, servers: %d", t.Servers)]++
	s.found += len(t.Violations)
}

// sum adds up the runs of a file, and shows them.
func sum(path string, out io.Writer) error {
	file, err := os.Open(path)
	if err != nil {
		return errors.Wrap(err, "read the report")
	}
	defer func() { _ = file.Close() }() // it is only read
	all := newTotal()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var t tally
		if err := json.Unmarshal(lines.Bytes(), &t); err != nil {
			return errors.Wrap(err, "read the report")
		}
		all.add(&t)
	}
	if err := lines.Err(); err != nil {
		return errors.Wrap(err, "read the report")
	}
	return all.table(out)
}

// table shows what was done, for people and for the page about it.
func (s *total) table(out io.Writer) error {
	rows := []string{"| what | how often |", "|---|---:|"}
	row := func(what string, n int) { rows = append(rows, fmt.Sprintf("| %s | %d |", what, n)) }
	row("commands", s.Commands)
	row("times that one was sent", s.Tries)
	row("accepted", s.Accepted)
	row("events", s.Events)
	for _, name := range slices.Sorted(maps.Keys(s.Counts)) {
		row(name, s.Counts[name])
	}
	row("violations", s.found)
	rows = append(rows, "", "| how long it took | times | median | p99 | longest |", "|---|---:|---:|---:|---:|")
	for _, name := range slices.Sorted(maps.Keys(s.Took)) {
		list := slices.Sorted(slices.Values(s.Took[name]))
		at := func(p float64) time.Duration {
			return time.Duration(list[max(int(math.Ceil(p*float64(len(list)))), 1)-1]) * time.Millisecond
		}
		rows = append(rows, fmt.Sprintf("| %s | %d | %s | %s | %s |", name, len(list), at(.5), at(.99), at(1)))
	}
	for _, r := range rows {
		if _, err := fmt.Fprintln(out, r); err != nil {
			return errors.Wrap(err, "write the report")
		}
	}
	return nil
}

package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"catenary/agent/driver"
	"catenary/commands"
	"catenary/events"
)

// place is a node with an agent that may be killed at any moment: all that outlives one is the disk and what runs.
type place struct {
	t *rapid.T
	// told is the latest instruction of each module, early some answers that are on their way for long.
	told     map[string]Instruction
	early    []Answer
	sequence uint64
	requires map[string][]string

	state State
	disk  []byte
	runs  map[string]string
	// applies lists the sources that were applied, of each module.
	applies map[string][]uint64
	sent    map[string]string
	order   []Report
	starts  int
}

const badVersion = "bad"

var placeModules = []string{"a", "b", "c", "d"}

func newPlace(t *rapid.T) *place {
	p := &place{
		t: t, told: map[string]Instruction{}, requires: map[string][]string{}, runs: map[string]string{}, applies: map[string][]uint64{}, sent: map[string]string{},
		state: NewState("n1"),
	}
	for i, name := range placeModules {
		for _, other := range placeModules[i+1:] {
			if rapid.IntRange(0, 2).Draw(t, "requires") == 0 {
				p.requires[name] = append(p.requires[name], other)
			}
		}
	}
	if rapid.IntRange(0, 5).Draw(t, "circle") == 0 {
		p.requires["d"] = []string{"a"}
	}
	p.save()
	return p
}

func (p *place) save() {
	text, err := json.Marshal(p.state)
	if err != nil {
		p.t.Fatal(err)
	}
	p.disk = text
}

func (p *place) kill() {
	p.state = State{}
	if err := json.Unmarshal(p.disk, &p.state); err != nil {
		p.t.Fatal(err)
	}
	p.starts++
	p.state.begin(fmt.Sprint("run", p.starts))
}

// tell lets the chain say something new of a module.
func (p *place) tell() {
	name := rapid.SampledFrom(placeModules).Draw(p.t, "module")
	p.sequence += uint64(rapid.IntRange(1, 3).Draw(p.t, "events"))
	i := p.told[name]
	i.Source, i.Module, i.Requires = p.sequence, name, p.requires[name]
	if rapid.Bool().Draw(p.t, "by a rollout") {
		i.Rollout = fmt.Sprint("r", p.sequence)
	}
	switch rapid.IntRange(0, 9).Draw(p.t, "what") {
	case 0, 1:
		i.Stands, i.Ended = false, true
	case 2:
		i.Stands, i.Ended, i.Reference = false, false, version("pended")
	case 3:
		i.Stands, i.Ended, i.Reference = true, false, version(badVersion)
	case 4: // just the same again, or for others' sake
		if rapid.Bool().Draw(p.t, "for others") {
			i.RequiredBy = []string{fmt.Sprint("x", p.sequence)}
		}
	default:
		i.Stands, i.Ended, i.Reference = true, false, version(rapid.SampledFrom([]string{"1", "2", "3"}).Draw(p.t, "version"))
	}
	p.told[name] = i
	if rapid.Bool().Draw(p.t, "noticed") {
		p.early = append(p.early, p.answer())
	}
}

func version(v string) events.Reference {
	return events.Reference{Package: &events.Package{Name: "x", Version: v}}
}

func (p *place) answer() Answer {
	a := Answer{Node: "n1", Known: true, ManagedBy: events.ManagedByAgent, Edition: fmt.Sprint(p.sequence)}
	for _, name := range placeModules {
		if i, ok := p.told[name]; ok {
			a.Told = append(a.Told, i)
		}
	}
	return a
}

// deliver brings an answer to the agent, which may be one of long ago.
func (p *place) deliver() {
	a := p.answer()
	if len(p.early) > 0 && rapid.Bool().Draw(p.t, "early") {
		a = rapid.SampledFrom(p.early).Draw(p.t, "answer")
	}
	before := map[string]uint64{}
	for name, m := range p.state.Modules {
		before[name] = m.Told.Source
	}
	p.state.Learn(a)
	for name, source := range before {
		if p.state.Modules[name].Told.Source < source {
			p.t.Fatalf("%s goes back from instruction %d to %d", name, source, p.state.Modules[name].Told.Source)
		}
	}
}

// killed draws whether the agent is killed here.
func (p *place) killed(crashes bool) bool {
	if crashes && rapid.IntRange(0, 3).Draw(p.t, "killed") == 0 {
		p.kill()
		return true
	}
	return false
}

func (p *place) found(i Instruction) driver.Finding {
	switch p.runs[i.Module] {
	case "":
		return driver.Finding{State: driver.Absent}
	case i.task("n1", 1).Version():
		return driver.Finding{State: driver.AsTold}
	}
	return driver.Finding{State: driver.Other, Found: "another one runs"}
}

var simDriver = events.Driver{Name: "sim", Version: "1"}

// act does what is next, and says whether there was something.
func (p *place) act(crashes bool) bool {
	action, ok := p.state.Next(func(name string) bool {
		return p.state.Modules[name].Failure != "" && p.state.Modules[name].Attempts >= 3
	})
	if !ok {
		return false
	}
	i := action.Instruction
	if action.Settle {
		p.state.Settle(p.found(i), Done{Driver: &simDriver})
		if !p.killed(crashes) {
			p.save()
		}
		return true
	}
	p.ordered(action)
	p.state.Begin(action)
	if p.killed(crashes) {
		return true
	}
	p.save()
	if p.killed(crashes) {
		return true
	}
	done := Done{Driver: &simDriver}
	switch {
	case action.Deed == Remove:
		delete(p.runs, i.Module)
	case i.Package.Version == badVersion:
		done.Failure = "it does not start"
	default:
		p.runs[i.Module] = i.Package.Version
		p.applies[i.Module] = append(p.applies[i.Module], i.Source)
	}
	if p.killed(crashes) {
		return true
	}
	if crashes && rapid.IntRange(0, 4).Draw(p.t, "told meanwhile") == 0 {
		p.tell()
		p.deliver()
	}
	p.state.End(done)
	if p.killed(crashes) {
		return true
	}
	p.save()
	return true
}

// ordered holds an action to what its module requires, as far as the agent knows.
func (p *place) ordered(a Action) {
	name := a.Instruction.Module
	for _, other := range placeModules {
		o, known := p.state.Modules[other]
		if !known {
			continue
		}
		switch {
		case a.Deed == Apply && slices.Contains(p.requires[name], other) && o.Told.Stands && o.Settled != o.Told.Source && len(p.requires["d"]) == 0:
			p.t.Fatalf("%s is applied before %s, which it requires", name, other)
		case a.Deed == Remove && slices.Contains(p.requires[other], name) && o.Told.Ended && p.runs[other] != "" && o.Settled != o.Told.Source && len(p.requires["d"]) == 0:
			p.t.Fatalf("%s is removed before %s, which requires it", name, other)
		}
	}
}

// handOn sends all reports, which are on disk by then, and may be killed before that is noted.
func (p *place) handOn(crashes bool) {
	p.save()
	for _, r := range p.state.Reports {
		text, err := json.Marshal(r.Command)
		if err != nil {
			p.t.Fatal(err)
		}
		if err := r.Command.Validate(); err != nil {
			p.t.Fatalf("a report that is refused: %v", err)
		}
		before, again := p.sent[r.ID]
		if again && before != string(text) {
			p.t.Fatalf("report %s was\n%s and is\n%s", r.ID, before, text)
		}
		if !again {
			p.sent[r.ID] = string(text)
			p.order = append(p.order, r)
		}
	}
	p.state.HandedOn(len(p.state.Reports))
	if !p.killed(crashes) {
		p.save()
	}
}

// TestConverges lets anything be told, delivered late or never, and the agent be killed between any two writes. In the end the node is as
// it was told; no instruction was applied twice; and the last report of each module is about its last instruction.
func TestConverges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := newPlace(t)
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0, 1:
				p.tell()
			case 2:
				p.deliver()
			case 3:
				p.handOn(true)
			default:
				p.act(true)
			}
		}
		p.early = nil
		p.deliver()
		for rounds := 0; p.act(false); rounds++ {
			if rounds > 100 {
				t.Fatalf("it does not come to rest: %+v", p.state)
			}
		}
		p.handOn(false)
		p.converged()
	})
}

func (p *place) converged() {
	for _, name := range placeModules {
		told, ok := p.told[name]
		if !ok {
			continue
		}
		blocked := slices.ContainsFunc(p.state.Waits(func(string) bool { return true }), func(w Waiting) bool { return w.Module == name && w.For != "" })
		good := told.Stands && told.Package.Version != badVersion
		switch {
		case good && !blocked && p.runs[name] != told.Package.Version:
			p.t.Fatalf("%s runs %q and is told %s", name, p.runs[name], told.Package.Version)
		case !told.Stands && p.runs[name] != "":
			p.t.Fatalf("%s runs %s and is told not to", name, p.runs[name])
		}
		sources := slices.Sorted(slices.Values(p.applies[name]))
		if twice := slices.Compact(slices.Clone(sources)); len(twice) != len(sources) {
			p.t.Fatalf("instructions of %s were applied twice: %v", name, p.applies[name])
		}
		if !blocked {
			p.reported(told)
		}
	}
}

func (p *place) reported(told Instruction) {
	var last *Report
	for _, r := range p.order {
		if r.Command.Module == told.Module {
			last = &r
		}
	}
	want := commands.OutcomeApplied
	switch {
	case told.Ended:
		want = commands.OutcomeRemoved
	case !told.Stands:
		return // what waits is no instruction: there is nothing to say of it
	case told.Package.Version == badVersion:
		want = commands.OutcomeApplyFailed
	}
	if last == nil || last.Command.Outcome != want || last.Command.Source != told.Source || last.Command.Rollout != told.Rollout {
		p.t.Fatalf("the last report of %+v is %+v, want %s", told, last, want)
	}
}

func standing(module string, source uint64, v string) Instruction {
	return Instruction{Source: source, Module: module, Stands: true, Reference: version(v), Build: "b" + v, Rollout: "r1"}
}

func learned(instructions ...Instruction) State {
	s := NewState("n1")
	s.Learn(Answer{Node: "n1", Known: true, ManagedBy: events.ManagedByAgent, Edition: "99", Told: instructions})
	return s
}

func (s *State) do(t *testing.T, done Done) {
	t.Helper()
	a, ok := s.Next(func(name string) bool { return s.Modules[name].Attempts > 0 })
	if !ok {
		t.Fatal("there is nothing to do")
	}
	s.Begin(a)
	s.End(done)
}

// outcomes gives the reports in short.
func (s *State) outcomes() []string {
	var found []string
	for _, r := range s.Reports {
		c := r.Command
		found = append(found, fmt.Sprintf("%s %s of %s at %d", c.Module, c.Outcome, c.Rollout, c.Source))
	}
	return found
}

// Case B19, the agent's side: what a holder of the lease that is none any more may have told comes with an older source.
func TestStaleInstructionsAreRefused(t *testing.T) {
	t.Parallel()
	s := learned(standing("web", 20, "2"))
	s.do(t, Done{Driver: &simDriver})
	changed := s.Learn(Answer{Node: "n1", Known: true, Edition: "10", Told: []Instruction{standing("web", 10, "1")}})
	if _, more := s.Next(func(string) bool { return false }); more || len(changed) > 0 {
		t.Errorf("a stale instruction is acted on: %v", changed)
	}
	if diff := cmp.Diff(&StaleTold{Module: "web", Source: 10, Known: 20}, s.LastStale); diff != "" || s.Stale != 1 {
		t.Errorf("refused %d, last (-want +got):\n%s", s.Stale, diff)
	}
	if st := s.status(func(string) bool { return false }, 0, nil); st.Stale != 1 || st.LastStale == nil {
		t.Errorf("the status does not tell: %+v", st)
	}
}

func TestNothingIsDoneOnNodesOfOthers(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]Answer{
		"external": {Node: "n1", Known: true, ManagedBy: events.ManagedByExternal, Told: []Instruction{standing("web", 1, "1")}},
		"unknown":  {Node: "n1", Told: []Instruction{standing("web", 1, "1")}},
		"another":  {Node: "n2", Known: true, Told: []Instruction{standing("web", 1, "1")}},
	} {
		s := NewState("n1")
		s.Learn(a)
		if action, ok := s.Next(func(string) bool { return false }); ok || len(s.Modules) > 0 {
			t.Errorf("%s: it does %+v", name, action)
		}
	}
	// One that was ours, with something begun, is left alone from then on.
	s := learned(standing("web", 1, "1"))
	a, _ := s.Next(func(string) bool { return false })
	s.Begin(a)
	s.Learn(Answer{Node: "n1", Known: true, ManagedBy: events.ManagedByExternal})
	if action, ok := s.Next(func(string) bool { return false }); ok {
		t.Errorf("it does %+v on a node that is another's by now", action)
	}
}

func TestDriftIsSaidOnce(t *testing.T) {
	t.Parallel()
	s := learned(standing("web", 7, "1"))
	s.do(t, Done{Driver: &simDriver})
	s.HandedOn(1)
	other := driver.Finding{State: driver.Other, Found: "web 9 runs"}
	for _, step := range []struct {
		found driver.Finding
		says  string
	}{
		{driver.Finding{State: driver.AsTold}, ""},
		{other, "web drifted of r1 at 7"},
		{other, ""},
		{driver.Finding{State: driver.Unknown}, ""},
		{driver.Finding{State: driver.Absent}, "web drifted of r1 at 7"},
		{driver.Finding{State: driver.Absent}, ""},
		{driver.Finding{State: driver.AsTold}, "web applied of r1 at 7"},
		{driver.Finding{State: driver.AsTold}, ""},
	} {
		said := s.Observe("web", 7, step.found)
		got := ""
		if n := s.outcomes(); len(n) > 0 {
			got = n[0]
			s.HandedOn(1)
		}
		if got != step.says || said != (step.says != "") {
			t.Errorf("finding %+v it says %q, want %q", step.found, got, step.says)
		}
	}
	if s.Observe("web", 6, other) || s.Observe("api", 7, other) {
		t.Error("it takes what was found of something else")
	}
}

// TestHealthIsSaidAgainAfterADrift: of a node's reports the newest counts, and that it is as told again does not say that it is well.
func TestHealthIsSaidAgainAfterADrift(t *testing.T) {
	t.Parallel()
	s := learned(standing("web", 7, "1"))
	s.do(t, Done{Driver: &simDriver})
	s.Judge("web", 7, Healthy, "")
	s.Observe("web", 7, driver.Finding{State: driver.Absent})
	s.Observe("web", 7, driver.Finding{State: driver.AsTold})
	want := []string{"web applied of r1 at 7", "web healthy of r1 at 7", "web drifted of r1 at 7", "web applied of r1 at 7", "web healthy of r1 at 7"}
	if diff := cmp.Diff(want, s.outcomes()); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
}

func TestHealthNamesWhatIsApplied(t *testing.T) {
	t.Parallel()
	s := learned(standing("web", 7, "1"))
	s.do(t, Done{Driver: &simDriver})
	for _, v := range []Verdict{Healthy, Healthy, Unhealthy, Healthy} {
		s.Judge("web", 7, v, "because")
	}
	s.Judge("web", 6, Unhealthy, "of another")
	want := []string{"web applied of r1 at 7", "web healthy of r1 at 7", "web unhealthy of r1 at 7", "web healthy of r1 at 7"}
	if diff := cmp.Diff(want, s.outcomes()); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
	if c := s.Reports[2].Command; c.Build != "b1" || c.Reason != "because" || *c.Driver != simDriver {
		t.Errorf("it reports %+v", c)
	}
}

// TestSettledWithItsOutputs reports what a deed hands on that was found done after a kill, and once more for whoever is told for others' sake.
func TestSettledWithItsOutputs(t *testing.T) {
	t.Parallel()
	first := standing("web", 7, "1")
	first.Record = json.RawMessage(`{"inputs":[{"node":"n1","module":"db","values":{"port":"1"},"changed":["port"]}]}`)
	s := learned(first)
	action, _ := s.Next(func(string) bool { return false })
	s.Begin(action)
	outputs := map[string]string{"port": "80"}
	if !s.Settle(driver.Finding{State: driver.AsTold, Outputs: outputs}, Done{Driver: &simDriver, Outputs: outputs}) {
		t.Fatal("it is not settled")
	}
	again := first
	again.Source, again.RequiredBy, again.Record = 9, []string{"shop"}, json.RawMessage(`{"inputs":[{"node":"n1","module":"db","values":{"port":"1"}}]}`)
	s.Learn(Answer{Node: "n1", Known: true, Told: []Instruction{again}})
	if len(s.Reports) != 2 {
		t.Fatalf("it reports %v", s.outcomes())
	}
	for _, r := range s.Reports {
		if diff := cmp.Diff(outputs, r.Command.Outputs); diff != "" {
			t.Errorf("handed on (-want +got):\n%s", diff)
		}
	}
	other := again
	other.Source, other.RequiredBy, other.Record = 11, nil, json.RawMessage(`{"inputs":[{"node":"n1","module":"db","values":{"port":"2"},"changed":["port"]}]}`)
	s.Learn(Answer{Node: "n1", Known: true, Told: []Instruction{other}})
	if action, ok := s.Next(func(string) bool { return false }); !ok || action.Instruction.Source != 11 {
		t.Errorf("handed another value, it does %+v", action)
	}
}

// TestToldForOthersSake adopts an instruction that asks for nothing new, and says so of it: what was said of the one before does not count
// for it.
func TestToldForOthersSake(t *testing.T) {
	t.Parallel()
	first := standing("web", 7, "1")
	s := learned(first)
	s.do(t, Done{Driver: &simDriver})
	s.Judge("web", 7, Healthy, "")
	again := first
	again.Source, again.RequiredBy = 9, []string{"shop"}
	s.Learn(Answer{Node: "n1", Known: true, Told: []Instruction{again}})
	if action, ok := s.Next(func(string) bool { return false }); ok {
		t.Errorf("it does %+v", action)
	}
	want := []string{"web applied of r1 at 7", "web healthy of r1 at 7", "web applied of r1 at 9", "web healthy of r1 at 9"}
	if diff := cmp.Diff(want, s.outcomes()); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
	same := again
	same.Source = 11
	s.Learn(Answer{Node: "n1", Known: true, Told: []Instruction{same}})
	if action, ok := s.Next(func(string) bool { return false }); !ok || action.Instruction.Source != 11 {
		t.Errorf("told just the same again, it does %+v", action)
	}
}

func TestFailuresOfRolloutsAreNotTriedAgain(t *testing.T) {
	t.Parallel()
	byHand := standing("api", 8, "1")
	byHand.Rollout = ""
	s := learned(standing("web", 7, "1"), byHand)
	s.do(t, Done{Failure: "no"})
	s.do(t, Done{Failure: "no"})
	action, ok := s.Next(func(string) bool { return false })
	if !ok || action.Instruction.Module != "api" || action.Attempt != 2 {
		t.Errorf("next is %+v, %t", action, ok)
	}
	rests := func(name string) bool { return name == "api" }
	if _, ok := s.Next(rests); ok || s.Converged() {
		t.Error("it does not rest, or takes itself for converged")
	}
	if diff := cmp.Diff([]Waiting{{Module: "api", Reason: "no"}}, s.Waits(rests)); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
}

// TestReportsCanBeRecorded whatever drivers hand on: a report that nobody takes would keep back all that come after it.
func TestReportsCanBeRecorded(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for n := range 2000 {
		many[fmt.Sprint("name ", n)] = strings.Repeat("x", 5000)
	}
	s := learned(standing("web", 7, "1"))
	s.do(t, Done{Driver: &events.Driver{Name: "odd", Version: strings.Repeat("v", 5000)}, Outputs: many})
	s.Observe("web", 7, driver.Finding{State: driver.Other, Found: "\x1b[31m\xff" + strings.Repeat("long ", 5000)})
	s.Observe("web", 7, driver.Finding{State: driver.Other, Found: "\x00"})
	s.Judge("web", 7, Unhealthy, "\x00\r\nbad\a")
	if len(s.Reports) != 4 {
		t.Errorf("it says %v", s.outcomes())
	}
	for _, r := range s.Reports {
		if err := r.Command.Validate(); err != nil {
			t.Errorf("%s: %v", r.Command.Outcome, err)
		}
	}
}

func TestWaitsForWhatFailed(t *testing.T) {
	t.Parallel()
	web := standing("web", 7, "1")
	web.Requires = []string{"db"}
	s := learned(web, standing("db", 8, "1"))
	s.do(t, Done{Failure: "db is down"})
	if action, ok := s.Next(func(string) bool { return false }); ok {
		t.Errorf("it does %+v", action)
	}
	want := []Waiting{{Module: "web", For: "db", Reason: "db is down"}}
	if diff := cmp.Diff(want, s.Waits(func(string) bool { return false })); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
}

package health

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// lookPatience bounds what is looked at when somebody asks: whoever asks for health waits for seconds at most.
const lookPatience = 2 * time.Second

// Registry keeps the checks of a process. It may be used by many goroutines, and a nil one keeps nothing.
type Registry struct {
	process Process
	now     func() time.Time

	mu sync.Mutex
	// said holds what the parts say by themselves, looks what is looked at, and seen since when the latter are as they are.
	said  map[string]Check
	looks map[int]func(context.Context) []Check
	pulse map[string]*Pulse
	seen  map[string]Check
	next  int
}

// New returns a registry without checks.
func New(p Process, now func() time.Time) *Registry {
	if p.Started.IsZero() {
		p.Started = now().UTC()
	}
	return &Registry{
		process: p, now: now, said: map[string]Check{}, looks: map[int]func(context.Context) []Check{}, pulse: map[string]*Pulse{}, seen: map[string]Check{},
	}
}

// Signal is a check that its part sets when something happens to it.
type Signal struct {
	registry *Registry
	name     string
}

// Signal adds a check, or takes over the one of that name.
func (r *Registry) Signal(name string, first Finding) *Signal {
	s := &Signal{registry: r, name: name}
	s.Set(first)
	return s
}

// Set says how it is from now on.
func (s *Signal) Set(f Finding) {
	if s == nil || s.registry == nil {
		return
	}
	r := s.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said[s.name] = r.dated(r.said[s.name], Check{Name: s.name, Finding: f})
}

// OK says that it is as it should be.
func (s *Signal) OK(reason string) { s.Set(Finding{State: OK, Reason: reason}) }

// Warn says that somebody should look at it.
func (s *Signal) Warn(code Code, reason, next string) {
	s.Set(Finding{State: Warn, Code: code, Reason: reason, Next: next})
}

// Fail says that it does not work.
func (s *Signal) Fail(code Code, reason, next string) {
	s.Set(Finding{State: Fail, Code: code, Reason: reason, Next: next})
}

// Drop takes the check away: what it was about is over.
func (s *Signal) Drop() {
	if s == nil || s.registry == nil {
		return
	}
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	delete(s.registry.said, s.name)
}

// dated gives a check the moment since when it is in its state, unless it tells that itself.
func (r *Registry) dated(before, c Check) Check {
	switch {
	case !c.Since.IsZero():
	case before.State == c.State:
		c.Since = before.Since
	default:
		c.Since = r.now()
	}
	c.Since = c.Since.UTC()
	return c
}

// Look adds checks that nobody tells of: they are looked at whenever somebody asks. The look MUST keep to its context. What is given
// takes them away again.
func (r *Registry) Look(look func(context.Context) []Check) (forget func()) {
	if r == nil {
		return func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	id := r.next
	r.next++
	r.looks[id] = look
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.looks, id)
	}
}

// Pulse is a check that something goes round. It is vital: what has stopped going round does not begin again by itself.
type Pulse struct {
	registry *Registry
	name     string
	limit    time.Duration

	mu   sync.Mutex
	last time.Time
}

// Pulse adds a check that fails when there was no beat for longer than the limit.
func (r *Registry) Pulse(name string, limit time.Duration) *Pulse {
	if r == nil {
		return nil
	}
	p := &Pulse{registry: r, name: name, limit: limit, last: r.now()}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pulse[name] = p
	return p
}

// Beat says that it goes round.
func (p *Pulse) Beat() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = p.registry.now()
}

// Stop takes the check away.
func (p *Pulse) Stop() {
	if p == nil {
		return
	}
	p.registry.mu.Lock()
	defer p.registry.mu.Unlock()
	if p.registry.pulse[p.name] == p {
		delete(p.registry.pulse, p.name)
	}
}

// check judges the pulse at a moment.
func (p *Pulse) check(now time.Time) Check {
	p.mu.Lock()
	last := p.last
	p.mu.Unlock()
	c := Check{Name: p.name, Vital: true, Finding: Finding{State: OK}}
	if still := now.Sub(last); still > p.limit {
		c.Finding = Finding{
			State: Fail, Code: Stuck, Reason: fmt.Sprintf("it has not moved for %s", still.Round(time.Second)), Next: "start the process again; SIGQUIT writes down first where it stands",
			Since: last,
		}
	}
	return c
}

// Alive gives the vital checks alone: it asks nobody and waits for nothing.
func (r *Registry) Alive() Report { return r.report(r.pulses()) }

func (r *Registry) pulses() []Check {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	pulses := slices.Collect(maps.Values(r.pulse))
	r.mu.Unlock()
	var checks []Check
	for _, p := range pulses {
		checks = append(checks, p.check(r.now()))
	}
	return checks
}

// Report gives all checks, after looking at those that nobody tells of, for two seconds at most.
func (r *Registry) Report(ctx context.Context) Report {
	checks := r.pulses()
	if r == nil {
		return r.report(checks)
	}
	r.mu.Lock()
	checks = slices.AppendSeq(checks, maps.Values(r.said))
	looks := slices.Collect(maps.Values(r.looks))
	r.mu.Unlock()
	return r.report(append(checks, r.look(ctx, looks)...))
}

// look looks at everything at the same time.
func (r *Registry) look(ctx context.Context, looks []func(context.Context) []Check) []Check {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	found := make([][]Check, len(looks))
	var group sync.WaitGroup
	for i, look := range looks {
		group.Go(func() { found[i] = look(ctx) })
	}
	group.Wait()
	checks := slices.Concat(found...)
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := make(map[string]Check, len(checks))
	for i, c := range checks {
		checks[i] = r.dated(r.seen[c.Name], c)
		seen[c.Name] = checks[i]
	}
	r.seen = seen
	return checks
}

// report puts checks together, by name.
func (r *Registry) report(checks []Check) Report {
	report := Report{State: OK, Checks: checks}
	if r != nil {
		report.Process, report.At = r.process, r.now().UTC()
	}
	slices.SortFunc(checks, func(a, b Check) int { return cmp.Compare(a.Name, b.Name) })
	for _, c := range checks {
		report.State = report.State.Worse(c.State)
	}
	return report
}

package agent

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"unicode/utf8"

	"github.com/google/uuid"

	"catenary/agent/driver"
	"catenary/commands"
	"catenary/events"
)

// Report is a command that tells of something, with the id that it keeps however often it is sent.
type Report struct {
	ID      string           `json:"id"`
	Command commands.Observe `json:"command"`
	// Trace is the traceparent of what it is about, where somebody traces.
	Trace string `json:"trace,omitempty"`
}

// say adds a report about a module.
func (s *State) say(m Module, outcome, reason string) {
	s.Said++
	i := m.Told
	c := commands.Observe{Outcome: outcome, Seen: events.Seen{
		Node: s.Node, Module: i.Module, Reference: i.Reference, Build: i.Build, Rollout: i.Rollout, Source: i.Source,
		Reason: text(reason),
	}}
	if m.Applied != nil && m.Applied.Driver.Name != "" {
		by := m.Applied.Driver
		c.Driver = &by
	}
	switch outcome {
	case commands.OutcomeApplied:
		c.Outputs = m.Applied.Outputs
	case commands.OutcomeDrifted:
		c.Drift = cmp.Or(text(m.Drift), "something else runs")
	}
	if err := c.Validate(); err != nil {
		// What a driver hands on may be more than can be recorded. That it is done can be, and must not be kept back for ever.
		c.Outputs, c.Driver, c.Reason = nil, nil, text("not all of this report can be recorded: "+err.Error())
	}
	s.Reports = append(s.Reports, Report{ID: s.reportID(), Command: c, Trace: i.Trace})
}

// reportID gives an id that holds no time: a node's clock may be wrong by years, and an agent away for months. A run counts from one, so a state
// that is older than what was said, put back from a copy, says nothing under an id that has been used.
func (s *State) reportID() string {
	return uuid.NewHash(sha256.New(), uuid.NameSpaceURL, fmt.Appendf(nil, "catenary agent %q %q report %d", s.Node, s.Run, s.Said), 8).String()
}

// HandedOn forgets the first so many reports.
func (s *State) HandedOn(n int) { s.Reports = append([]Report(nil), s.Reports[n:]...) }

// text makes of what drivers and commands say what a report may hold.
func text(s string) string { return cut(driver.Printable(s), commands.MaxTextBytes) }

// cut shortens text at a character's end.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

package commands

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"catenary/events"
)

// Bounds of what a module hands on to those that wait for it. It is kept in the writer's memory while the module stands, and in each record
// of a step and of an assignment that is handed it.
const (
	// MaxOutputs bounds the values.
	MaxOutputs = 64
	// MaxOutputsBytes bounds all of them together, as JSON.
	MaxOutputsBytes = 8 << 10
	// MaxInputsBytes bounds what one module on a node is handed, as JSON.
	MaxInputsBytes = 16 << 10
)

// CheckOutputs says whether values can be handed on. It gives errors of type *[es.Refusal].
func CheckOutputs(outputs map[string]string) error {
	var k check
	k.outputs("outputs", outputs)
	if k.first == nil {
		return nil
	}
	return k.first
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c PlanRollout) Validate() error {
	var k check
	k.name("id", c.ID)
	k.between("part", c.Part, 1, MaxPlanSteps)
	switch {
	case c.Part == 1 && c.Head == nil:
		k.fail(CodeMissingField, "head is not given", "the first part says what is planned, and with which strategy")
	case c.Part > 1 && c.Head != nil:
		k.failf(CodeBadValue, "leave it out", "head is given with part %d: only the first part has one", c.Part)
	case c.Head != nil:
		k.planHead(*c.Head, c.ID)
	}
	if n := len(c.Steps); n > MaxPartSteps {
		k.failf(CodeTooLarge, "write the plan down in more parts", "steps has %d items: the limit of a part is %d", n, MaxPartSteps)
	}
	for i, s := range c.Steps {
		k.plannedStep(item("steps", i), s)
	}
	k.closing(c)
	return k.done(c.Ref())
}

func (c *check) closing(p PlanRollout) {
	closes := p.Digest != ""
	switch {
	case !closes && (p.Count != 0 || p.Confirm != nil):
		c.fail(CodeMissingField, "count or confirm is given without a digest", "the part that closes the plan has the digest and the count of all steps")
	case !closes && len(p.Steps) == 0:
		c.failf(CodeMissingField, "give steps, or the digest to close the plan", "part %d has neither steps nor a digest", p.Part)
	case closes:
		if sum, err := hex.DecodeString(p.Digest); err != nil || len(sum) != len(events.PlanDigest{}) {
			c.failf(CodeBadValue, "give the SHA-256 in hex", "digest %.80q is none", p.Digest)
		}
		c.between("count", p.Count, 0, MaxPlanSteps)
	}
}

func (c *check) planHead(h events.PlanHead, id string) {
	strategy := c.strategy("head.strategy", h.Strategy)
	c.maybeName("head.strategy-name", h.StrategyName)
	if c.first == nil && h.StrategyDigest != digestOf(strategy) {
		c.failf(CodeBadValue, "the digest is the SHA-256 of the canonical form", "head.strategy-digest %.80q is not that of head.strategy", h.StrategyDigest)
	}
	c.text("head.reason", h.Reason)
	c.maybeName("head.track", h.Track)
	c.maybeName("head.reverts", h.Reverts)
	if h.Reverts == id {
		c.fail(CodeBadValue, "head.reverts names the rollout itself", "")
	}
	c.names("head.supersedes", h.Supersedes)
	c.count("head.commits", len(h.Commits))
	repositories := make([]string, len(h.Commits))
	for i, f := range h.Commits {
		field := item("head.commits", i)
		c.name(field+".repository", f.Repository)
		c.maybeName(field+".branch", f.Branch)
		c.name(field+".commit", f.Commit)
		repositories[i] = f.Repository
	}
	c.distinct("head.commits", repositories)
	c.count("head.targets", len(h.Targets))
	for i, t := range h.Targets {
		field := item("head.targets", i)
		c.name(field+".module", t.Module)
		c.version(field, t.Version)
	}
}

// digestOf gives the digest of a strategy's canonical form; empty for what is no strategy.
func digestOf(s events.Strategy) string {
	_, digest, err := s.Canonical()
	if err != nil {
		return ""
	}
	return digest
}

func (c *check) plannedStep(field string, s events.PlannedStep) {
	if c.first != nil {
		return // a plan has many steps: no work after the first thing that is wrong
	}
	c.name(field+".tier", s.Tier)
	c.stepName(field+".", s.StepName)
	switch {
	case s.Before == nil && s.After == nil:
		c.failf(CodeMissingField, "leave the step out", "%s changes nothing: neither before nor after is given", field)
	case s.Refresh && (s.Before == nil || s.After == nil || !s.Before.Same(*s.After)):
		c.failf(CodeBadValue, "", "%s is a refresh and changes something", field)
	case !s.Refresh && s.Before != nil && s.After != nil && s.Before.Same(*s.After):
		c.failf(CodeBadValue, "leave the step out", "%s changes nothing: before and after are the same", field)
	}
	if s.Before != nil {
		c.version(field+".before", *s.Before)
	}
	if s.After != nil {
		c.version(field+".after", *s.After)
		if s.After.IsZero() && s.After.Build == "" {
			c.failf(CodeMissingField, "say what shall run", "%s.after says nothing", field)
		}
	}
	if n := len(s.WaitsFor); n > MaxWaitsFor {
		c.failf(CodeTooLarge, "", "%s.waits-for has %d items: the limit is %d", field, n, MaxWaitsFor)
	}
	for i, w := range s.WaitsFor {
		c.stepName(fmt.Sprintf("%s.waits-for[%d].", field, i), w.StepName)
		if w.StepName == s.StepName {
			c.failf(CodeBadValue, "", "%s waits for itself", field)
		}
	}
	c.between(field+".tried", s.Tried, 0, events.MaxRetries)
}

func (c *check) version(field string, v events.Version) {
	c.reference(v.Reference, false)
	c.maybeName(field+".build", v.Build)
	c.maybeName(field+".commit", v.Commit)
}

// stepName checks a step's names; the prefix is what stands before their fields.
func (c *check) stepName(prefix string, n events.StepName) {
	c.name(prefix+"node", n.Node)
	c.name(prefix+"module", n.Module)
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c ApproveRollout) Validate() error {
	var k check
	k.name("id", c.ID)
	k.maybeName("tier", c.Tier)
	k.text("reason", c.Reason)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c StartRollout) Validate() error {
	var k check
	k.name("id", c.ID)
	k.text("reason", c.Reason)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c AdvanceRollout) Validate() error {
	var k check
	k.name("id", c.ID)
	k.count("offline", len(c.Offline))
	for i, n := range c.Offline {
		k.stepName(item("offline", i)+".", n)
	}
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c BeginStep) Validate() error {
	var k check
	k.name("id", c.ID)
	k.stepName("", c.StepName)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c EndStep) Validate() error {
	var k check
	k.name("id", c.ID)
	k.stepName("", c.StepName)
	k.between("attempt", c.Attempt, 0, 1<<30)
	k.oneOf("outcome", c.Outcome, events.StepDone, events.StepFailed, events.StepUnknown, events.StepSkipped)
	k.text("reason", c.Reason)
	k.outputs("outputs", c.Outputs)
	k.driver(c.Driver)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c SettleStep) Validate() error {
	var k check
	k.name("id", c.ID)
	k.stepName("", c.StepName)
	k.oneOf("outcome", c.Outcome, events.StepDone, events.StepFailed, events.StepSkipped)
	k.need("reason", c.Reason)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c RetryStep) Validate() error {
	var k check
	k.name("id", c.ID)
	k.stepName("", c.StepName)
	k.need("reason", c.Reason)
	return k.done(c.Ref())
}

// MaxHolds bounds the reasons of one blocked event. There is one for each reason in each tier.
const MaxHolds = 64

// MaxHeldSteps bounds the steps that a reason names; the others are counted.
const MaxHeldSteps = 10

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c BlockRollout) Validate() error {
	var k check
	k.name("id", c.ID)
	if n := len(c.Holds); n == 0 || n > MaxHolds {
		k.failf(CodeBadValue, "", "holds has %d items: there are between 1 and %d", n, MaxHolds)
	}
	for i, h := range c.Holds {
		field := item("holds", i)
		k.name(field+".reason", h.Reason)
		k.maybeName(field+".tier", h.Tier)
		if n := len(h.Steps); n > MaxHeldSteps {
			k.failf(CodeTooLarge, "name the first and count the others", "%s.steps has %d items: the limit is %d", field, n, MaxHeldSteps)
		}
		for j, n := range h.Steps {
			k.stepName(fmt.Sprintf("%s.steps[%d].", field, j), n)
		}
		k.between(field+".count", h.Count, 0, MaxPlanSteps)
		k.text(field+".waits-for", h.WaitsFor)
	}
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c PauseRollout) Validate() error {
	var k check
	k.name("id", c.ID)
	k.text("reason", c.Reason)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c ResumeRollout) Validate() error {
	var k check
	k.name("id", c.ID)
	k.text("reason", c.Reason)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c AbortRollout) Validate() error {
	var k check
	k.name("id", c.ID)
	k.text("reason", c.Reason)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c SupersedeRollout) Validate() error {
	var k check
	k.name("id", c.ID)
	k.name("by", c.By)
	if c.By == c.ID {
		k.fail(CodeBadValue, "by names the rollout itself", "name the rollout that takes its place")
	}
	k.text("reason", c.Reason)
	return k.done(c.Ref())
}

// outputs checks values that a step hands on: names with free text.
func (c *check) outputs(field string, outputs map[string]string) {
	if n := len(outputs); n > MaxOutputs {
		c.failf(CodeTooLarge, "hand on fewer values", "%s has %d values: the limit is %d", field, n, MaxOutputs)
	}
	for _, name := range sortedNames(outputs) {
		c.name("an output's name in "+field, name)
		c.text(field+"."+name, outputs[name])
	}
	if len(outputs) == 0 || c.first != nil {
		return
	}
	if text, err := json.Marshal(outputs); err != nil || len(text) > MaxOutputsBytes {
		c.failf(CodeTooLarge, "keep what is large elsewhere and hand on where it is", "%s takes %d bytes as JSON: the limit is %d", field, len(text), MaxOutputsBytes)
	}
}

// driver checks what brought a module to a node, where it is said.
func (c *check) driver(d *events.Driver) {
	if d == nil {
		return
	}
	c.need("driver.name", d.Name)
	c.line("driver.name", d.Name)
	c.line("driver.version", d.Version)
	c.line("driver.configuration", d.Configuration)
}

package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// Limits of a strategy.
const (
	// MaxTiers bounds its tiers: a person reads them, and a rollout's record shows them all.
	MaxTiers = 64
	// MaxEdges bounds its explicit edges.
	MaxEdges = 1000
	// MaxRetries bounds how often a step is tried again.
	MaxRetries = 100
	// DefaultStepTimeout is how long a step may be under way when its tier does not say: longer than any ordinary delivery.
	DefaultStepTimeout = 10 * time.Minute
	// maxStrategySpan bounds a strategy's spans of time: a rollout that takes longer is several.
	maxStrategySpan = 90 * 24 * time.Hour
)

// StrategyError says which field of a strategy is wrong, and how.
type StrategyError struct {
	// Field is where, as in tiers[1].bake.
	Field   string
	Message string
}

func (e *StrategyError) Error() string { return e.Field + ": " + e.Message }

// ParseStrategy reads a strategy's JSON strictly and checks it. It gives errors of type *[StrategyError] for a field that is
// wrong, and others for what is no such JSON.
func ParseStrategy(raw Raw) (Strategy, error) {
	var s Strategy
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return Strategy{}, errors.Wrap(err, "strategy")
	}
	if d.More() {
		return Strategy{}, errors.New("strategy: it goes on after its end")
	}
	return s, s.Check()
}

// Canonical gives the strategy's canonical JSON, and its digest. Equal strategies have equal bytes.
func (s Strategy) Canonical() (Raw, string, error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, "", errors.Wrap(err, "strategy")
	}
	return raw, es.Digest(raw), nil
}

// Tier gives a tier by its name.
func (s Strategy) Tier(name string) (Tier, bool) {
	at := slices.IndexFunc(s.Tiers, func(t Tier) bool { return t.Name == name })
	if at < 0 {
		return Tier{}, false
	}
	return s.Tiers[at], true
}

// StepTimeout is how long a step of the tier may be under way.
func (t Tier) StepTimeout() time.Duration { return span(t.Timeout, DefaultStepTimeout) }

// RetryDelay is how long after it failed a step is tried again.
func (t Tier) RetryDelay() time.Duration { return span(t.Delay, 0) }

// BakeTime is how long the tier must stay well before it is left.
func (t Tier) BakeTime() time.Duration { return span(t.Bake, 0) }

// span reads a duration that was checked.
func span(text string, otherwise time.Duration) time.Duration {
	if d, err := time.ParseDuration(text); err == nil {
		return d
	}
	return otherwise
}

// Check says what is wrong with a strategy. It gives errors of type *[StrategyError].
func (s Strategy) Check() error {
	var k strategyCheck
	if len(s.Description) > 4096 {
		k.fail("description", "%d bytes: the limit is 4096", len(s.Description))
	}
	k.oneOf("rollback", s.Rollback, RollbackAutomatic, RollbackManual)
	switch n := len(s.Tiers); {
	case n == 0:
		k.fail("tiers", "there is none: a rollout needs one at least")
	case n > MaxTiers:
		k.fail("tiers", "%d tiers: the limit is %d", n, MaxTiers)
	}
	for i, t := range s.Tiers {
		k.tier(fmt.Sprintf("tiers[%d]", i), t, s.Tiers[:i])
	}
	for i, t := range s.Tiers {
		for j, name := range t.After {
			if _, ok := s.Tier(name); !ok {
				k.fail(fmt.Sprintf("tiers[%d].after[%d]", i, j), "there is no tier %.64q", name)
			}
		}
	}
	if n := len(s.Edges); n > MaxEdges {
		k.fail("edges", "%d edges: the limit is %d", n, MaxEdges)
	}
	for i, e := range s.Edges {
		k.end(fmt.Sprintf("edges[%d].from", i), e.From)
		k.end(fmt.Sprintf("edges[%d].to", i), e.To)
	}
	if k.first != nil {
		return k.first
	}
	if _, err := s.Ordered(); err != nil {
		return err
	}
	return nil
}

// Ordered gives the tiers in the order they are walked: as they stand, but each behind those it names. It gives a
// *[StrategyError] that names the tiers of a circle.
func (s Strategy) Ordered() ([]Tier, error) {
	const (
		untouched = iota
		open
		placed
	)
	var (
		ordered []Tier
		trail   []string
		visit   func(t Tier) error
	)
	state := make(map[string]int, len(s.Tiers))
	visit = func(t Tier) error {
		switch state[t.Name] {
		case placed:
			return nil
		case open:
			circle := append(trail[slices.Index(trail, t.Name):], t.Name)
			return &StrategyError{Field: "tiers", Message: "they wait for each other in a circle: " + strings.Join(circle, " after ")}
		}
		state[t.Name] = open
		trail = append(trail, t.Name)
		for _, name := range t.After {
			if before, ok := s.Tier(name); ok {
				if err := visit(before); err != nil {
					return err
				}
			}
		}
		trail = trail[:len(trail)-1]
		state[t.Name] = placed
		ordered = append(ordered, t)
		return nil
	}
	for _, t := range s.Tiers {
		if err := visit(t); err != nil {
			return nil, err
		}
	}
	return ordered, nil
}

// strategyCheck keeps the first thing that is wrong.
type strategyCheck struct{ first *StrategyError }

func (k *strategyCheck) fail(field, format string, args ...any) {
	if k.first == nil {
		k.first = &StrategyError{Field: field, Message: fmt.Sprintf(format, args...)}
	}
}

func (k *strategyCheck) tier(field string, t Tier, before []Tier) {
	k.name(field+".name", t.Name)
	if slices.ContainsFunc(before, func(b Tier) bool { return b.Name == t.Name }) {
		k.fail(field+".name", "there are two tiers %.64q", t.Name)
	}
	for i, name := range t.Selector.Modules {
		k.name(fmt.Sprintf("%s.selector.modules[%d]", field, i), name)
	}
	for i, name := range t.Selector.Nodes {
		k.name(fmt.Sprintf("%s.selector.nodes[%d]", field, i), name)
	}
	if !t.Concurrency.IsZero() && t.Concurrency.Percent == 0 && t.Concurrency.Number == 0 {
		k.fail(field+".concurrency", "with 0 nothing would ever begin: leave it out for all at once")
	}
	k.span(field+".bake", t.Bake)
	k.span(field+".delay", t.Delay)
	k.span(field+".timeout", t.Timeout)
	k.oneOf(field+".gate", t.Gate, GateApplied, GateHealthy)
	k.oneOf(field+".offline", t.Offline, OfflineWait, OfflineSkip, OfflineFail)
	if t.Retry < 0 || t.Retry > MaxRetries {
		k.fail(field+".retry", "%d: it lies between 0 and %d", t.Retry, MaxRetries)
	}
	if t.Limit != nil && t.Limit.PerMinute < 1 {
		k.fail(field+".limit.per-minute", "%d: at least one step a minute must be able to begin", t.Limit.PerMinute)
	}
	if t.Limit != nil && t.Limit.Burst < 0 {
		k.fail(field+".limit.burst", "%d: it can't be negative", t.Limit.Burst)
	}
	for i, text := range t.Semaphores {
		if _, _, err := ParseSemaphore(text); err != nil {
			k.fail(fmt.Sprintf("%s.semaphores[%d]", field, i), "%s", err)
		}
	}
}

func (k *strategyCheck) end(field string, p Place) {
	if p == (Place{}) {
		k.fail(field, "it picks nothing: give a module or a node")
	}
}

func (k *strategyCheck) name(field, name string) {
	if err := es.CheckName("it", name); err != nil {
		k.fail(field, "%s", err)
	}
}

func (k *strategyCheck) span(field, text string) {
	if text == "" {
		return
	}
	switch d, err := time.ParseDuration(text); {
	case err != nil:
		k.fail(field, "%.64q is not a span of time: write it like 30s, 5m or 1h30m", text)
	case d <= 0:
		k.fail(field, "%s is not longer than nothing: leave it out", text)
	case d > maxStrategySpan:
		k.fail(field, "%s is too long: the limit is %s", text, maxStrategySpan)
	}
}

func (k *strategyCheck) oneOf(field, text string, allowed ...string) {
	if text != "" && !slices.Contains(allowed, text) {
		k.fail(field, "%.64q is unknown: it is one of %s", text, strings.Join(allowed, ", "))
	}
}

// ParseSemaphore reads id:count. The id of a global one is empty. It gives errors that say what is expected.
func ParseSemaphore(text string) (id string, count int, err error) {
	at := strings.LastIndexByte(text, ':')
	if at < 0 {
		return "", 0, errors.Newf("%.64q has no count: write id:count, or :count for all", text)
	}
	if count, err = strconv.Atoi(text[at+1:]); err != nil || count < 1 {
		return "", 0, errors.Newf("the count in %.64q is not a number above zero", text)
	}
	return text[:at], count, nil
}

package commands

import (
	"catenary/es"
	"catenary/events"
)

// DeclareStrategy says what a strategy is from now on.
type DeclareStrategy struct {
	Name string `json:"name"`
	// Strategy is the JSON of an [events.Strategy].
	Strategy events.Raw `json:"strategy"`
}

// EndStrategy lets no new plan use a strategy.
type EndStrategy struct {
	Name   string `json:"name"`
	Reason string `json:"reason,omitempty"`
}

// StrategyRef is the instance of a strategy.
func StrategyRef(name string) es.Ref {
	return es.Ref{Aggregate: events.AggregateStrategy, Key: es.Key(name)}
}

// Ref is the strategy.
func (c DeclareStrategy) Ref() es.Ref { return StrategyRef(c.Name) }

// Ref is the strategy.
func (c EndStrategy) Ref() es.Ref { return StrategyRef(c.Name) }

// Verb is declare.
func (DeclareStrategy) Verb() string { return "declare" }

// Verb is end.
func (EndStrategy) Verb() string { return "end" }

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c DeclareStrategy) Validate() error {
	var k check
	k.name("name", c.Name)
	k.strategy("strategy", c.Strategy)
	return k.done(c.Ref())
}

// Validate checks the shape. It gives errors of type *[es.Refusal].
func (c EndStrategy) Validate() error {
	var k check
	k.name("name", c.Name)
	k.text("reason", c.Reason)
	return k.done(c.Ref())
}

func (c *check) strategy(field string, raw events.Raw) (parsed events.Strategy) {
	if len(raw) == 0 {
		c.failf(CodeMissingField, "see catenary strategy schema", "%s is empty", field)
	}
	c.raw(field, raw)
	if c.first != nil {
		return parsed
	}
	parsed, err := events.ParseStrategy(raw)
	if err != nil {
		c.failf(CodeBadValue, "see catenary strategy schema", "%s: %s", field, err)
	}
	return parsed
}

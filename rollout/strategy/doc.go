// Package strategy reads strategy files: YAML that people write.
//
// It owns the JSON Schema of such a file ([Schema]), reading one ([Read]), and saying of a wrong one in which line and field it is wrong. It
// leaves what a strategy means to events, and how a rollout walks by one to the engine.
//
// Invariants: text is text. What the file says is taken byte for byte, whether YAML would call it a number, a truth or a time; only
// the few fields that are numbers and truths are read as such. A field that is not known, or given twice, is an error. What Read
// gives has passed [events.Strategy.Check].
package strategy

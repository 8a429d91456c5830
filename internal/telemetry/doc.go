// Package telemetry counts and traces what a process does, for Prometheus and for OpenTelemetry.
//
// It owns the one list of metrics, which docs/metrics.md is made from, and how spans are named, joined and exported. It leaves to the parts
// when something is counted and what a span is around; they are told by hooks that know neither Prometheus nor OpenTelemetry.
//
// Invariants:
//   - What is counted on a command's way costs some hundred nanoseconds and never waits. All else is looked at when somebody scrapes.
//   - No label holds what anybody may choose freely, but for the names of views, streams and the engine: the number of series is bounded.
//   - Tracing that is off costs a comparison with nil. What is traced is told on by the W3C traceparent that commands and events carry.
package telemetry

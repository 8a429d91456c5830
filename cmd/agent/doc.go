// Command agent brings to its node what the chain tells it, and reports what came of it.
//
// It wires package agent to the bus and to the drivers that its configuration names. What it does stands in docs/architecture/agent.md.
package main

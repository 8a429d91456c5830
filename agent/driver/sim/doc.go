// Package sim is the driver that only remembers: for demonstrations, for load, and for tests of the agent.
//
// It owns a small world in memory that outlives its drivers, as a node's disk outlives an agent. It leaves nothing to others.
package sim

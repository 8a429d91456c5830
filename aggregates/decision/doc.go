// Package decision holds what all deciders say in the same way: events for an instance, and names in a message.
//
// It owns no rule and no state.
package decision

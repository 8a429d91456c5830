// Package driver says what an agent asks of whatever brings a module to its node.
//
// It owns the contract of a driver, the words in which one fails, and the keeping of what its commands say. It leaves which
// driver is asked, when and how often to the agent, and how a module is brought to a node to the packages beside it; the suite
// that all of them pass is in drivertest.
//
// Invariants:
//   - A driver does the same again without harm: an agent that was killed in the middle asks anew.
//   - What a driver can't do it says before it changes anything. What may have changed the node is never passed on to another
//     driver.
package driver

// Package lease decides about leases: the right of one process to act alone for a while.
//
// It owns who holds a lease, when it runs out and what its fence is. It leaves to the writer to refuse commands that carry a
// fence that is no longer the present one.
//
// Invariants: the fence is the sequence of the taken event, so it grows with every new holder. A lease runs by the writer's
// clock alone. Renewals leave no event: they are lost when a writer ends, so the next one counts every lease as renewed at
// its own start. A lease that ran out is still its holder's until another takes it.
package lease

// Package failpoint names the moments at which a process can be made to fail, and makes it fail there.
//
// It owns the list of those moments, that of the bugs that can be planted to try whoever looks for them, and the form in which the
// environment says which are struck. It leaves to the packages that pass a point what may go wrong there, and to integration/fault
// when it does.
//
// Nothing of it is in a program that is built without the tag failpoints: its functions are empty there, and are inlined away. With the tag
// two variables of the environment drive it, and a third moves the clock:
//
//	CATENARY_FAILPOINTS="writer-before-append=kill@3,store-answer-lost=error@2,projector-before-put=delay:50ms"
//	CATENARY_PLANTED="dedup-skipped"
//	CATENARY_CLOCK_FILE=/run/clock     # holds a duration, such as -90s, that the clock is off by; it may change at any time
//
// # Invariants
//
//   - Every name of the list is passed in exactly one place, and every place is in the list.
//   - What stands in the environment and is not understood ends the process at once: a fault that was not struck would look like one that did
//     no harm.
//   - A process says on its standard error that a point was struck, before it is.
package failpoint

// Package viewtest is for the tests of the views beside it: tables of one event each, and what every view owes.
//
// It leaves the given/when/then of a single event, and what is checked with it, to es/project/projecttest.
package viewtest

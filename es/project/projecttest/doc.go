// Package projecttest is for the tests of views and of what runs them: given/when/then for a view, buckets and marks in
// memory, and a bucket that fails as told.
//
// It leaves the rules of order and exactly-once to package project, whose runner it drives.
package projecttest

//go:build race

package simulate_test

// usualSeeds is how many seeds a test run makes. The race detector makes each of them take many times as long, and one goroutine makes it.
const usualSeeds = 300

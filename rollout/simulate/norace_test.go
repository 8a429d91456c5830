//go:build !race

package simulate_test

// usualSeeds is how many seeds a test run makes.
const usualSeeds = 3000

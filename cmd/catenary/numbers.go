package main

import (
	"math"
	"strconv"

	"github.com/spf13/pflag"
)

// numberFlag is a flag that holds a whole number in decimal digits. The flag library's own numbers take 012 for ten, as Go
// does and nobody who writes a version means.
type numberFlag[T int | uint64] struct {
	value *T
	// least and most bound it; both are allowed.
	least, most uint64
}

var _ pflag.Value = numberFlag[int]{}

// version is a flag for a number that the chain counts: any.
func version(value *uint64) numberFlag[uint64] {
	return numberFlag[uint64]{value: value, most: math.MaxUint64}
}

// amount is a flag for a number of things.
func amount(value *int, least uint64) numberFlag[int] {
	return numberFlag[int]{value: value, least: least, most: math.MaxInt32}
}

// String gives the number; nothing for none.
func (f numberFlag[T]) String() string {
	if f.value == nil || *f.value == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(*f.value), 10)
}

// Set reads the number.
func (f numberFlag[T]) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 64)
	switch {
	case err != nil:
		return usagef("it is a whole number in decimal digits, such as 12")
	case n < f.least || n > f.most:
		return usagef("it is a number from %d to %d", f.least, f.most)
	}
	*f.value = T(n)
	return nil
}

// Type is shown in the help.
func (f numberFlag[T]) Type() string { return "number" }

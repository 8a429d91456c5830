package hammer_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"catenary/internal/hammer"
)

// What is read from the histogram is what a sorted list would give, to a few percent.
func TestQuantilesAreThoseOfASortedList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, math.MaxInt64), 1, 200).Draw(t, "values")
		var l hammer.Latency
		for _, v := range values {
			l.Add(time.Duration(v))
		}
		slices.Sort(values)
		for _, q := range []float64{0, 0.5, 0.99, 1} {
			exact := float64(values[min(int(q*float64(len(values))), len(values)-1)])
			if got := float64(l.Quantile(q)); math.Abs(got-exact) > exact/32 {
				t.Fatalf("quantile %v of %v is %v, want about %v", q, values, got, exact)
			}
		}
		if l.Count() != uint64(len(values)) {
			t.Fatalf("%d counted of %d", l.Count(), len(values))
		}
	})
}

func TestLatencyAtItsEnds(t *testing.T) {
	t.Parallel()
	var l hammer.Latency
	if got := l.Quantile(0.5); got != 0 {
		t.Errorf("an empty histogram gives %v", got)
	}
	l.Add(-time.Second)
	if got := l.Quantile(0.5); got != 0 {
		t.Errorf("a clock that went back gives %v", got)
	}
}

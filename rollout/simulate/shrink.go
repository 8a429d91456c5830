package simulate

import (
	"slices"
)

// mostRuns bounds what making a run smaller may take.
const mostRuns = 60

// Shrink gives a run of fewer incidents in which the same rule is violated, or the same one. It gives the errors of [Do] for the run as it is.
func Shrink(c Config, rule string) (Config, error) {
	whole, err := Do(c)
	if err != nil {
		return c, err
	}
	keep := c.Keep
	if keep == nil {
		for i := range whole.Incidents {
			keep = append(keep, i)
		}
	}
	runs := 0
	fails := func(keep []int) bool {
		runs++
		c.Keep = keep
		r, err := Do(c)
		return err == nil && r.Breaks(rule)
	}
	for size := max(1, len(keep)/2); runs < mostRuns; {
		smaller := false
		for at := 0; at < len(keep) && runs < mostRuns; {
			without := slices.Delete(slices.Clone(keep), at, min(len(keep), at+size))
			if fails(without) {
				keep, smaller = without, true
			} else {
				at += size
			}
		}
		if size == 1 && !smaller {
			break
		}
		size = max(1, size/2)
	}
	c.Keep = keep
	return c, nil
}

// Breaks says whether a rule is violated.
func (r Run) Breaks(rule string) bool {
	for _, v := range r.Violations() {
		if v.Rule == rule {
			return true
		}
	}
	return false
}

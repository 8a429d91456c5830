package events

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/cockroachdb/errors"
)

// Share is a number of things, or a part of all of them. The zero value says nothing.
type Share struct {
	// Number is how many; Percent, if set, is how many of a hundred.
	Number  int
	Percent int
	set     bool
}

// ShareOf is a number of things, which may be none.
func ShareOf(number int) Share { return Share{Number: number, set: true} }

// PercentOf is a part of all things.
func PercentOf(percent int) Share { return Share{Percent: percent, set: true} }

// IsZero says whether nothing is said.
func (s Share) IsZero() bool { return !s.set }

// Of gives how many of a total that is, rounded down.
func (s Share) Of(total int) int {
	if s.Percent > 0 {
		return total * s.Percent / 100
	}
	return s.Number
}

// String gives it as people write it.
func (s Share) String() string {
	if s.Percent > 0 {
		return strconv.Itoa(s.Percent) + "%"
	}
	return strconv.Itoa(s.Number)
}

// MarshalJSON gives a number, or text such as "25%".
func (s Share) MarshalJSON() ([]byte, error) {
	if s.Percent > 0 {
		return json.Marshal(s.String())
	}
	return json.Marshal(s.Number)
}

// UnmarshalJSON reads a number that is not negative, or text such as "25%".
func (s *Share) UnmarshalJSON(data []byte) error {
	text := string(data)
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		*s = ShareOf(n)
		return nil
	}
	quoted, err := strconv.Unquote(text)
	if err == nil {
		number, isPercent := strings.CutSuffix(quoted, "%")
		n, err := strconv.Atoi(number)
		if err == nil && isPercent && n >= 1 && n <= 100 {
			*s = PercentOf(n)
			return nil
		}
	}
	return errors.Newf("%.64s is neither a number nor a part such as 25%%", text)
}

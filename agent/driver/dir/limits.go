package dir

import (
	"cmp"

	"github.com/cockroachdb/errors"
)

// Limits bound what an archive may unpack to, so that a small one can't fill a disk.
type Limits struct {
	// Bytes bounds the content of all files together; default 2 GiB.
	Bytes int64 `json:"bytes,omitempty" yaml:"bytes"`
	// Entries bounds the number of files and directories; default 100,000.
	Entries int `json:"entries,omitempty" yaml:"entries"`
	// Depth bounds how deep directories lie in each other; default 64.
	Depth int `json:"depth,omitempty" yaml:"depth"`
}

func (l Limits) withDefaults() (Limits, error) {
	if l.Bytes < 0 || l.Entries < 0 || l.Depth < 0 {
		return l, errors.Newf("limits are %d bytes, %d entries, depth %d: none can be negative", l.Bytes, l.Entries, l.Depth)
	}
	return Limits{Bytes: cmp.Or(l.Bytes, 2<<30), Entries: cmp.Or(l.Entries, 100_000), Depth: cmp.Or(l.Depth, 64)}, nil
}

package lineage

import (
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/internal/ndjson"
)

// Problem is something in the files that could not be done. The rest was.
type Problem struct {
	// File and Line are where it stands.
	File string `json:"file"`
	Line int    `json:"line"`
	// Kind is one of the Problem constants.
	Kind string `json:"kind"`
	// Code is the writer's, for refused commands.
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
}

// Kinds of problems.
const (
	// ProblemBroken is a line that is no row.
	ProblemBroken = "broken"
	// ProblemRefused is a row whose command the writer refused.
	ProblemRefused = "refused"
)

// place is where a row stands.
type place struct {
	file string
	line int
}

// String gives it for people.
func (p place) String() string { return p.file + ":" + strconv.Itoa(p.line) }

type commitRow struct {
	Commit
	place
}

type releaseRow struct {
	Release
	place
}

// history is what is told of one repository.
type history struct {
	name     string
	commits  []commitRow
	releases []releaseRow
	// at is the place of each commit in commits; touching has the places of the commits that touch a module, and together the
	// releases at one commit.
	at       map[string]int
	touching map[string][]int
	together map[string][]int
}

// read reads a repository's files. Lines that are no rows are reported; report's errors end the reading.
func (r Repository) read(report func(Problem) error) (*history, error) {
	h := &history{name: r.Name, at: map[string]int{}, touching: map[string][]int{}, together: map[string][]int{}}
	broken := func(p place, err error) error {
		return report(Problem{File: p.file, Line: p.line, Kind: ProblemBroken, Message: err.Error()})
	}
	err := rows(r.commits, ParseCommit, broken, func(p place, c Commit) error {
		if _, again := h.at[c.Commit]; again {
			return broken(p, errors.Newf("commit %s stands there twice", c.Commit))
		}
		if n := len(h.commits); n > 0 && c.At.Before(h.commits[n-1].At) {
			return broken(p, errors.Newf("commit %s is before the one above it: sort the rows by time", c.Commit))
		}
		h.at[c.Commit] = len(h.commits)
		for _, m := range c.Modules {
			h.touching[m] = append(h.touching[m], len(h.commits))
		}
		h.commits = append(h.commits, commitRow{c, p})
		return nil
	})
	if err != nil {
		return nil, err
	}
	type version struct{ module, version string }
	seen := map[version]bool{}
	err = rows(r.releases, ParseRelease, broken, func(p place, v Release) error {
		if key := (version{v.Module, v.Version}); seen[key] {
			return broken(p, errors.Newf("version %s of %s stands there twice", v.Version, v.Module))
		} else {
			seen[key] = true
		}
		if n := len(h.releases); n > 0 && v.At.Before(h.releases[n-1].At) {
			return broken(p, errors.Newf("version %s of %s is before the one above it: sort the rows by time", v.Version, v.Module))
		}
		h.together[v.Commit] = append(h.together[v.Commit], len(h.releases))
		h.releases = append(h.releases, releaseRow{v, p})
		return nil
	})
	return h, err
}

// rows parses the lines of a file, which may be missing.
func rows[T any](source *ndjson.Source, parse func([]byte) (T, error), broken func(place, error) error, take func(place, T) error) error {
	if source == nil {
		return nil
	}
	return source.Lines(func(number int, line []byte, unreadable error) error {
		p := place{source.Name, number}
		if unreadable != nil {
			return broken(p, unreadable)
		}
		row, err := parse(line)
		if err != nil {
			return broken(p, err)
		}
		return take(p, row)
	})
}

// end is the place after the last commit that a release holds.
func (h *history) end(r Release) int {
	if i, ok := h.at[r.Commit]; ok {
		return i + 1
	}
	return sort.Search(len(h.commits), func(i int) bool { return h.commits[i].At.After(r.At) })
}

// carried gives, for each release in order, the commits that came with it: those that touch its module and that no version
// before it holds.
func (h *history) carried(yield func(release int, commits []int) error) error {
	held := map[string]int{}
	for i, r := range h.releases {
		end := h.end(r.Release)
		touching := h.touching[r.Module]
		from, _ := slices.BinarySearch(touching, held[r.Module])
		to, _ := slices.BinarySearch(touching, end)
		held[r.Module] = max(held[r.Module], end)
		if err := yield(i, touching[from:max(from, to)]); err != nil {
			return err
		}
	}
	return nil
}

// modules gives the earliest time at which each module is named.
func (h *history) modules() map[string]time.Time {
	named := map[string]time.Time{}
	name := func(module string, at time.Time) {
		if earliest, ok := named[module]; !ok || at.Before(earliest) {
			named[module] = at
		}
	}
	for _, c := range h.commits {
		for _, m := range c.Modules {
			name(m, c.At)
		}
	}
	for _, r := range h.releases {
		name(r.Module, r.At)
	}
	return named
}

package lineage

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/errors"

	"catenary/internal/ndjson"
)

// ErrNoLineage is given for a path where there is nothing to import.
var ErrNoLineage = errors.New("no lineage")

// Endings of the names of files, before a .gz. What stands before is the repository's name.
const (
	commitsEnding  = "-commits.ndjson"
	releasesEnding = "-releases.ndjson"
)

// Repository is a repository with the files that tell of it. One of them may be missing.
type Repository struct {
	Name              string
	commits, releases *ndjson.Source
}

// Open finds the repositories in a folder, by name, or the one that a single file tells of. It gives errors marked
// [ErrNoLineage], and those of the file system.
func Open(path string) ([]Repository, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, errors.Wrap(err, "open the lineage")
	}
	files := []string{path}
	if info.IsDir() {
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, errors.Wrap(err, "open the lineage")
		}
		files = nil
		for _, e := range entries {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	var found []Repository
	for _, file := range files {
		base := strings.TrimSuffix(filepath.Base(file), ".gz")
		name, commits := strings.CutSuffix(base, commitsEnding)
		if !commits {
			var releases bool
			if name, releases = strings.CutSuffix(base, releasesEnding); !releases {
				continue
			}
		}
		if name == "" {
			return nil, errors.Mark(errors.Newf("%s has no repository in its name: it is called REPOSITORY%s", file, commitsEnding), ErrNoLineage)
		}
		i := slices.IndexFunc(found, func(r Repository) bool { return r.Name == name })
		if i < 0 {
			i = len(found)
			found = append(found, Repository{Name: name})
		}
		if err := found[i].open(file, commits); err != nil {
			return nil, err
		}
	}
	if len(found) == 0 {
		return nil, errors.Mark(errors.WithHintf(errors.Newf("%s has no lineage", path),
			"files are called REPOSITORY%s and REPOSITORY%s, and may be packed by gzip", commitsEnding, releasesEnding), ErrNoLineage)
	}
	slices.SortFunc(found, func(a, b Repository) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

func (r *Repository) open(file string, commits bool) error {
	into := &r.releases
	if commits {
		into = &r.commits
	}
	if *into != nil {
		return errors.Mark(errors.Newf("%s is there twice, packed and unpacked: leave one of them", (*into).Name), ErrNoLineage)
	}
	var err error
	*into, err = ndjson.Open(file, nil)
	return err
}

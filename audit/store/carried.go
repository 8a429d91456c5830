package store

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/audit"
	"catenary/chain"
	"catenary/es"
)

// carry adds what came with the builds: a page of it, and how much there is.
func (t *tracer) carry(ctx context.Context) error {
	after, err := readCarriedCursor(t.q.Cursor)
	if err != nil {
		return err
	}
	all, err := t.carriedBy(ctx)
	if err != nil {
		return err
	}
	a := t.answer
	a.CarriedCount = len(all)
	if after != nil {
		a.Commits, a.Builds, a.Published, a.Assignments, a.More = a.Commits[:0], a.Builds[:0], a.Published[:0], a.Assignments[:0], false
		from, found := slices.BinarySearchFunc(all, *after, compareCarried)
		if found {
			from++
		}
		all = all[from:]
	}
	if len(all) > t.most {
		all = all[:t.most]
		a.Next = carriedCursor(all[len(all)-1])
	}
	a.Carried = append(a.Carried, all...)
	return nil
}

// carriedBy gives all that came with the builds of the answer, in order.
func (t *tracer) carriedBy(ctx context.Context) ([]audit.Carried, error) {
	var all []audit.Carried
	for _, b := range t.answer.Builds {
		err := t.each(ctx, func(scan func(...any) error) error {
			c := audit.Carried{Build: b.ID}
			err := scan(&c.Module, &c.Version, &c.Repository, &c.Commit)
			all = append(all, c)
			return errors.Wrap(err, "read a manifest")
		}, `SELECT c.module, c.version, c.repository, c."commit" FROM "key" k CROSS JOIN carrier b ON b.build = k.id CROSS JOIN carried c ON c.list = b.list
 WHERE k.kind = ? AND k."key" = ?`, chain.Builds.Name(), es.Key(b.ID))
		if err != nil {
			return nil, err
		}
	}
	if err := t.addMerged(ctx, all); err != nil {
		return nil, err
	}
	slices.SortFunc(all, compareCarried)
	return slices.CompactFunc(all, func(a, b audit.Carried) bool { return compareCarried(a, b) == 0 }), nil
}

// addMerged says of each commit when it was merged, where that was recorded. One that a manifest names without its repository is
// looked for in all, and was merged when the last of its name was.
func (t *tracer) addMerged(ctx context.Context, all []audit.Carried) error {
	keys, commits := map[string]bool{}, map[string]bool{}
	for _, c := range all {
		switch {
		case c.Commit == "":
		case c.Repository == "":
			commits[c.Commit] = true
		default:
			keys[es.Key(c.Repository, c.Commit)] = true
		}
	}
	merged := map[string]time.Time{}
	for _, look := range []struct {
		names map[string]bool
		from  string
	}{
		{keys, `json_each(?1) j CROSS JOIN "key" k ON k.kind = ?2 AND k."key" = j.value CROSS JOIN record r ON r."key" = k.id AND r.valid_to = ?3`},
		{commits, `json_each(?1) j CROSS JOIN record r ON r."commit" = j.value AND r.valid_to = ?3 JOIN "key" k ON k.id = r."key" AND k.kind = ?2`},
	} {
		if len(look.names) == 0 {
			continue
		}
		names, err := json.Marshal(keysOf(look.names))
		if err != nil {
			return errors.Wrap(err, "name the commits that came along")
		}
		err = t.each(ctx, func(scan func(...any) error) error {
			var name, value string
			if err := scan(&name, &value); err != nil {
				return errors.Wrap(err, "read a commit")
			}
			c, err := chain.Decode[chain.Commit]([]byte(value))
			if err != nil {
				return err
			}
			if c.Merged.After(merged[name]) {
				merged[name] = c.Merged
			}
			return nil
		}, "SELECT j.value, r.value FROM "+look.from, string(names), chain.Commits.Name(), int64(forever))
		if err != nil {
			return err
		}
	}
	for i, c := range all {
		name := c.Commit
		if c.Repository != "" {
			name = es.Key(c.Repository, c.Commit)
		}
		all[i].Merged = merged[name]
	}
	return nil
}

func keysOf(set map[string]bool) []string {
	list := make([]string, 0, len(set))
	for name := range set {
		list = append(list, name)
	}
	return list
}

// compareCarried gives the order of what came along: what was merged last comes first, and of one time, or of none, by name.
func compareCarried(a, b audit.Carried) int {
	return cmp.Or(
		b.Merged.Compare(a.Merged), strings.Compare(a.Repository, b.Repository), strings.Compare(a.Commit, b.Commit),
		strings.Compare(a.Module, b.Module), strings.Compare(a.Version, b.Version), strings.Compare(a.Build, b.Build),
	)
}

// carriedCursor names the last line of a page.
func carriedCursor(c audit.Carried) string {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // texts and a time have a JSON form
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// readCarriedCursor gives the line that a page begins after; nil for the first page. It gives errors marked [audit.ErrInvalid].
func readCarriedCursor(cursor string) (*audit.Carried, error) {
	if cursor == "" {
		return nil, nil
	}
	var c audit.Carried
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		return nil, errors.Mark(errors.Newf("cursor %q is none of this question: give the one the page before has", cursor), audit.ErrInvalid)
	}
	return &c, nil
}

package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/cockroachdb/errors"

	"catenary/audit"
)

// pair names an assignment.
type pair struct{ node, module string }

// stood is what was so of an assignment at a moment.
type stood struct {
	pair
	*fact
}

// selection says of which assignments something is asked.
type selection struct {
	kind         string
	node, module string
	after        pair // only those after this one
}

func kindOf(observed bool) string {
	if observed {
		return kindRan
	}
	return kindTold
}

func shows(observed bool) string {
	if observed {
		return audit.ShowsObserved
	}
	return audit.ShowsTold
}

// standing gives what was so at a moment, as it was known then, by node and module, until take says false. For each key it is one
// search of the index for what is known now; only where that was not known yet, one more for what was thought.
func (r *reading) standing(ctx context.Context, sel selection, at, known instant, take func(stood) bool) error {
	var w where
	w.and("k.kind = ?", sel.kind)
	if sel.node != "" {
		w.and("k.node = ?", sel.node)
	}
	if sel.module != "" {
		w.and("k.module = ?", sel.module)
	}
	if sel.after != (pair{}) {
		w.and("(k.node, k.module) > (?, ?)", sel.after.node, sel.after.module)
	}
	w.and("k.known <= ?", int64(known))
	const columns = "SELECT k.id, k.node, k.module, " + factColumns + ` FROM "key" k JOIN record r ON r.id =
 (SELECT id FROM record WHERE "key" = k.id AND valid_from <= ? ORDER BY valid_from DESC, id DESC LIMIT 1) WHERE `
	var unknown []int // those of which something else was thought then
	var all []stood
	enough := errors.New("enough")
	err := r.each(ctx, func(scan func(...any) error) error {
		var s stood
		var key int64
		var err error
		if s.fact, err = scanFact(scan, &key, &s.node, &s.module); err != nil {
			return errors.Wrap(err, "read what stood")
		}
		switch {
		case s.known > known:
			unknown = append(unknown, len(all))
			all = append(all, s)
		case s.to <= at || !s.stands:
		case known < forever-1:
			all = append(all, s)
		case !take(s):
			return enough
		}
		return nil
	}, columns+w.String()+" ORDER BY k.node, k.module", append([]any{int64(at)}, w.args...)...)
	if errors.Is(err, enough) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, i := range unknown {
		if all[i].fact, err = r.thought(ctx, all[i].key, at, known); err != nil {
			return err
		}
	}
	for _, s := range all {
		if s.fact != nil && s.stands && !take(s) {
			break
		}
	}
	return nil
}

// thought gives what was thought of a key before it was known better; nil when nothing was. It is the last that was known of then,
// unless something was added to the history.
func (r *reading) thought(ctx context.Context, key int64, at, known instant) (*fact, error) {
	for _, query := range []string{
		`FROM record r WHERE r."key" = ?1 AND r.known_from <= ?2 AND r.outlook_known > ?2 AND r.outlook_from <= ?3 AND r.outlook_to > ?3 ORDER BY r.known_from DESC LIMIT 1`,
		`FROM past p JOIN record r ON r.id = p.record WHERE p."key" = ?1 AND p.known_to > ?2 AND p.known_from <= ?2 AND p.valid_from <= ?3 AND p.valid_to > ?3 LIMIT 1`,
	} {
		f, err := scanFact(r.tx.QueryRowContext(ctx, "SELECT "+factColumns+" "+query, key, int64(known), int64(at)).Scan)
		if !errors.Is(err, sql.ErrNoRows) {
			return f, errors.Wrap(err, "read what was thought")
		}
	}
	return nil, nil
}

// factOf gives what was so of one key at a moment, as it was known then; nil when nothing was.
func (r *reading) factOf(ctx context.Context, key int64, at, known instant) (*fact, error) {
	f, err := factAt(ctx, r.tx, key, at)
	switch {
	case err != nil || f == nil:
		return nil, err
	case f.known > known:
		return r.thought(ctx, key, at, known)
	case f.to <= at:
		return nil, nil
	}
	return f, nil
}

// keyOf gives the id of a key; zero when nothing is known of it.
func (r *reading) keyOf(ctx context.Context, kind, key string) (int64, error) {
	var id int64
	err := r.tx.QueryRowContext(ctx, `SELECT id FROM "key" WHERE kind = ? AND "key" = ?`, kind, key).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return id, errors.Wrapf(err, "look for %s %s", kind, key)
}

// standing gives a fact as answers show it.
func (s stood) standing() (audit.Standing, error) {
	f := s.fact
	a := audit.Standing{
		Node: s.node, Module: s.module, Reference: f.reference, Build: f.build, Commit: f.commit, Rollout: f.rollout,
		Since: f.since.time(), Sequence: f.sequence, Known: f.known.time(), Healthy: f.healthy, Drift: f.drift,
	}
	if f.assigned != 0 {
		a.Assigned = f.assigned.time()
	}
	if f.reported != 0 {
		a.Reported = f.reported.time()
	}
	if f.requiredBy != "" {
		if err := json.Unmarshal([]byte(f.requiredBy), &a.RequiredBy); err != nil {
			return a, errors.Wrap(err, "what an assignment is required by")
		}
	}
	return a, nil
}

// AsOf lists what stood at a moment. It gives errors marked [audit.ErrInvalid] and [audit.ErrStoreBehind].
func (s *Store) AsOf(ctx context.Context, q audit.AsOfQuestion) (audit.AsOfAnswer, error) {
	after, err := readCursor(q.Page)
	if err != nil {
		return audit.AsOfAnswer{}, err
	}
	answer := audit.AsOfAnswer{Shows: shows(q.Observed), Assignments: []audit.Standing{}}
	err = s.read(ctx, func(ctx context.Context, r *reading) error {
		var at, known instant
		answer.Moment, at, known = r.moment(q.Moment)
		answer.Basis = r.basis()
		var failure error
		sel := selection{kind: kindOf(q.Observed), node: q.Node, module: q.Module, after: after}
		err := r.standing(ctx, sel, at, known, func(s stood) bool {
			if n := len(answer.Assignments); n == q.Rows() {
				last := answer.Assignments[n-1]
				answer.Next = cursor(pair{last.Node, last.Module})
				return false
			}
			a, err := s.standing()
			answer.Assignments = append(answer.Assignments, a)
			failure = errors.CombineErrors(failure, err)
			return failure == nil
		})
		if err = errors.CombineErrors(err, failure); err != nil {
			return err
		}
		return r.missing(ctx, &answer.Basis, bounds(q.Node, q.Module))
	})
	return answer, err
}

// cursor names the last assignment of a page.
func cursor(p pair) string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.node + "\x00" + p.module))
}

// readCursor checks which page is asked for and gives the assignment it begins after. It gives errors marked [audit.ErrInvalid].
func readCursor(p audit.Page) (pair, error) {
	if p.Limit < 0 {
		return pair{}, errors.Mark(errors.Newf("limit is %d: it must be positive, or left out", p.Limit), audit.ErrInvalid)
	}
	if p.Cursor == "" {
		return pair{}, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	node, module, ok := strings.Cut(string(text), "\x00")
	if err != nil || !ok {
		return pair{}, errors.Mark(errors.Newf("cursor %q is none of this question: give the one the page before has", p.Cursor), audit.ErrInvalid)
	}
	return pair{node, module}, nil
}

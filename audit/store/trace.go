package store

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/cockroachdb/errors"

	"catenary/audit"
	"catenary/chain"
	"catenary/es"
	"catenary/events"
)

// shortestCommit is how many characters name a commit at least.
const shortestCommit = 7

// Trace gives the way from commits over builds and publications to nodes. It gives errors marked [audit.ErrInvalid],
// [audit.ErrNotFound] and [audit.ErrStoreBehind].
func (s *Store) Trace(ctx context.Context, q audit.TraceQuestion) (audit.TraceAnswer, error) {
	known := []string{audit.TraceCommit, audit.TraceBuild, audit.TraceArtifact, audit.TracePackage, audit.TraceAssignment}
	switch {
	case q.Of == "":
		return audit.TraceAnswer{}, errors.Mark(errors.New("of is empty: give a commit, build, digest, NAME@VERSION or NODE/MODULE"), audit.ErrInvalid)
	case q.As != "" && !slices.Contains(known, q.As):
		return audit.TraceAnswer{}, errors.Mark(errors.Newf("as is %q: it is one of %s", q.As, strings.Join(known, ", ")), audit.ErrInvalid)
	case q.Limit < 0:
		return audit.TraceAnswer{}, errors.Mark(errors.Newf("limit is %d: it must be positive, or left out", q.Limit), audit.ErrInvalid)
	}
	if _, err := readCarriedCursor(q.Cursor); err != nil {
		return audit.TraceAnswer{}, err
	}
	answer := audit.TraceAnswer{
		As: []string{}, Commits: []audit.TracedCommit{}, Builds: []audit.TracedBuild{}, Published: []audit.TracedPublication{},
		Assignments: []audit.Standing{}, Carried: []audit.Carried{},
	}
	err := s.read(ctx, func(ctx context.Context, r *reading) error {
		answer.Basis = r.basis()
		t := newTracer(r, q, &answer)
		for _, way := range []struct {
			as   string
			from func(context.Context) (bool, error)
		}{
			{audit.TraceCommit, t.fromCommit}, {audit.TraceBuild, t.fromBuild}, {audit.TraceArtifact, t.fromArtifact},
			{audit.TracePackage, t.fromPackage}, {audit.TraceAssignment, t.fromAssignment},
		} {
			if q.As != "" && q.As != way.as {
				continue
			}
			found, err := way.from(ctx)
			if err != nil {
				return err
			}
			if found {
				answer.As = append(answer.As, way.as)
			}
		}
		if len(answer.As) == 0 {
			err := errors.Newf("nothing is known of %q", q.Of)
			return errors.Mark(errors.WithHint(err, "give a commit (or its first seven characters), a build id, a digest, NAME@VERSION or NODE/MODULE, as it was recorded"), audit.ErrNotFound)
		}
		if err := t.finish(ctx); err != nil {
			return err
		}
		return r.missing(ctx, &answer.Basis, scope{})
	})
	return answer, err
}

// tracer gathers what is on the way. What is found twice is kept once.
type tracer struct {
	*reading
	q      audit.TraceQuestion
	answer *audit.TraceAnswer
	most   int

	commits     map[pair]bool
	builds      map[string]bool
	published   map[string]bool
	assignments map[uint64]bool
}

func newTracer(r *reading, q audit.TraceQuestion, answer *audit.TraceAnswer) *tracer {
	return &tracer{
		reading: r, q: q, answer: answer, most: audit.Page{Limit: q.Limit}.Rows(),
		commits: map[pair]bool{}, builds: map[string]bool{}, published: map[string]bool{}, assignments: map[uint64]bool{},
	}
}

// add appends to a list of the answer unless it is there already or the list is full.
func add[K comparable, T any](t *tracer, seen map[K]bool, key K, list *[]T, value T) bool {
	if seen[key] {
		return false
	}
	if len(*list) >= t.most {
		t.answer.More = true
		return false
	}
	seen[key] = true
	*list = append(*list, value)
	return true
}

// finish puts each list in order, and adds what came with the builds.
func (t *tracer) finish(ctx context.Context) error {
	a := t.answer
	slices.SortFunc(a.Commits, func(x, y audit.TracedCommit) int { return cmp.Compare(x.Sequence, y.Sequence) })
	slices.SortFunc(a.Builds, func(x, y audit.TracedBuild) int { return cmp.Compare(x.Sequence, y.Sequence) })
	slices.SortFunc(a.Published, func(x, y audit.TracedPublication) int { return cmp.Compare(x.Sequence, y.Sequence) })
	slices.SortFunc(a.Assignments, func(x, y audit.Standing) int {
		return cmp.Or(cmp.Compare(x.Sequence, y.Sequence), cmp.Compare(x.Node, y.Node), cmp.Compare(x.Module, y.Module))
	})
	return t.carry(ctx)
}

// fromCommit goes down from a commit, or from the one that begins with the text.
func (t *tracer) fromCommit(ctx context.Context) (bool, error) {
	if len(t.q.Of) < shortestCommit || strings.ContainsAny(t.q.Of, "/@") {
		return false, nil
	}
	var found []string
	upper := t.q.Of + "\U0010ffff"
	err := t.each(ctx, func(scan func(...any) error) error {
		var c string
		err := scan(&c)
		found = append(found, c)
		return errors.Wrap(err, "read a commit")
	}, `SELECT DISTINCT "commit" FROM record WHERE "commit" >= ?1 AND "commit" < ?2 UNION SELECT "commit" FROM carried WHERE "commit" >= ?1 AND "commit" < ?2 AND "commit" <> '' LIMIT 3`, t.q.Of, upper)
	if err != nil || len(found) == 0 {
		return false, err
	}
	if found[0] != t.q.Of && len(found) > 1 {
		err := errors.Newf("%q is the beginning of several commits, such as %s and %s", t.q.Of, found[0], found[1])
		return false, errors.Mark(errors.WithHint(err, "give more of it"), audit.ErrInvalid)
	}
	return true, t.downCommit(ctx, found[0])
}

func (t *tracer) downCommit(ctx context.Context, commit string) error {
	if err := t.addCommits(ctx, commit, ""); err != nil {
		return err
	}
	builds, err := having[chain.Build](ctx, t.reading, chain.Builds.Name(), t.most+1, `(r."commit" = ?1 OR k.id IN (SELECT b.build FROM carried c CROSS JOIN carrier b ON b.list = c.list WHERE c."commit" = ?1))`, commit)
	if err != nil {
		return err
	}
	for _, b := range builds {
		if err := t.downBuild(ctx, b); err != nil {
			return err
		}
	}
	if err := t.downPublished(ctx, `r."commit" = ?`, commit); err != nil {
		return err
	}
	return t.addAssignments(ctx, `r."commit" = ?`, commit)
}

func (t *tracer) fromBuild(ctx context.Context) (bool, error) {
	b, err := newest[chain.Build](ctx, t.reading, chain.Builds.Name(), es.Key(t.q.Of))
	if err != nil {
		return false, err
	}
	if b == nil {
		// It may be known only from what names it.
		before := len(t.answer.Published) + len(t.answer.Assignments)
		if err := errors.CombineErrors(t.downPublished(ctx, "r.build = ?", t.q.Of), t.addAssignments(ctx, "r.build = ?", t.q.Of)); err != nil {
			return false, err
		}
		return len(t.answer.Published)+len(t.answer.Assignments) > before, nil
	}
	if err := t.addCommits(ctx, b.value.Commit, b.value.Repository); err != nil {
		return false, err
	}
	return true, t.downBuild(ctx, *b)
}

func (t *tracer) downBuild(ctx context.Context, b recorded[chain.Build]) error {
	if !add(t, t.builds, b.value.ID, &t.answer.Builds, tracedBuild(b)) {
		return nil
	}
	if err := t.downPublished(ctx, "r.build = ?", b.value.ID); err != nil {
		return err
	}
	if b.value.Published != nil {
		if err := t.downReference(ctx, *b.value.Published); err != nil {
			return err
		}
	}
	return t.addAssignments(ctx, "r.build = ?", b.value.ID)
}

// downPublished goes down from publications with a condition.
func (t *tracer) downPublished(ctx context.Context, condition string, arg any) error {
	found, err := having[chain.Published](ctx, t.reading, chain.Publications.Name(), t.most+1, condition, arg)
	if err != nil {
		return err
	}
	for _, p := range found {
		if add(t, t.published, p.value.Reference.String(), &t.answer.Published, tracedPublication(p)) {
			if err := t.downReference(ctx, p.value.Reference); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *tracer) downReference(ctx context.Context, reference events.Reference) error {
	if reference.Package != nil {
		return t.addAssignments(ctx, "r.package = ? AND r.version = ?", reference.Package.Name, reference.Package.Version)
	}
	return t.addAssignments(ctx, "r.artifact = ?", reference.Artifact)
}

func (t *tracer) fromArtifact(ctx context.Context) (bool, error) {
	return t.fromReference(ctx, events.Reference{Artifact: t.q.Of})
}

func (t *tracer) fromPackage(ctx context.Context) (bool, error) {
	at := strings.LastIndexByte(t.q.Of, '@')
	if at <= 0 || at == len(t.q.Of)-1 {
		return false, nil
	}
	return t.fromReference(ctx, events.Reference{Package: &events.Package{Name: t.q.Of[:at], Version: t.q.Of[at+1:]}})
}

// fromReference goes up and down from what was published, or told to run without having been.
func (t *tracer) fromReference(ctx context.Context, reference events.Reference) (bool, error) {
	before := len(t.answer.Assignments)
	if err := t.downReference(ctx, reference); err != nil {
		return false, err
	}
	upwards, err := t.upReference(ctx, reference)
	return upwards || len(t.answer.Assignments) > before, err
}

// upReference goes up from what was published. It says whether anything is known of it.
func (t *tracer) upReference(ctx context.Context, reference events.Reference) (bool, error) {
	p, err := t.publication(ctx, reference)
	if err != nil {
		return false, err
	}
	condition, args := "r.artifact = ?", []any{reference.Artifact}
	if reference.Package != nil {
		condition, args = "r.package = ? AND r.version = ?", []any{reference.Package.Name, reference.Package.Version}
	}
	builds, err := having[chain.Build](ctx, t.reading, chain.Builds.Name(), t.most+1, condition, args...)
	if err != nil {
		return false, err
	}
	var build, commit string
	if p != nil {
		add(t, t.published, p.Reference.String(), &t.answer.Published, *p)
		build, commit = p.Build, p.Commit
	}
	for _, b := range builds {
		if err := t.upBuild(ctx, b.value.ID, ""); err != nil {
			return false, err
		}
	}
	return p != nil || len(builds) > 0, t.upBuild(ctx, build, commit)
}

// upBuild goes up from a build, and from a commit that is named beside it.
func (t *tracer) upBuild(ctx context.Context, build, commit string) error {
	repository := ""
	if build != "" {
		b, err := t.build(ctx, build)
		if err != nil {
			return err
		}
		if b != nil {
			add(t, t.builds, b.ID, &t.answer.Builds, *b)
			commit, repository = cmp.Or(b.Commit, commit), b.Repository
		}
	}
	return t.addCommits(ctx, commit, repository)
}

// fromAssignment goes up from what stood on a node. Names may hold slashes, so every way to cut the text is tried.
func (t *tracer) fromAssignment(ctx context.Context) (bool, error) {
	_, at, known := t.moment(t.q.Moment)
	found := false
	for i, c := range t.q.Of {
		if c != '/' || i == 0 || i == len(t.q.Of)-1 {
			continue
		}
		p := pair{t.q.Of[:i], t.q.Of[i+1:]}
		key, err := t.keyOf(ctx, kindTold, es.Key(p.node, p.module))
		if err != nil {
			return false, err
		}
		if key == 0 {
			continue
		}
		found = true
		f, err := t.factOf(ctx, key, at, known)
		if err != nil {
			return false, err
		}
		if f == nil || !f.stands {
			continue
		}
		shown, err := stood{pair: p, fact: f}.standing()
		if err != nil {
			return false, err
		}
		add(t, t.assignments, shown.Sequence, &t.answer.Assignments, shown)
		if !f.reference.IsZero() {
			if _, err := t.upReference(ctx, f.reference); err != nil {
				return false, err
			}
		}
		if err := t.upBuild(ctx, f.build, f.commit); err != nil {
			return false, err
		}
	}
	return found, nil
}

func (t *tracer) addCommits(ctx context.Context, commit, repository string) error {
	if commit == "" {
		return nil
	}
	found, err := t.reading.commits(ctx, commit, repository, t.most+1)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		// Nobody recorded it, but something names it.
		found = []audit.TracedCommit{{Repository: repository, Commit: commit}}
	}
	for _, c := range found {
		add(t, t.commits, pair{c.Repository, c.Commit}, &t.answer.Commits, c)
	}
	return nil
}

// addAssignments adds what nodes were told with a condition, each time from when until when.
func (t *tracer) addAssignments(ctx context.Context, condition string, args ...any) error {
	var last *audit.Standing
	var lastFact *fact
	rows := 0
	err := t.each(ctx, func(scan func(...any) error) error {
		var s stood
		var err error
		if s.fact, err = scanFact(scan, &s.node, &s.module); err != nil {
			return errors.Wrap(err, "read an assignment")
		}
		if rows++; rows > t.most {
			t.answer.More = true
			return nil
		}
		if last != nil && lastFact.key == s.key && lastFact.since == s.since && lastFact.to == s.from {
			last.Until = s.to.time() // the same, told again
			lastFact = s.fact
			return nil
		}
		shown, err := s.standing()
		if err != nil {
			return err
		}
		shown.Until = s.to.time()
		last = nil
		if add(t, t.assignments, shown.Sequence, &t.answer.Assignments, shown) {
			last, lastFact = &t.answer.Assignments[len(t.answer.Assignments)-1], s.fact
		}
		return nil
	}, `SELECT k.node, k.module, `+factColumns+` FROM record r JOIN "key" k ON k.id = r."key" WHERE `+condition+
		` AND k.kind = ? AND r.stands AND r.valid_from < r.valid_to ORDER BY r."key", r.valid_from LIMIT ?`, append(args, kindTold, t.most+1)...)
	return err
}

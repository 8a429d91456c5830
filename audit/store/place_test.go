package store

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"catenary/audit"
	"catenary/es"
	"catenary/es/estest"
	"catenary/es/project"
	"catenary/events"
)

// said is what one event of a made history says of the one assignment it is about.
type said struct {
	from, known time.Time
	version     string // empty: the module ended
	backfill    bool
	observed    bool // it only says what runs
}

// timeline is the plain model of what was told: what holds from when on, as known after some events.
type timeline struct {
	steps  []said
	latest time.Time
}

func (l *timeline) at(t time.Time) (string, bool) {
	for _, s := range slices.Backward(l.steps) {
		if !s.from.After(t) {
			return s.version, true
		}
	}
	return "", false
}

// take lets an event change the timeline: it comes after all that became true no later. What is added behind the newest fact holds
// up to that at the longest, from where on what stood stands again.
func (l *timeline) take(s said) {
	if s.backfill {
		i := slices.IndexFunc(l.steps, func(o said) bool { return o.from.After(s.from) })
		if i < 0 {
			goesOn, _ := l.at(s.from)
			l.steps = append(l.steps, s, said{from: l.latest, version: goesOn})
			return
		}
		l.steps = slices.Insert(l.steps, i, s)
		return
	}
	if s.from.After(l.latest) {
		l.latest = s.from
	}
	if !s.observed {
		l.steps = append(l.steps, s)
	}
}

// TestBothTimes makes histories with late reports, additions to the history and clocks that are set back, and asks what was told at any
// moment as known at any other: the answers are those of the plain model. A store that took the events in one by one and one that was
// built anew say the same, in SQL too.
func TestBothTimes(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		r := newRecorder(t)
		history := madeHistory(rt, r)
		live := &Store{cfg: Config{Path: filepath.Join(folder, fmt.Sprintf("live-%d.db", n)), Events: r.stream, Registry: r.registry, Clock: time.Now, Logger: slog.New(slog.DiscardHandler)}, track: newTracker()}
		defer live.retire()
		thorough := n%5 == 0 // making indexes and views takes longer than all the rest
		takeOneByOne(rt, live, thorough)
		if err := live.publish(); err != nil {
			rt.Fatal(err)
		}
		for range 25 {
			at := epochAnd(rapid.IntRange(-1, 70).Draw(rt, "at"))
			known := epochAnd(rapid.IntRange(60, 200).Draw(rt, "known"))
			want, ok := knownAt(history, known).at(at)
			found, err := live.AsOf(context.Background(), audit.AsOfQuestion{Moment: audit.Moment{At: at, KnownAt: known}})
			if err != nil {
				rt.Fatal(err)
			}
			got := ""
			if len(found.Assignments) == 1 {
				got = found.Assignments[0].Package.Version
			}
			if got != want || len(found.Assignments) > 1 {
				rt.Errorf("at %s as known at %s it is %q, want %q", at, known, got, want)
			}
			if !thorough {
				continue
			}
			rows := ask(rt, live, `SELECT ifnull(version, ''), stands FROM assignments_known WHERE valid_from <= ?1 AND (valid_to > ?1 OR valid_to IS NULL) AND known_from <= ?2 AND (known_to > ?2 OR known_to IS NULL)`,
				at.Format(sqlTime), known.Format(sqlTime))
			if len(rows) > 1 || ok != (len(rows) == 1) || ok && rows[0][0] != want {
				rt.Errorf("in SQL, at %s as known at %s: %v, want %q (%t)", at, known, rows, want, ok)
			}
		}
		if !thorough {
			return
		}
		live.cfg.Path = filepath.Join(folder, fmt.Sprintf("built-%d.db", n))
		before := contents(rt, live)
		checkTurns(rt, live)
		if err := live.build(context.Background(), &project.Control{}); err != nil {
			rt.Fatal(err)
		}
		if err := live.publish(); err != nil {
			rt.Fatal(err)
		}
		if diff := gocmp.Diff(before, contents(rt, live)); diff != "" {
			rt.Errorf("built anew it says something else (-one by one +anew):\n%s", diff)
		}
	})
}

// sqlTime is how views write times.
const sqlTime = "2006-01-02T15:04:05.000000000Z"

// epochAnd is a moment of the made histories.
func epochAnd(minutes int) time.Time { return estest.Epoch().Add(time.Duration(minutes) * time.Minute) }

func knownAt(history []said, known time.Time) *timeline {
	l := &timeline{}
	for _, s := range history {
		if !s.known.After(known) {
			l.take(s)
		}
	}
	return l
}

// madeHistory records a history of one assignment. Effective times are within the first hour, recorded ones after it.
func madeHistory(rt *rapid.T, r *recorder) []said {
	var history []said
	recorded, latest, known := 60, 0, time.Time{}
	for i := range rapid.IntRange(1, 25).Draw(rt, "events") {
		recorded += rapid.IntRange(-2, 8).Draw(rt, "recorded")
		s := said{version: fmt.Sprint("v", rapid.IntRange(0, 4).Draw(rt, "version"))}
		what := rapid.SampledFrom([]string{"assign", "assign", "end", "observe", "backfill", "backfill end"}).Draw(rt, "what")
		if i == 0 {
			what = "assign"
		}
		at := min(latest+rapid.IntRange(0, 5).Draw(rt, "later"), 60)
		if what == "backfill" || what == "backfill end" {
			if latest == 0 {
				continue
			}
			at = rapid.IntRange(0, latest-1).Draw(rt, "earlier")
			s.backfill = true
		} else {
			latest = at
		}
		e := es.Event{Ref: ref("n1", "web"), Recorded: epochAnd(recorded), Effective: epochAnd(at), Backfill: s.backfill}
		switch what {
		case "observe":
			s.observed = true
			r.add(e, events.AssignmentApplied{Seen: events.Seen{Node: "n1", Module: "web", Build: s.version}})
		case "end", "backfill end":
			s.version = ""
			r.add(e, events.AssignmentEnded{Node: "n1", Module: "web"})
		default:
			r.add(e, events.AssignmentAssigned{Told: told("n1", "web", s.version)})
		}
		if e.Recorded.After(known) {
			known = e.Recorded
		}
		s.from, s.known = e.Effective, known
		history = append(history, s)
	}
	r.flush()
	return history
}

// takeOneByOne takes the stream in, each event in a transaction of its own.
func takeOneByOne(rt *rapid.T, s *Store, complete bool) {
	ctx := context.Background()
	db, err := openBuild(s.cfg.Path)
	if err != nil {
		rt.Fatal(err)
	}
	w, err := newWriting(ctx, db, &project.Control{}, true)
	if err != nil {
		rt.Fatal(err)
	}
	head := es.Head{}
	for m, err := range es.VerifyChain(&head, s.cfg.Events.Read(ctx, 0)) {
		if err != nil {
			rt.Fatal(err)
		}
		err := w.take(ctx, prepare(s.cfg.Registry, m, head))
		if err == nil {
			err = w.commit(ctx)
		}
		clear(w.heads) // what is at hand makes no difference
		if err == nil {
			err = w.lookUp(ctx)
		}
		if err != nil {
			rt.Fatal(err)
		}
	}
	if complete {
		err = finish(ctx, w.conn)
	}
	if err != nil {
		rt.Fatal(err)
	}
	if err := w.close(); err != nil {
		rt.Fatal(err)
	}
}

// checkTurns finds out from the rows in the order in which they became true what each of them changed.
func checkTurns(rt *rapid.T, s *Store) {
	before, had, seen := "", map[string]bool{}, map[string]bool{}
	for _, row := range ask(rt, s, `SELECT r.sequence, iif(r.stands, r.version, ''), ifnull(r.turn, 0) FROM record r JOIN "key" k ON k.id = r."key"
 WHERE k.kind = 'assignment' ORDER BY r.valid_from, r.id`) {
		sequence, now := fmt.Sprint(row[0]), row[1].(string)
		want := turn(0)
		switch {
		case seen[sequence] || now == before:
		case before == "":
			want = turnStarted
		case now == "":
			want = turnEnded
		case now < before:
			want = turnLowered
		case had[now]:
			want = turnReturned
		default:
			want = turnChanged
		}
		if got := fmt.Sprint(row[2]); got != fmt.Sprint(int64(want)) {
			rt.Errorf("event %s tells %q after %q: turn %s, want %d", sequence, now, before, got, want)
		}
		had[now] = had[now] || want != 0
		seen[sequence], before = true, now
	}
}

// contents gives all that the intervals say.
func contents(t fataler, s *Store) map[string][][]any {
	found := map[string][][]any{}
	for _, table := range []string{"assignments_known", "observations", "events"} {
		found[table] = ask(t, s, "SELECT * FROM "+table)
		slices.SortFunc(found[table], func(a, b []any) int { return slices.Compare([]byte(fmt.Sprint(a...)), []byte(fmt.Sprint(b...))) })
	}
	return found
}

type fataler interface {
	Fatal(args ...any)
	Helper()
}

// ask runs a statement and gives its rows.
func ask(t fataler, s *Store, query string, args ...any) [][]any {
	t.Helper()
	found, err := s.SQL(context.Background(), audit.SQLQuestion{Query: query, Arguments: args})
	if err != nil {
		t.Fatal(err)
	}
	return found.Rows
}

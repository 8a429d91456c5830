package projecttest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"go.uber.org/goleak"

	"catenary/es"
	"catenary/es/project"
	"catenary/es/project/projecttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type put struct {
	N int `json:"n"`
}

func registry() *es.Registry {
	r := es.NewRegistry(es.Msgpack{})
	es.Register[put](r, "thing.put.v1")
	return r
}

// view is one that folds as a test says; its state is how many events it has seen.
type view struct {
	seen int
	fold func(v *view, e es.Event) ([]project.Value, error)
	load func(v *view, key string, value []byte) error
}

func (v *view) Name() string { return "things" }
func (v *view) Version() int { return 1 }

func (v *view) Load(key string, value []byte) error { return v.load(v, key, value) }

func (v *view) Fold(e es.Event) ([]project.Value, error) { return v.fold(v, e) }

func values(v *view, e es.Event) ([]project.Value, error) {
	v.seen++
	return []project.Value{{Key: e.Ref.Key, Data: fmt.Appendf(nil, "%d", v.seen)}}, nil
}

func loadSeen(v *view, _ string, value []byte) error {
	_, err := fmt.Sscanf(string(value), "%d", &v.seen)
	return err
}

// recorder is a test that only notes how it fails.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(r)
}

// failures gives how a scenario fails.
func failures(t *testing.T, scenario func(t testing.TB)) (out string) {
	t.Helper()
	r := &recorder{TB: t}
	defer func() {
		if p := recover(); p != nil && p != any(r) {
			panic(p)
		}
		out = strings.Join(r.failures, "\n")
	}()
	scenario(r)
	return ""
}

// TestScenarioFailsWhenItShould states things that do not hold.
func TestScenarioFailsWhenItShould(t *testing.T) {
	t.Parallel()
	fact := projecttest.Fact{Ref: es.Ref{Aggregate: "thing", Key: "a"}, Data: put{N: 1}}
	good := func() project.View { return &view{fold: values, load: loadSeen} }
	two := func(t testing.TB, newView func() project.View) *projecttest.Outcome {
		return projecttest.Spec(t, registry(), newView).Given(fact).When(fact)
	}
	calls := 0
	for _, c := range []struct {
		name     string
		scenario func(t testing.TB)
		want     string
	}{
		{"what holds", func(t testing.TB) { two(t, good).Then(project.Value{Key: "a", Data: []byte("2")}) }, ""},
		{"other values", func(t testing.TB) { two(t, good).Then(project.Value{Key: "a", Data: []byte("3")}) }, "values (-want"},
		{"nothing", func(t testing.TB) { two(t, good).ThenNothing() }, "values (-want"},
		{"a failure", func(t testing.TB) { two(t, good).ThenFails("x") }, "want an error"},
		{"state beside the values", func(t testing.TB) {
			two(t, func() project.View {
				return &view{fold: values, load: func(*view, string, []byte) error { return nil }}
			})
		}, "taken up from its values the view gives others"},
		{"values that do not load", func(t testing.TB) {
			two(t, func() project.View {
				return &view{fold: values, load: func(*view, string, []byte) error { return errors.New("no") }}
			})
		}, "does not load"},
		{"chance", func(t testing.TB) {
			two(t, func() project.View {
				return &view{load: loadSeen, fold: func(_ *view, e es.Event) ([]project.Value, error) {
					calls++
					return []project.Value{{Key: "a", Data: fmt.Appendf(nil, "%d", calls)}}, nil
				}}
			})
		}, "gives others"},
		{"two values for a key", func(t testing.TB) {
			two(t, func() project.View {
				return &view{load: loadSeen, fold: func(*view, es.Event) ([]project.Value, error) {
					return []project.Value{{Key: "a", Data: []byte("1")}, {Key: "a", Data: []byte("1")}}, nil
				}}
			})
		}, "two values for key a"},
		{"a given event that fails", func(t testing.TB) {
			two(t, func() project.View {
				return &view{load: loadSeen, fold: func(*view, es.Event) ([]project.Value, error) { return nil, errors.New("no") }}
			})
		}, "given event 1"},
		{"another reason", func(t testing.TB) {
			projecttest.Spec(t, registry(), func() project.View {
				return &view{load: loadSeen, fold: func(*view, es.Event) ([]project.Value, error) { return nil, errors.New("no") }}
			}).When(fact).ThenFails("yes")
		}, `want one with "yes"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := failures(t, c.scenario)
			if !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
				t.Errorf("fails with %q, want %q", got, c.want)
			}
		})
	}
}

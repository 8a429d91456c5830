package events_test

import (
	"reflect"
	"strings"
	"testing"

	"catenary/es"
	"catenary/events"
)

// TestStoredNames demands that a stored name says its aggregate, what happened, and its version.
func TestStoredNames(t *testing.T) {
	t.Parallel()
	aggregates := map[string]reflect.Type{
		events.AggregateModule: reflect.TypeFor[events.Module](), events.AggregateNode: reflect.TypeFor[events.Node](),
		events.AggregateCommit: reflect.TypeFor[events.Commit](), events.AggregateBuild: reflect.TypeFor[events.Build](),
		events.AggregatePublication: reflect.TypeFor[events.Publication](), events.AggregateAssignment: reflect.TypeFor[events.Assignment](),
		events.AggregateFreeze: reflect.TypeFor[events.Freeze](), events.AggregateLease: reflect.TypeFor[events.Lease](),
		events.AggregateProjection: reflect.TypeFor[events.Projection](), events.AggregateWriter: reflect.TypeFor[events.Writer](),
		events.AggregateActor: reflect.TypeFor[events.Actor](),
		events.AggregateMerge: reflect.TypeFor[events.Merge](), events.AggregateTrack: reflect.TypeFor[events.Track](),
		events.AggregateStrategy: reflect.TypeFor[events.StrategyFact](), events.AggregateRollout: reflect.TypeFor[events.Rollout](),
	}
	r := events.Registry()
	for _, name := range r.Names() {
		parts := strings.Split(name, ".")
		if len(parts) != 3 || !strings.HasPrefix(parts[2], "v") || parts[1] == "" {
			t.Errorf("%s is not <aggregate>.<what happened>.v<version>", name)
			continue
		}
		zero, err := r.Zero(name)
		if err != nil {
			t.Fatal(err)
		}
		facts, ok := aggregates[parts[0]]
		if !ok || !reflect.TypeOf(zero).Implements(facts) {
			t.Errorf("%s: %T is no fact about a %s", name, zero, parts[0])
		}
		if err := (es.Msgpack{}).CheckType(reflect.TypeOf(zero)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSamplesAreWhole demands that the golden samples leave nothing out: a field that no sample sets is pinned by nothing.
func TestSamplesAreWhole(t *testing.T) {
	t.Parallel()
	for name, sample := range samples() {
		v := reflect.ValueOf(sample)
		missing := unset(v, v.Type().Name())
		for _, m := range missing {
			// A reference is an artifact or a package, never both; each is set in some sample.
			if !strings.HasSuffix(m, "Reference.Artifact") && !strings.HasSuffix(m, "Reference.Package") {
				t.Errorf("%s: %s is not set", name, m)
			}
		}
	}
}

func unset(v reflect.Value, path string) []string {
	if v.IsZero() {
		return []string{path}
	}
	var missing []string
	switch v.Kind() {
	case reflect.Pointer:
		return unset(v.Elem(), path)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				missing = append(missing, unset(v.Field(i), path+"."+f.Name)...)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			return unset(v.Index(0), path)
		}
	}
	return missing
}

func TestReferences(t *testing.T) {
	t.Parallel()
	a, b := events.Reference{Artifact: "sha256:1"}, events.Reference{Package: &events.Package{Name: "web", Version: "1"}}
	same := events.Reference{Package: &events.Package{Name: "web", Version: "1"}}
	other := events.Reference{Package: &events.Package{Name: "web", Version: "1.0"}}
	if !b.Equal(same) || b.Equal(other) || b.Equal(a) || a.Equal(events.Reference{}) || !a.Equal(a) {
		t.Error("references are compared by something else than what they refer to")
	}
	if !(events.Reference{}).IsZero() || a.IsZero() || b.IsZero() {
		t.Error("a reference to nothing is not told from one to something")
	}
	if a.String() != "sha256:1" || b.String() != "web@1" {
		t.Errorf("shown as %s and %s", a, b)
	}
}

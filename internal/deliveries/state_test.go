package deliveries

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadState(t *testing.T) {
	t.Parallel()
	at := row(1, "e", "a", "1").At
	got, err := ReadState(strings.NewReader(`{"production":{"b":"1.20","a":"012"},"integration":{"b":"NaN"},"empty":{}}`), at)
	if err != nil {
		t.Fatal(err)
	}
	want := State{At: at, Pairs: []Pair{{"integration", "b", "NaN"}, {"production", "a", "012"}, {"production", "b", "1.20"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
	for text, want := range map[string]string{
		`[]`: "not a JSON object", `{"e":"x"}`: `environment "e"`, `{"e":{"a":1.20}}`: "1.20 is no string", `{"e":{"a":""}}`: "version is empty",
		`{"e":{"a":"1"},"e":{"a":"2"}}`: "stands there twice", `{"e":{"a":"1","a":"2"}}`: "stands there twice", `{`: "not JSON",
		`{"e":{"a":"` + strings.Repeat("x", MaxStateBytes) + `"}}`: "the limit",
	} {
		if _, err := ReadState(strings.NewReader(text), at); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: got %v, want an error with %q", text, err, want)
		}
	}
}

package deliveries

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func ptr[T any](v T) *T { return &v }

func TestParseRow(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 7, 34, 45, 0, time.UTC)
	cases := []struct {
		name, line string
		want       Row
	}{
		{"deploy, with fields that mean nothing here",
			`{"seq":114473,"t":"2026-05-01T07:34:45Z","commit":"de80","src":"9fc1","by":"bot-6","path":"a/b","app":"whitehall","env":"integration","kind":"deploy","old":"v1","new":"v2","more":{"x":[1]}}`,
			Row{At: at, Commit: "de80", By: "bot-6", App: "whitehall", Environment: "integration", Kind: KindDeploy, Old: ptr("v1"), New: ptr("v2")}},
		{"add", `{"t":"2026-05-01T09:34:45+02:00","app":"a","env":"e","kind":"add","old":null,"new":"1.20"}`,
			Row{At: at, App: "a", Environment: "e", Kind: KindAdd, New: ptr("1.20")}},
		{"remove", `{"t":"2026-05-01T07:34:45Z","app":"a","env":"e","kind":"remove","old":"0362525","new":null}`,
			Row{At: at, App: "a", Environment: "e", Kind: KindRemove, Old: ptr("0362525")}},
		{"policy", `{"t":"2026-05-01T07:34:45Z","app":"a","env":"e","kind":"policy","key":"manual_deployment","new":"True"}`,
			Row{At: at, App: "a", Environment: "e", Kind: KindPolicy, Policy: PolicyManual, New: ptr("True")}},
		{"names in any script", `{"t":"2026-05-01T07:34:45Z","app":"\u7bc0 点","env":"node ä","kind":"add","new":"🚀"}`,
			Row{At: at, App: "節 点", Environment: "node ä", Kind: KindAdd, New: ptr("🚀")}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseRow([]byte(c.line))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseRowRefuses(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, line, want string }{
		{"no JSON", `whitehall v2`, "not JSON"},
		{"no time", `{"app":"a","env":"e","kind":"add","new":"1"}`, `field "t": is missing`},
		{"a time without a zone", `{"t":"2026-05-01 07:34","app":"a","env":"e","kind":"add","new":"1"}`, "no time in RFC 3339"},
		{"a time before all", `{"t":"0001-01-01T00:00:00Z","app":"a","env":"e","kind":"add","new":"1"}`, "lies before 1970"},
		{"a time that is early in its zone alone", `{"t":"1970-01-01T00:30:00+01:00","app":"a","env":"e","kind":"add","new":"1"}`, "lies before 1970"},
		{"null time", `{"t":null,"app":"a","env":"e","kind":"add","new":"1"}`, `field "t": null is no string`},
		{"no app", `{"t":"2026-05-01T07:34:45Z","env":"e","kind":"add","new":"1"}`, `field "app"`},
		{"another case is another field", `{"t":"2026-05-01T07:34:45Z","App":"a","env":"e","kind":"add","new":"1"}`, `field "app"`},
		{"no environment", `{"t":"2026-05-01T07:34:45Z","app":"a","kind":"add","new":"1"}`, `field "env"`},
		{"no kind", `{"t":"2026-05-01T07:34:45Z","app":"a","env":"e","new":"1"}`, `field "kind" is missing`},
		{"unknown kind", `{"t":"2026-05-01T07:34:45Z","app":"a","env":"e","kind":"undeploy","new":"1"}`, `field "kind" is "undeploy"`},
		{"deploy of nothing", `{"t":"2026-05-01T07:34:45Z","app":"a","env":"e","kind":"deploy","new":null}`, `field "new" is missing`},
		{"a version that is a number", `{"t":"2026-05-01T07:34:45Z","app":"a","env":"e","kind":"deploy","new":1.20}`, `field "new": 1.20 is no string`},
		{"remove that leaves something", `{"t":"2026-05-01T07:34:45Z","app":"a","env":"e","kind":"remove","new":"1"}`, `leaves nothing running`},
		{"unknown switch", `{"t":"2026-05-01T07:34:45Z","app":"a","env":"e","kind":"policy","key":"promote","new":"true"}`, `field "key" is "promote"`},
		{"a field twice", `{"t":"2026-05-01T07:34:45Z","app":"a","app":"b","env":"e","kind":"add","new":"1"}`, `"app" stands there twice`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got, err := ParseRow([]byte(c.line)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %+v, %v; want an error with %q", got, err, c.want)
			}
		})
	}
}

package driver_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"catenary/agent/driver"
)

func TestTail(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		keep  int
		limit int
		say   []string
		want  string
	}{
		{name: "nothing", keep: 10, limit: 10},
		{name: "all of it", keep: 100, limit: 100, say: []string{"one\n", "two\n"}, want: "one\ntwo"},
		{name: "whole lines at the end", keep: 12, limit: 100, say: []string{"first\n", "second\n", "third\n"}, want: "[13 bytes before this are cut]\nthird"},
		{name: "less than is kept", keep: 1000, limit: 40, say: []string{strings.Repeat("x", 100) + "\nlast"}, want: "[101 bytes before this are cut]\nlast"},
		{name: "what can't be shown", keep: 100, limit: 100, say: []string{"a\x1b[31mred\x00\xff\r\nb\r\n"}, want: "a[31mred\uFFFD\nb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tail := driver.Tail{Bytes: c.keep}
			for _, s := range c.say {
				if n, err := tail.Write([]byte(s)); n != len(s) || err != nil {
					t.Fatal(n, err)
				}
			}
			if got := tail.Text(c.limit); got != c.want {
				t.Errorf("kept %q, want %q", got, c.want)
			}
		})
	}
}

// TestTailIsAlwaysText writes anything: what is kept can be recorded.
func TestTailIsAlwaysText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tail := driver.Tail{Bytes: rapid.IntRange(0, 200).Draw(t, "keep")}
		for _, s := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 100)).Draw(t, "said") {
			if _, err := tail.Write(s); err != nil {
				t.Fatal(err)
			}
		}
		limit := rapid.IntRange(0, 300).Draw(t, "limit")
		if text := tail.Text(limit); !utf8.ValidString(text) || len(text) > limit {
			t.Fatalf("%d bytes of at most %d: %q", len(text), limit, text)
		}
	})
}

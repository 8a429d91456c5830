package main

import "testing"

func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                "",
		"node ä 节点 🚀":     "node ä 节点 🚀",
		"red\x1b[31m":     `red\u001B[31m`,
		"two\nlines\tand": `two\nlines\tand`,
		"gpj.\u202Eexe":   `gpj.\u202Eexe`,
		"bell\a":          `bell\u0007`,
	} {
		if found := printable(text); found != want {
			t.Errorf("%q is shown as %q, want %q", text, found, want)
		}
	}
}

func TestShellWord(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"web": "web", "a.b/c@1:2": "a.b/c@1:2", "节点": "节点", "a b": "'a b'", "it's": `'it'\''s'`, "$x": "'$x'", "": "''", "a~b": "'a~b'",
	} {
		if found := shellWord(name); found != want {
			t.Errorf("%q is written %s, want %s", name, found, want)
		}
	}
}

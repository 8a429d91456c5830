package main

import (
	"bytes"
	"os"
	"testing"
)

// TestColours: colours are for people at a terminal who did not ask for none.
func TestColours(t *testing.T) {
	t.Parallel()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := terminal.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{{nil, true}, {map[string]string{"NO_COLOR": "1"}, false}, {map[string]string{"TERM": "dumb"}, false}} {
		a := &app{Main: Main{Env: func(name string) string { return c.env[name] }}}
		if found := a.colours(terminal); found != c.want {
			t.Errorf("with %v a terminal gets colours: %v, want %v", c.env, found, c.want)
		}
		if a.colours(&bytes.Buffer{}) {
			t.Errorf("with %v what is no terminal gets colours", c.env)
		}
	}
	if found := paintIf(true, red, "x"); found != "\x1b[31mx\x1b[0m" {
		t.Errorf("red is %q", found)
	}
	if found := paintIf(false, red, "x"); found != "x" {
		t.Errorf("without colours it is %q", found)
	}
}

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

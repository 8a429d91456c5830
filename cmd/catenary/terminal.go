package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/mattn/go-isatty"
)

// colour is an ANSI attribute.
type colour string

const (
	bold   colour = "1"
	dim    colour = "2"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
)

// isTerminal says whether a person looks at the stream.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && (isatty.IsTerminal(f.Fd()) || isatty.IsCygwinTerminal(f.Fd()))
}

// colours says whether a stream takes colours: it is a terminal that knows them, and nobody has asked for none.
func (a *app) colours(w io.Writer) bool {
	return isTerminal(w) && a.Env("NO_COLOR") == "" && a.Env("TERM") != "dumb"
}

// paint colours talk.
func (a *app) paint(c colour, text string) string { return paintIf(a.colours(a.Stderr), c, text) }

func paintIf(yes bool, c colour, text string) string {
	if !yes || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// printable makes text safe to show: what would move the cursor, colour the screen or reorder a line is written as its code.
// Reasons and messages come from whoever may send a command.
func printable(text string) string {
	unsafe := func(r rune) bool {
		return r == unicode.ReplacementChar || unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
	}
	if strings.IndexFunc(text, unsafe) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case unsafe(r):
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

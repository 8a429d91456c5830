package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/sys/unix"
)

// The terminal's commands that the picture is made with.
const (
	screenEnter    = "\x1b[?1049h\x1b[?25l" // another screen, without a cursor
	screenLeave    = "\x1b[?25h\x1b[?1049l"
	screenHome     = "\x1b[H"
	screenRestLine = "\x1b[K"
	screenRest     = "\x1b[J"
)

// Sizes of a window that does not tell its own: those of the first terminals.
const (
	usualWidth  = 80
	usualHeight = 24
)

// screen shows what is seen as a picture on a terminal of its size.
type screen struct {
	out           *os.File
	zone          *time.Location
	colours       bool
	width, height int
	last          sight
}

var _ watcher = (*screen)(nil)

// newScreen takes over the terminal; it MUST be closed.
func (a *app) newScreen(zone *time.Location) (*screen, error) {
	out, ok := a.Stdout.(*os.File)
	if !ok {
		return nil, errors.AssertionFailedf("a picture on what is no file")
	}
	s := &screen{out: out, zone: zone, colours: a.colours(out)}
	s.width, s.height = s.size()
	_, err := io.WriteString(out, screenEnter)
	return s, errors.Wrap(err, "write to the terminal")
}

func (s *screen) size() (width, height int) {
	w, err := unix.IoctlGetWinsize(int(s.out.Fd()), unix.TIOCGWINSZ)
	if err != nil || w.Col == 0 || w.Row == 0 {
		return usualWidth, usualHeight
	}
	return int(w.Col), int(w.Row)
}

func (s *screen) show(seen sight) error {
	s.last = seen
	s.width, s.height = s.size()
	_, err := io.WriteString(s.out, painted(frame(seen, s.zone), s.width, s.height, s.colours))
	return errors.Wrap(err, "write to the terminal")
}

func (s *screen) again() error {
	if width, height := s.size(); width == s.width && height == s.height || s.last.At.IsZero() {
		return nil
	}
	return s.show(s.last)
}

func (s *screen) close() error {
	_, err := io.WriteString(s.out, screenLeave)
	return errors.Wrap(err, "write to the terminal")
}

// watchOnce shows the picture once, as long and as wide as it is.
type watchOnce struct {
	out     io.Writer
	zone    *time.Location
	colours bool
}

var _ watcher = (*watchOnce)(nil)

func (w *watchOnce) show(seen sight) error {
	var b strings.Builder
	for _, l := range frame(seen, w.zone) {
		b.WriteString(paintIf(w.colours, l.shade, l.text) + "\n")
	}
	_, err := io.WriteString(w.out, b.String())
	return errors.Wrap(err, "write the output")
}

func (w *watchOnce) again() error { return nil }

func (w *watchOnce) close() error { return nil }

// painted gives a frame as a terminal of a size takes it: no line wider, and no more lines than it has, with a word about the rest.
func painted(lines []frameLine, width, height int, colours bool) string {
	if n := len(lines); n > height {
		rest := frameLine{text: fmt.Sprintf("%s more: make the window higher", counted(n-height+1, "line")), shade: dim}
		lines = append(lines[:max(0, height-1):max(0, height-1)], rest)
	}
	var b strings.Builder
	b.WriteString(screenHome)
	for i, l := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(paintIf(colours, l.shade, text.Snip(l.text, width, "~")) + screenRestLine)
	}
	b.WriteString(screenRest)
	return b.String()
}

// frameLine is a line of the picture.
type frameLine struct {
	text  string
	shade colour
}

// barCells is how long the bar of a tier is.
const barCells = 20

// frame makes the picture: what holds for all first, then the rollouts, then the places that need a look.
func frame(s sight, zone *time.Location) []frameLine {
	var lines []frameLine
	add := func(shade colour, format string, args ...any) {
		lines = append(lines, frameLine{text: printable(fmt.Sprintf(format, args...)), shade: shade})
	}
	add(bold, "catenary at %s  %s", s.Server, showTime(s.At, zone))
	switch {
	case s.Behind != "":
		add(red, "perhaps out of date: %s", s.Behind)
	default:
		add(green, "up to date, event %s", number(s.Event))
	}
	add("", "%s", s.fleet())
	add("", "")
	if len(s.Rollouts) == 0 {
		add(dim, "no rollouts; make one with: catenary rollout plan --help")
	}
	for _, g := range s.Rollouts {
		shade := map[bool]colour{true: bold, false: dim}[g.stands]
		if !g.stands && g.State == "failed" {
			shade = red
		}
		add(shade, "%s", g.headline())
		if !g.stands {
			continue
		}
		widest := 0
		for _, t := range g.Tiers {
			widest = max(widest, text.StringWidth(t.Name))
		}
		for _, t := range g.Tiers {
			shade := colour("")
			switch {
			case t.Counts.Failed+t.Counts.Unknown > 0:
				shade = yellow
			case !t.Entered:
				shade = dim
			}
			add(shade, "  %s  %s  %s", t.Name+strings.Repeat(" ", widest-text.StringWidth(t.Name)), t.bar(), t.says)
		}
		for _, held := range g.Waits {
			add("", "  %s%s", held, untilWhen(held.Until, zone))
		}
	}
	if s.NoEngine != "" && len(s.Rollouts) > 0 {
		add(yellow, "no engine says what rollouts wait for: %s", s.NoEngine)
	}
	if s.TroubleCount > 0 {
		add("", "")
		add(bold, "%s not as told", map[bool]string{true: "1 place is", false: count(s.TroubleCount) + " places are"}[s.TroubleCount == 1])
	}
	for _, t := range s.Trouble {
		add(yellow, "  %s", t)
	}
	return lines
}

func untilWhen(at time.Time, zone *time.Location) string {
	if at.IsZero() {
		return ""
	}
	return ", until " + showTime(at, zone)
}

// bar draws how far a tier is: # for what is done or was skipped, ! for what failed or is unknown, > for what is under way.
func (t tierSight) bar() string {
	c := t.Counts
	if c.Steps == 0 {
		return "[" + strings.Repeat(".", barCells) + "]"
	}
	bar, sum, drawn := "[", 0, 0
	for _, part := range []struct {
		n    int
		sign string
	}{{c.Done + c.Skipped, "#"}, {c.Failed + c.Unknown, "!"}, {c.Pending, ">"}, {c.Steps, "."}} {
		sum = min(c.Steps, sum+part.n)
		bar += strings.Repeat(part.sign, sum*barCells/c.Steps-drawn)
		drawn = sum * barCells / c.Steps
	}
	return bar + "]"
}

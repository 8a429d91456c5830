package main

import (
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
)

var columns = []string{"row", "durability, replicas", "callers", "ours", "p50", "p99", "CPU each", "bare nats.go", "CPU each", "of", "ratio", "must reach", ""}

// cells are a line's.
func (l line) cells() []string {
	if l.ours.processed == 0 {
		return []string{l.name, l.ground, "", "", "", "", "", "", "", "", "", l.target.String(), l.note}
	}
	cells := []string{l.name, l.ground, "", thousands(l.ours.rate) + " " + l.unit + "/s", wait(l.ours.p50), wait(l.ours.p99), wait(l.ours.cpu), "", wait(l.bare.cpu), l.bareName, "", l.target.String(), l.verdict()}
	if l.callers > 0 {
		cells[2] = thousands(float64(l.callers))
	}
	if l.bare.processed > 0 {
		cells[7] = thousands(l.bare.rate) + "/s"
		if l.target.latency {
			cells[7] = wait(l.bare.p50)
		}
		cells[10] = fmt.Sprintf("%.2f", l.ratio)
	}
	return cells
}

func (l line) verdict() string {
	passes, judged := l.passes()
	switch {
	case !judged:
		return l.note
	case passes:
		return "pass"
	}
	return "short"
}

func (l line) String() string { return strings.Join(l.cells(), " | ") }

// wait writes a latency; none is empty.
func wait(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// thousands writes a number for people: 96,271.
func thousands(f float64) string {
	digits := strconv.FormatFloat(f, 'f', 0, 64)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// printTable prints the lines as a Markdown table, and what it was measured with.
func printTable(w io.Writer, c config, lines []line) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d CPUs, %s/%s; medians of %d runs of %s each\n\n", runtime.Version(), runtime.GOMAXPROCS(0), runtime.GOOS, runtime.GOARCH, c.runs, c.runTime)
	table := [][]string{columns}
	for _, l := range lines {
		table = append(table, l.cells())
	}
	width := make([]int, len(columns))
	for _, cells := range table {
		for i, cell := range cells {
			width[i] = max(width[i], len([]rune(cell)))
		}
	}
	for i, cells := range table {
		b.WriteString("|")
		for k, cell := range cells {
			fmt.Fprintf(&b, " %s%s |", cell, strings.Repeat(" ", width[k]-len([]rune(cell))))
		}
		b.WriteString("\n")
		if i == 0 {
			b.WriteString("|")
			for _, n := range width {
				b.WriteString(strings.Repeat("-", n+2) + "|")
			}
			b.WriteString("\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return errors.Wrap(err, "print the table")
}

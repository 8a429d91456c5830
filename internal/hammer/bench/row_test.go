package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func rates(ours, bare float64) pair {
	return pair{ours: figure{rate: ours, processed: 1}, bare: figure{rate: bare, processed: 1}}
}

// A pair that was slowed down as a whole says the same as another.
func TestRatioIsThatOfPairs(t *testing.T) {
	t.Parallel()
	l := line{}.summed([]pair{rates(100, 50), rates(10, 5), rates(90, 45), rates(1000, 900), rates(60, 30)})
	if l.ratio != 2 || l.ours.rate != 90 || l.bare.rate != 45 {
		t.Errorf("ratio %v of %v to %v", l.ratio, l.ours.rate, l.bare.rate)
	}
	l = line{target: target{latency: true}}.summed([]pair{{ours: figure{p50: 6 * time.Millisecond}, bare: figure{p50: 5 * time.Millisecond}}})
	if l.ratio != 1.2 {
		t.Errorf("ratio of latencies %v", l.ratio)
	}
	if l = (line{}).summed([]pair{rates(100, 0)}); l.ratio != 0 {
		t.Errorf("ratio without a counterpart %v", l.ratio)
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	measured := figure{rate: 12_000, processed: 12_000, p50: time.Millisecond, p99: 2 * time.Millisecond}
	for _, c := range []struct {
		name  string
		ratio float64
		target
		note, must, want string
	}{
		{"a multiple reached", 8.1, target{ratio: 8}, "", "at least 8 ×", "pass"},
		{"a multiple missed", 7.9, target{ratio: 8}, "", "at least 8 ×", "short"},
		{"a part reached", 0.61, target{ratio: 0.6}, "", "at least 60 %", "pass"},
		{"a latency kept", 1.3, target{ratio: 1.3, latency: true}, "", "at most 1.3 ×", "pass"},
		{"a latency exceeded", 1.31, target{ratio: 1.3, latency: true}, "", "at most 1.3 ×", "short"},
		{"the rate is enough", 0.1, target{ratio: 0.6, rate: 12_000}, "", "at least 12,000/s or 60 %", "pass"},
		{"the ratio is enough", 0.7, target{ratio: 0.6, rate: 40_000}, "", "at least 40,000/s or 60 %", "pass"},
		{"neither", 0.1, target{ratio: 0.6, rate: 40_000}, "", "at least 40,000/s or 60 %", "short"},
		{"a rate alone", 0, target{rate: 12_000}, "", "at least 12,000/s", "pass"},
		{"most latencies kept", 0, target{p99: 3 * time.Millisecond, rate: 12_000}, "", "p99 at most 3ms at 12,000/s", "pass"},
		{"most latencies kept at too low a rate", 0, target{p99: 3 * time.Millisecond, rate: 13_000}, "", "p99 at most 3ms at 13,000/s", "short"},
		{"too many latencies exceeded", 0, target{p99: time.Millisecond, rate: 12_000}, "", "p99 at most 1ms at 12,000/s", "short"},
		{"no target", 0.1, target{}, "said", "", "said"},
	} {
		l := line{ours: measured, bare: measured, ratio: c.ratio, target: c.target, note: c.note}
		cells := l.cells()
		if got := cells[len(cells)-2:]; cmp.Diff([]string{c.must, c.want}, got) != "" {
			t.Errorf("%s: %q, want %q", c.name, got, []string{c.must, c.want})
		}
	}
	unmeasured := line{target: target{ratio: 8}, note: "no data"}
	if cells := unmeasured.cells(); cells[len(cells)-1] != "no data" {
		t.Errorf("a row without figures says %q", cells)
	}
}

func TestNumbersForPeople(t *testing.T) {
	t.Parallel()
	for f, want := range map[float64]string{0: "0", 999.6: "1,000", 12: "12", 1234567: "1,234,567"} {
		if got := thousands(f); got != want {
			t.Errorf("%v is written %s, want %s", f, got, want)
		}
	}
	for d, want := range map[time.Duration]string{0: "", 1234567: "1.23ms", 45_678: "46µs", 1234567890: "1.235s"} {
		if got := wait(d); got != want {
			t.Errorf("%v is written %q, want %q", d, got, want)
		}
	}
}

func TestTableIsAligned(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	lines := []line{{name: "a", ground: "g", ours: figure{processed: 1, rate: 1}, unit: "×"}, {name: "longer", note: "n"}}
	if err := printTable(&b, config{runs: 5, runTime: time.Second}, lines); err != nil {
		t.Fatal(err)
	}
	head, table, _ := strings.Cut(b.String(), "\n\n")
	if !strings.Contains(head, "medians of 5 runs of 1s") {
		t.Errorf("the head is %q", head)
	}
	rows := strings.Split(strings.TrimSpace(table), "\n")
	if len(rows) != len(lines)+2 {
		t.Fatalf("%d rows:\n%s", len(rows), table)
	}
	for _, row := range rows {
		if len([]rune(row)) != len([]rune(rows[0])) {
			t.Errorf("a row is not as long as the first:\n%s", table)
		}
	}
}

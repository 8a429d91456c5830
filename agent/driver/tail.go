package driver

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Tail keeps the end of what is written to it, for the report of a failure. The zero value keeps nothing; it is safe for use by
// many goroutines.
type Tail struct {
	// Bytes is how much is kept.
	Bytes int

	mu   sync.Mutex
	kept []byte
	cut  int64
}

// Write takes more. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.Bytes; over > 0 {
		t.cut += int64(over)
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// Text gives the last lines as text that can be shown and recorded: whole lines, where there is more than one, without control
// characters, and with a note of what was cut. At most limit bytes long.
func (t *Tail) Text(limit int) string {
	t.mu.Lock()
	kept, cut := bytes.Clone(t.kept), t.cut
	t.mu.Unlock()
	text := Printable(string(kept))
	if cut == 0 && len(text) <= limit {
		return text
	}
	const note = "[%d bytes before this are cut]\n"
	room := max(limit-len(fmt.Sprintf(note, cut+int64(len(kept)))), 0)
	if over := len(text) - room; over > 0 {
		for over < len(text) && !utf8.RuneStart(text[over]) {
			over++
		}
		cut += int64(over)
		text = text[over:]
	}
	if _, rest, ok := strings.Cut(text, "\n"); ok {
		cut += int64(len(text) - len(rest))
		text = rest
	}
	if whole := fmt.Sprintf(note, cut) + text; len(whole) <= limit {
		return whole
	}
	return text
}

// Printable makes text of what a command wrote: valid UTF-8 without control characters but line ends and tabs, and without white space
// around it.
func Printable(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
	return strings.TrimSpace(s)
}

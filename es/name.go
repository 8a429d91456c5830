package es

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cockroachdb/errors"
	"golang.org/x/text/unicode/norm"
)

// MaxNameBytes bounds one name. Escaping triples it at worst, so a subject of three such names stays under
// [MaxSubjectBytes]; stores refuse a longer one.
const MaxNameBytes = 255

// MaxSubjectBytes bounds a whole subject. The server closes a connection for good on a subject over 4,096 bytes.
const MaxSubjectBytes = 3000

// ErrName marks a name that can't be used. Its message gives the code point or the limit, and what to do.
var ErrName = errors.New("invalid name")

// CheckName says whether a name that a person chose can be used: 1 to [MaxNameBytes] bytes of valid UTF-8 in normal form
// C, without control characters and without characters that can't be told apart on a screen. It gives errors marked
// [ErrName].
func CheckName(what, name string) error {
	switch {
	case name == "":
		return errors.Mark(errors.Newf("%s is empty: give it a name", what), ErrName)
	case len(name) > MaxNameBytes:
		return errors.Mark(errors.Newf("%s has %d bytes: the limit is %d", what, len(name), MaxNameBytes), ErrName)
	case !utf8.ValidString(name):
		return errors.Mark(errors.Newf("%s %q is not valid UTF-8", what, name), ErrName)
	}
	if ordinary(name) {
		return nil
	}
	for i, r := range name {
		if unseen(r) {
			return errors.Mark(errors.Newf("%s %q has the character U+%04X at byte %d, which can't be seen: leave it out", what, name, r, i), ErrName)
		}
	}
	if at := norm.NFC.QuickSpanString(name); at < len(name) && !norm.NFC.IsNormalString(name) {
		rest := name[at:]
		return errors.Mark(errors.Newf("%s %q is not in Unicode normal form C (%U at byte %d): write it as %q", what, name, []rune(rest[:norm.NFC.NextBoundaryInString(rest, true)]), at, norm.NFC.String(name)), ErrName)
	}
	return nil
}

// ordinary says whether a name has nothing but visible ASCII and plain spaces, as nearly all do: nothing more has to be looked up then.
func ordinary(name string) bool {
	for i := range len(name) {
		if name[i] < ' ' || name[i] > '~' {
			return false
		}
	}
	return true
}

// unseen holds for control characters, spaces other than U+0020, and invisible marks that make two different names look
// the same. The joiners U+200C and U+200D are allowed: scripts and emoji need them.
func unseen(r rune) bool {
	switch {
	case r == ' ':
		return false
	case unicode.Is(unicode.Cc, r), unicode.IsSpace(r), unicode.Is(unicode.Z, r):
		return true
	case r == 0x200C, r == 0x200D:
		return false
	}
	return unicode.Is(unicode.Cf, r)
}

const upperHex = "0123456789ABCDEF"

// EscapeToken makes one subject token of a name: every byte outside [A-Za-z0-9_-] becomes =XX. Ordinary names stay as they
// are. The name is expected to have passed [CheckName].
func EscapeToken(name string) string {
	n := 0
	for i := range len(name) {
		if !plain(name[i]) {
			n++
		}
	}
	if n == 0 {
		return name
	}
	var b strings.Builder
	b.Grow(len(name) + 2*n)
	for i := range len(name) {
		if c := name[i]; plain(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('=')
			b.WriteByte(upperHex[c>>4])
			b.WriteByte(upperHex[c&15])
		}
	}
	return b.String()
}

// UnescapeToken gives the name that [EscapeToken] made the token of. It gives errors marked [ErrName] for a token that
// EscapeToken never writes, so that two tokens never mean one name.
func UnescapeToken(token string) (string, error) {
	if !strings.Contains(token, "=") && token != "" {
		for i := range len(token) {
			if !plain(token[i]) {
				return "", badToken(token)
			}
		}
		return token, nil
	}
	out := make([]byte, 0, len(token))
	for i := 0; i < len(token); i++ {
		c := token[i]
		if plain(c) {
			out = append(out, c)
			continue
		}
		if c != '=' || i+2 >= len(token) {
			return "", badToken(token)
		}
		hi, lo := strings.IndexByte(upperHex, token[i+1]), strings.IndexByte(upperHex, token[i+2])
		if hi < 0 || lo < 0 || plain(byte(hi<<4|lo)) {
			return "", badToken(token)
		}
		out = append(out, byte(hi<<4|lo))
		i += 2
	}
	if len(out) == 0 {
		return "", badToken(token)
	}
	return string(out), nil
}

func badToken(token string) error {
	return errors.Mark(errors.Newf("%q is not an escaped name", token), ErrName)
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// Key makes an aggregate's or a record's key of the names that identify it, in order: one escaped token each.
func Key(names ...string) string {
	if len(names) == 1 {
		return EscapeToken(names[0])
	}
	tokens := make([]string, len(names))
	for i, n := range names {
		tokens[i] = EscapeToken(n)
	}
	return strings.Join(tokens, ".")
}

// IsKey says whether a key is the one that [Key] makes of the names.
func IsKey(key string, names ...string) bool {
	for i, name := range names {
		token, rest, more := strings.Cut(key, ".")
		if more != (i < len(names)-1) || token != EscapeToken(name) {
			return false
		}
		key = rest
	}
	return len(names) > 0
}

// SplitKey gives back the names of a key. It gives errors marked [ErrName] for what [Key] never makes.
func SplitKey(key string) ([]string, error) {
	tokens := strings.Split(key, ".")
	for i, t := range tokens {
		name, err := UnescapeToken(t)
		if err != nil {
			return nil, err
		}
		tokens[i] = name
	}
	return tokens, nil
}

// SubjectPrefix starts the subject of every event.
const SubjectPrefix = "evt"

// Ref names one aggregate instance.
type Ref struct {
	// Aggregate is the kind, a word of the glossary in lower case.
	Aggregate string
	// Key identifies the instance within its kind, as [Key] made it.
	Key string
}

// Subject is the one literal subject of the instance's events.
func (r Ref) Subject() string { return SubjectPrefix + "." + r.Aggregate + "." + r.Key }

// String gives aggregate and key as people write them.
func (r Ref) String() string { return fmt.Sprintf("%s %s", r.Aggregate, r.Key) }

// IsZero says whether the reference names nothing.
func (r Ref) IsZero() bool { return r == Ref{} }

// ParseSubject gives the aggregate instance an event's subject names. It gives errors marked [ErrName].
func ParseSubject(subject string) (Ref, error) {
	rest, ok := strings.CutPrefix(subject, SubjectPrefix+".")
	aggregate, key, ok2 := strings.Cut(rest, ".")
	if !ok || !ok2 || aggregate == "" || key == "" {
		return Ref{}, errors.Mark(errors.Newf("%q is not the subject of an event (%s.<aggregate>.<key>)", subject, SubjectPrefix), ErrName)
	}
	return Ref{Aggregate: aggregate, Key: key}, nil
}

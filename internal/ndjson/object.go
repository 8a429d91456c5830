package ndjson

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/cockroachdb/errors"
)

// ScanObject calls visit for each member of the one JSON object that line is, in order. Unlike encoding/json it matches
// names exactly and loses no text: what is not valid UTF-8, or half of a surrogate pair, is an error and not U+FFFD.
// The value is valid JSON without space around it.
func ScanObject(line []byte, visit func(name, value []byte) error) error {
	if !utf8.Valid(line) {
		return errors.New("not valid UTF-8")
	}
	if !json.Valid(line) {
		var v any
		return errors.Wrap(json.Unmarshal(line, &v), "not JSON")
	}
	rest := skipSpace(line)
	if rest[0] != '{' {
		return errors.New("not a JSON object")
	}
	// The whole is known to be valid from here on, so that each step knows what must follow.
	rest = skipSpace(rest[1:])
	for rest[0] != '}' {
		name := rest[:valueLen(rest)]
		rest = skipSpace(skipSpace(rest[len(name):])[1:]) // the colon
		value := rest[:valueLen(rest)]
		if err := visit(name, value); err != nil {
			return err
		}
		rest = skipSpace(rest[len(value):])
		if rest[0] == ',' {
			rest = skipSpace(rest[1:])
		}
	}
	return nil
}

func skipSpace(b []byte) []byte { return bytes.TrimLeft(b, " \t\r\n") }

// valueLen is the length of the value that b, part of a valid text, begins with.
func valueLen(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
	return len(b)
}

// Text gives the string a JSON value is.
func Text(value []byte) (string, error) {
	if value[0] != '"' {
		return "", errors.Newf("%s is no string: put it in quotes", Abridge(value))
	}
	inner := value[1 : len(value)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), nil
	}
	if err := pairedSurrogates(inner); err != nil {
		return "", err
	}
	var s string
	err := json.Unmarshal(value, &s)
	return s, errors.Wrap(err, "not a JSON string")
}

// pairedSurrogates gives an error for an escape that is half a character.
func pairedSurrogates(inner []byte) error {
	low := false // the next escape must be a low surrogate
	for i := 0; i < len(inner); i++ {
		if inner[i] != '\\' {
			if low {
				break
			}
			continue
		}
		i++
		unit := 0
		if inner[i] == 'u' {
			unit = hex4(inner[i+1 : i+5])
			i += 4
		}
		isLow := unit >= 0xDC00 && unit <= 0xDFFF
		if low != isLow {
			low = true
			break
		}
		low = unit >= 0xD800 && unit <= 0xDBFF
	}
	if low {
		return errors.Newf("%s has half a surrogate pair, which is no character", Abridge(inner))
	}
	return nil
}

func hex4(b []byte) int {
	n := 0
	for _, c := range b {
		switch {
		case c <= '9':
			n = n<<4 | int(c-'0')
		default:
			n = n<<4 | int(c|0x20-'a'+10)
		}
	}
	return n
}

// Abridge shortens what an error quotes.
func Abridge(b []byte) string {
	const most = 60
	if len(b) <= most {
		return string(b)
	}
	return string(b[:most]) + "…"
}

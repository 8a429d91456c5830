package commands

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"catenary/es"
)

// readJSON reads a body in JSON.
func readJSON(body []byte) (value, *es.Refusal) {
	if !utf8.Valid(body) {
		return value{}, invalid(CodeMalformed, "the body is not valid UTF-8", "")
	}
	if !json.Valid(body) {
		return value{}, brokenJSON(body)
	}
	if depth(body) > MaxDepth {
		return value{}, nested()
	}
	p := jsonParser{src: body}
	return p.parse(), nil
}

// depth gives how deep the lists and objects of valid JSON lie in each other.
func depth(src []byte) int {
	now, most := 0, 0
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '"':
			i = afterText(src, i) - 1
		case '{', '[':
			now++
			most = max(most, now)
		case '}', ']':
			now--
		}
	}
	return most
}

// afterText gives the place after the string that begins at i.
func afterText(src []byte, i int) int {
	for i++; src[i] != '"'; i++ {
		if src[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// brokenJSON says what is wrong with a body, and where.
func brokenJSON(body []byte) *es.Refusal {
	dec := json.NewDecoder(bytes.NewReader(body))
	var first json.RawMessage
	if err := dec.Decode(&first); err == nil {
		return invalid(CodeTrailingData, fmt.Sprintf("the body goes on after its end at byte %d", dec.InputOffset()), "send one object")
	} else if err == io.ErrUnexpectedEOF {
		return invalid(CodeMalformed, fmt.Sprintf("the body is not JSON: it stops in the middle, after %d bytes", len(body)), "")
	} else {
		return invalid(CodeMalformed, "the body is not JSON: "+err.Error(), "")
	}
}

// jsonParser takes apart text that is known to be valid JSON of bounded depth: nothing can go wrong.
type jsonParser struct {
	src []byte
	at  int
}

func (p *jsonParser) space() {
	for p.at < len(p.src) {
		switch p.src[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

func (p *jsonParser) parse() value {
	p.space()
	start := p.at
	var v value
	switch p.src[p.at] {
	case '{':
		v = p.object()
	case '[':
		v = p.list()
	case '"':
		p.text()
		v = value{kind: kindText, quoted: true}
	case 't', 'n':
		v.kind, v.yes = kindNull, false
		if p.src[p.at] == 't' {
			v.kind, v.yes = kindBool, true
		}
		p.at += len("true")
	case 'f':
		v.kind = kindBool
		p.at += len("false")
	default:
		for p.at < len(p.src) && strings.IndexByte(",]} \t\r\n", p.src[p.at]) < 0 {
			p.at++
		}
		v = value{kind: kindNumber, text: string(p.src[start:p.at])}
	}
	v.source = p.src[start:p.at]
	return v
}

// text passes over a string and gives it, still quoted.
func (p *jsonParser) text() []byte {
	start := p.at
	p.at = afterText(p.src, p.at)
	return p.src[start:p.at]
}

func (p *jsonParser) object() value {
	v := value{kind: kindObject}
	p.at++
	for p.space(); p.src[p.at] != '}'; p.space() {
		if p.src[p.at] == ',' {
			p.at++
			p.space()
		}
		// A key with half a surrogate pair becomes one with U+FFFD, which no field is called.
		name, _ := unquote(p.text())
		p.space()
		p.at++ // the colon
		v.fields = append(v.fields, field{name: name, value: p.parse()})
	}
	p.at++
	return v
}

func (p *jsonParser) list() value {
	v := value{kind: kindList}
	p.at++
	for p.space(); p.src[p.at] != ']'; p.space() {
		if p.src[p.at] == ',' {
			p.at++
		}
		v.items = append(v.items, p.parse())
	}
	p.at++
	return v
}

// unquote gives the text of a valid JSON string, and whether every character of it is one: an escape may name half of a
// surrogate pair, which the standard library replaces without a word.
func unquote(quoted []byte) (string, bool) {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), true
	}
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return "", false
	}
	return s, wholePairs(inner)
}

func wholePairs(inner []byte) bool {
	for i := 0; i < len(inner); i++ {
		if inner[i] != '\\' {
			continue
		}
		i++
		if inner[i] != 'u' {
			continue
		}
		unit := codeUnit(inner[i+1:])
		i += 4
		switch {
		case unit >= 0xDC00 && unit <= 0xDFFF:
			return false
		case unit >= 0xD800 && unit <= 0xDBFF:
			rest := inner[i+1:]
			if len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' {
				return false
			}
			if low := codeUnit(rest[2:]); low < 0xDC00 || low > 0xDFFF {
				return false
			}
			i += 6
		}
	}
	return true
}

func codeUnit(hex []byte) uint64 {
	n, err := strconv.ParseUint(string(hex[:4]), 16, 16)
	if err != nil {
		return 0xDC00 // not a code unit: as good as half a pair
	}
	return n
}

package commands

import (
	"fmt"
	"time"
	"unicode/utf8"

	"catenary/es"
)

// kind is what a value of a body is, whichever format it came in.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindText
	kindBytes
	kindTime
	kindList
	kindObject
)

func (k kind) String() string {
	return [...]string{"null", "true or false", "a number", "text", "bytes", "a time", "a list", "an object"}[k]
}

// value is one value of a body. JSON and msgpack are both read into values, so that both are judged by the same rules.
type value struct {
	kind kind
	// yes is the value of a bool.
	yes bool
	// text is a number as written, or text.
	text string
	// source is the value as it stands in a JSON body, or the content of bytes.
	source []byte
	// quoted says that the text is still to be taken from the source, with its escapes.
	quoted bool
	time   time.Time
	items  []value
	fields []field
}

type field struct {
	name  string
	value value
}

// str gives the text of a value of kind text.
func (v *value) str(path string) (string, *es.Refusal) {
	text := v.text
	if v.quoted {
		var ok bool
		if text, ok = unquote(v.source); !ok {
			return "", invalid(CodeBadText, fmt.Sprintf("%s has half of a surrogate pair, which is no character", path), "write the character itself")
		}
	}
	if !utf8.ValidString(text) {
		return "", invalid(CodeBadText, path+" is not valid UTF-8", "")
	}
	return text, nil
}

func nested() *es.Refusal {
	return invalid(CodeTooDeep, fmt.Sprintf("the body nests deeper than %d", MaxDepth), "")
}

package store

import (
	"strings"
	"unicode"
)

// severalStatements says whether a text has more than one statement. The driver runs all of them and gives the rows of the last, which would
// pass over the others in silence. A semicolon inside of a string, a quoted name or a comment parts nothing.
func severalStatements(text string) bool {
	ended := false
	for text != "" {
		length := tokenLength(text)
		token := text[:length]
		text = text[length:]
		switch {
		case token == ";":
			ended = true
		case strings.HasPrefix(token, "--"), strings.HasPrefix(token, "/*"), strings.TrimFunc(token, unicode.IsSpace) == "":
		case ended:
			return true
		}
	}
	return false
}

// tokenLength gives the length of what a text begins with: a comment, something in quotes with the quotes, or one byte.
func tokenLength(text string) int {
	end, after := "", 1
	switch {
	case strings.HasPrefix(text, "--"):
		end, after = "\n", 2
	case strings.HasPrefix(text, "/*"):
		end, after = "*/", 2
	case text[0] == '[':
		end = "]"
	case text[0] == '\'', text[0] == '"', text[0] == '`':
		end = text[:1] // one that is doubled ends here, and begins anew at once
	default:
		return 1
	}
	_, rest, found := strings.Cut(text[after:], end)
	if !found {
		return len(text)
	}
	return len(text) - len(rest)
}

package commands

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"catenary/es"
	"catenary/events"
)

// check looks at one field after another and keeps the first refusal, so that a Validate method reads as the list of
// what its command demands.
type check struct{ first *es.Refusal }

func (c *check) fail(code, message, hint string) {
	if c.first == nil {
		c.first = invalid(code, message, hint)
	}
}

func (c *check) failf(code, hint, format string, args ...any) {
	if c.first == nil {
		c.fail(code, fmt.Sprintf(format, args...), hint)
	}
}

// done gives the first refusal, after the instance's whole subject was looked at as well.
func (c *check) done(ref es.Ref) error {
	if c.first == nil {
		if n := len(ref.Subject()); n > es.MaxSubjectBytes {
			c.failf(CodeTooLarge, "use shorter names: every byte but letters, digits, - and _ takes three",
				"%s has a subject of %d bytes: the limit is %d", ref.Aggregate, n, es.MaxSubjectBytes)
		}
	}
	if c.first == nil {
		return nil
	}
	return c.first
}

// name demands a name that can be part of a key.
func (c *check) name(field, v string) {
	if c.first != nil {
		return
	}
	if err := es.CheckName(field, v); err != nil {
		code := CodeBadName
		switch {
		case v == "":
			code = CodeMissingField
		case len(v) > es.MaxNameBytes:
			code = CodeTooLarge
		}
		c.fail(code, err.Error(), "")
	}
}

// maybeName is a name that may be left out.
func (c *check) maybeName(field, v string) {
	if v != "" {
		c.name(field, v)
	}
}

func (c *check) names(field string, vs []string) {
	c.count(field, len(vs))
	for i, v := range vs {
		c.name(item(field, i), v)
	}
	c.distinct(field, vs)
}

func (c *check) distinct(field string, vs []string) {
	if c.first != nil || len(vs) < 2 {
		return
	}
	seen := make(map[string]bool, len(vs))
	for _, v := range vs {
		if seen[v] {
			c.failf(CodeBadValue, "name it once", "%s names %q twice", field, v)
			return
		}
		seen[v] = true
	}
}

func (c *check) count(field string, n int) {
	if n > MaxListItems {
		c.failf(CodeTooLarge, "", "%s has %d items: the limit is %d", field, n, MaxListItems)
	}
}

// text is free text, which may be empty.
func (c *check) text(field, v string) { c.bounded(field, v, MaxTextBytes, true) }

// need demands free text that says something.
func (c *check) need(field, v string) {
	if strings.TrimSpace(v) == "" {
		c.failf(CodeMissingField, "say it in a few words", "%s is empty", field)
		return
	}
	c.text(field, v)
}

// line is text of one line, which may be empty.
func (c *check) line(field, v string) { c.bounded(field, v, MaxLineBytes, false) }

func (c *check) lines(field string, vs []string) {
	c.count(field, len(vs))
	for i, v := range vs {
		if v == "" {
			c.failf(CodeMissingField, "leave it out", "%s is empty", item(field, i))
		}
		c.line(item(field, i), v)
	}
}

func (c *check) bounded(field, v string, limit int, breaks bool) {
	switch {
	case c.first != nil || v == "":
		return
	case len(v) > limit:
		c.failf(CodeTooLarge, "shorten it", "%s has %d bytes: the limit is %d", field, len(v), limit)
		return
	case !utf8.ValidString(v):
		c.failf(CodeBadText, "", "%s is not valid UTF-8", field)
		return
	}
	for i, r := range v {
		if unicode.IsControl(r) && !(breaks && (r == '\n' || r == '\r' || r == '\t')) {
			c.failf(CodeBadText, "leave it out", "%s has the control character U+%04X at byte %d", field, r, i)
			return
		}
	}
}

func (c *check) labels(field string, labels map[string]string) {
	if len(labels) > MaxLabels {
		c.failf(CodeTooLarge, "", "%s has %d labels: the limit is %d", field, len(labels), MaxLabels)
	}
	for _, k := range sortedNames(labels) {
		c.name("a label's name in "+field, k)
		c.bounded(field+"."+k, labels[k], MaxLabelBytes, false)
	}
}

func sortedNames(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// reference checks what is referred to; with need, something must be.
func (c *check) reference(r events.Reference, need bool) {
	if r.Artifact != "" && r.Package != nil {
		c.fail(CodeBadValue, "artifact and package are both given", "give the one that is to be run")
		return
	}
	if need && r.IsZero() {
		c.fail(CodeMissingField, "neither artifact nor package is given", "give the artifact's digest or the package's name and version")
		return
	}
	c.maybeName("artifact", r.Artifact)
	if r.Package != nil {
		c.name("package.name", r.Package.Name)
		c.name("package.version", r.Package.Version)
	}
}

// raw is JSON that is kept byte for byte.
func (c *check) raw(field string, v events.Raw) {
	switch {
	case c.first != nil || v == nil:
	case len(v) > MaxRawBytes:
		c.failf(CodeTooLarge, "keep it elsewhere and refer to it", "%s has %d bytes: the limit is %d", field, len(v), MaxRawBytes)
	case !utf8.Valid(v):
		c.failf(CodeBadText, "", "%s is not valid UTF-8", field)
	case !json.Valid(v):
		c.failf(CodeBadValue, "", "%s is not JSON: %s", field, syntax(v))
	case string(v) == "null":
		c.failf(CodeNullField, "leave it out", "%s is null", field)
	case depth(v) > MaxDepth:
		c.failf(CodeTooDeep, "", "%s nests deeper than %d", field, MaxDepth)
	}
}

// syntax says what is wrong with text that is not JSON.
func syntax(v []byte) string {
	var any json.RawMessage
	if err := json.Unmarshal(v, &any); err != nil {
		return err.Error()
	}
	return "unreadable"
}

// duration is a positive Go duration such as 30s, which may be left out.
func (c *check) duration(field, v string, longest time.Duration) {
	if c.first != nil || v == "" {
		return
	}
	d, err := time.ParseDuration(v)
	switch {
	case err != nil:
		c.failf(CodeBadValue, "write it like 30s, 5m or 1h30m", "%s %q is not a duration", field, v)
	case d <= 0:
		c.failf(CodeBadValue, "", "%s %q is not longer than nothing", field, v)
	case d > longest:
		c.failf(CodeTooLarge, "", "%s %q is too long: the limit is %s", field, v, longest)
	}
}

func (c *check) oneOf(field, v string, allowed ...string) {
	if slices.Contains(allowed, v) {
		return
	}
	if v == "" {
		c.failf(CodeMissingField, "", "%s is empty: it is one of %s", field, strings.Join(allowed, ", "))
		return
	}
	c.failf(CodeBadValue, "", "%s %.64q is unknown: it is one of %s", field, v, strings.Join(allowed, ", "))
}

func (c *check) between(field string, v, low, high int) {
	if v < low || v > high {
		c.failf(CodeBadValue, "", "%s is %d: it lies between %d and %d", field, v, low, high)
	}
}

func item(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }

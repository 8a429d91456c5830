package strategy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/errors"
	"gopkg.in/yaml.v3"

	"catenary/events"
)

// MaxFileBytes bounds a strategy file: far above what a person writes, and what a record holds.
const MaxFileBytes = 64 << 10

// Error says where a strategy file is wrong, and how.
type Error struct {
	File string
	// Line counts from 1; it is 0 where no line is to blame.
	Line int
	// Field is where, as in tiers[1].bake; empty for the file as a whole.
	Field, Message string
}

// Error gives file, line, field and what is wrong.
func (e *Error) Error() string {
	at := e.File
	if e.Line > 0 {
		at += ":" + strconv.Itoa(e.Line)
	}
	if e.Field != "" {
		at += ": " + e.Field
	}
	return at + ": " + e.Message
}

// Read reads a strategy file. The file's name is for its errors, which are of type *[Error].
func Read(file string, text []byte) (events.Strategy, error) {
	fail := func(line int, field, format string, args ...any) (events.Strategy, error) {
		return events.Strategy{}, &Error{File: file, Line: line, Field: field, Message: fmt.Sprintf(format, args...)}
	}
	if len(text) > MaxFileBytes {
		return fail(0, "", "it has %d bytes: the limit is %d", len(text), MaxFileBytes)
	}
	var doc, more yaml.Node
	documents := yaml.NewDecoder(bytes.NewReader(text))
	switch err := documents.Decode(&doc); {
	case errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0:
		return fail(0, "", "it is empty: see catenary strategy schema")
	case err != nil:
		return fail(0, "", "it is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	switch err := documents.Decode(&more); {
	case err == nil:
		return fail(more.Line, "", "another document begins: a file holds one strategy")
	case !errors.Is(err, io.EOF):
		return fail(0, "", "it is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	r := reader{lines: map[string]int{}}
	value, err := r.value(doc.Content[0], nil)
	if err != nil {
		var wrong *Error
		if errors.As(err, &wrong) {
			wrong.File = file
		}
		return events.Strategy{}, err
	}
	schema, err := compiled()
	if err != nil {
		return events.Strategy{}, err
	}
	if err := schema.Validate(value); err != nil {
		at, why, ok := misfit(err)
		if !ok {
			return events.Strategy{}, errors.Wrap(err, file)
		}
		return fail(r.line(at), field(at), "%s", why)
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return events.Strategy{}, errors.Wrap(err, file)
	}
	s, err := events.ParseStrategy(raw)
	var wrong *events.StrategyError
	switch {
	case errors.As(err, &wrong):
		return fail(r.line(pathOf(wrong.Field)), wrong.Field, "%s", wrong.Message)
	case err != nil:
		return fail(0, "", "%s", err)
	}
	if at, id, twice := heldTwice(s); twice {
		return fail(r.line(pathOf(at)), at, "semaphore %q is named twice: a step holds it once", id)
	}
	return s, nil
}

// heldTwice finds a semaphore that a tier names twice. The record may have such strategies; the smaller count holds there.
func heldTwice(s events.Strategy) (at, id string, twice bool) {
	for i, t := range s.Tiers {
		seen := map[string]bool{}
		for j, text := range t.Semaphores {
			id, _, err := events.ParseSemaphore(text)
			if err == nil && seen[id] {
				return fmt.Sprintf("tiers[%d].semaphores[%d]", i, j), id, true
			}
			seen[id] = true
		}
	}
	return "", "", false
}

// reader makes JSON values of YAML nodes, and keeps in which line each stands.
type reader struct{ lines map[string]int }

// line gives the line of a place, or of the nearest one around it.
func (r reader) line(at []string) int {
	for n := len(at); n >= 0; n-- {
		if line, ok := r.lines[strings.Join(at[:n], "\x00")]; ok {
			return line
		}
	}
	return 0
}

func (r reader) value(n *yaml.Node, at []string) (any, error) {
	key := strings.Join(at, "\x00")
	if _, ok := r.lines[key]; !ok {
		r.lines[key] = n.Line
	}
	switch n.Kind {
	case yaml.MappingNode:
		return r.object(n, at)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			var err error
			if list[i], err = r.value(item, append(slices.Clip(at), strconv.Itoa(i))); err != nil {
				return nil, err
			}
		}
		return list, nil
	case yaml.ScalarNode:
		return scalar(n, at)
	}
	return nil, &Error{Line: n.Line, Field: field(at), Message: "it refers to another place: write it out"}
}

func (r reader) object(n *yaml.Node, at []string) (any, error) {
	object := make(map[string]any, len(n.Content)/2)
	for i := 0; i < len(n.Content); i += 2 {
		name := n.Content[i].Value
		here := append(slices.Clip(at), name)
		if _, twice := object[name]; twice {
			return nil, &Error{Line: n.Content[i].Line, Field: field(here), Message: "it is given twice"}
		}
		r.lines[strings.Join(here, "\x00")] = n.Content[i].Line
		var err error
		if object[name], err = r.value(n.Content[i+1], here); err != nil {
			return nil, err
		}
	}
	return object, nil
}

// scalar gives text as it stands in the file, but for the fields that are numbers and truths.
func scalar(n *yaml.Node, at []string) (any, error) {
	if n.Tag == "!!null" {
		return nil, &Error{Line: n.Line, Field: field(at), Message: "it is empty: leave it out"}
	}
	quoted := n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0
	if quoted || len(at) == 0 || slices.Contains(at[:len(at)-1], "labels") {
		return n.Value, nil
	}
	switch at[len(at)-1] {
	case "concurrency", "failure-budget", "retry", "per-minute", "burst":
		if _, err := strconv.Atoi(n.Value); err == nil {
			return json.Number(n.Value), nil
		}
	case "approval", "notify":
		if yes, err := strconv.ParseBool(n.Value); err == nil {
			return yes, nil
		}
	}
	return n.Value, nil
}

// field shows a place as people write it: tiers[1].bake.
func field(at []string) string {
	var b strings.Builder
	for _, part := range at {
		if _, err := strconv.Atoi(part); err == nil {
			b.WriteString("[" + part + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(part)
	}
	return b.String()
}

// pathOf is the place that a field names.
func pathOf(field string) []string {
	return strings.FieldsFunc(field, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

package es

import (
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
)

// Names of the headers of a stored event. The first group is the CloudEvents NATS binding in binary mode.
const (
	HeaderID          = "ce-id"
	HeaderSource      = "ce-source"
	HeaderSpec        = "ce-specversion"
	HeaderType        = "ce-type"
	HeaderTime        = "ce-time"
	HeaderContentType = "content-type"

	HeaderVersion     = "Cat-Version"
	HeaderEffective   = "Cat-Effective"
	HeaderBackfill    = "Cat-Backfill"
	HeaderCommand     = "Cat-Command"
	HeaderCommandRef  = "Cat-Command-Ref"
	HeaderDigest      = "Cat-Digest"
	HeaderActor       = "Cat-Actor"
	HeaderOnBehalfOf  = "Cat-On-Behalf-Of"
	HeaderCausation   = "Cat-Causation"
	HeaderCorrelation = "Cat-Correlation"
	HeaderHash        = "Cat-Hash"
	HeaderTrace       = "traceparent"
)

// sortedHeaders lists the names of the headers that an event's hash covers, sorted by their bytes.
var sortedHeaders = [...]string{
	HeaderActor, HeaderBackfill, HeaderCausation, HeaderCommand, HeaderCommandRef, HeaderCorrelation, HeaderDigest, HeaderEffective,
	HeaderOnBehalfOf, HeaderVersion,
	HeaderID, HeaderSource, HeaderSpec, HeaderTime, HeaderType, HeaderContentType, HeaderTrace,
}

// EventSource is the CloudEvents source of every event.
const EventSource = "catenary"

const cloudEventsVersion = "1.0"

// ErrMalformed marks a stored message that is not an event: a header is missing or can't be read.
var ErrMalformed = errors.New("not an event")

// Message gives the event in its stored form, without hash. Headers that say nothing are left out, since every replay
// pays for them.
func (e *Event) Message(contentType string) Message {
	h := make(map[string][]string, 14)
	values := make([]string, 0, len(sortedHeaders)) // of all headers: one allocation instead of one each
	set := func(name, value string) {
		if value != "" {
			values = append(values, percentEncode(value))
			h[name] = values[len(values)-1 : len(values) : len(values)]
		}
	}
	set(HeaderID, e.ID)
	set(HeaderSource, EventSource)
	set(HeaderSpec, cloudEventsVersion)
	set(HeaderType, e.Type)
	set(HeaderTime, formatTime(e.Recorded))
	set(HeaderContentType, contentType)
	set(HeaderVersion, strconv.FormatUint(e.Version, 10))
	if !e.Effective.IsZero() && !e.Effective.Equal(e.Recorded) {
		set(HeaderEffective, formatTime(e.Effective))
	}
	if e.Backfill {
		set(HeaderBackfill, "1")
	}
	set(HeaderCommand, e.Command.ID)
	if e.Command.Ref != e.Ref && !e.Command.Ref.IsZero() {
		set(HeaderCommandRef, e.Command.Ref.Aggregate+"."+e.Command.Ref.Key)
	}
	set(HeaderDigest, e.Command.Digest)
	set(HeaderActor, e.Command.Actor)
	set(HeaderOnBehalfOf, e.Command.OnBehalfOf)
	set(HeaderCausation, e.Command.Causation)
	set(HeaderCorrelation, e.Command.Correlation)
	set(HeaderTrace, e.Command.Trace)
	return Message{Sequence: e.Sequence, Subject: e.Ref.Subject(), Header: h, Body: e.Body}
}

// ReadEvent reads a stored message's headers. The body is left undecoded (see [Registry.Decode]). It gives errors marked
// [ErrMalformed].
func ReadEvent(m Message) (Event, error) {
	ref, err := ParseSubject(m.Subject)
	if err != nil {
		return Event{}, errors.Mark(errors.Wrapf(err, "message %d", m.Sequence), ErrMalformed)
	}
	e := Event{Sequence: m.Sequence, Ref: ref, Body: m.Body}
	r := headerReader{m: m}
	e.ID = r.text(HeaderID, true)
	e.Type = r.text(HeaderType, true)
	e.Recorded = r.time(HeaderTime, true)
	e.Effective = r.time(HeaderEffective, false)
	if e.Effective.IsZero() {
		e.Effective = e.Recorded
	}
	e.Version = r.number(HeaderVersion)
	e.Backfill = r.text(HeaderBackfill, false) != ""
	e.Command = Cause{
		ID: r.text(HeaderCommand, true), Ref: ref, Digest: r.text(HeaderDigest, false),
		Actor: r.text(HeaderActor, false), OnBehalfOf: r.text(HeaderOnBehalfOf, false),
		Causation: r.text(HeaderCausation, false), Correlation: r.text(HeaderCorrelation, false),
		Trace: r.text(HeaderTrace, false),
	}
	if v := r.text(HeaderCommandRef, false); v != "" {
		aggregate, key, ok := strings.Cut(v, ".")
		if !ok {
			r.fail(HeaderCommandRef, v)
		}
		e.Command.Ref = Ref{Aggregate: aggregate, Key: key}
	}
	e.Hash = r.hash()
	if r.err != nil {
		return Event{}, r.err
	}
	return e, nil
}

// headerReader reads headers and keeps the first failure.
type headerReader struct {
	m   Message
	err error
}

func (r *headerReader) fail(name, value string) {
	if r.err == nil {
		r.err = errors.Mark(errors.Newf("message %d on %s: header %s is missing or unreadable (%q)", r.m.Sequence, r.m.Subject, name, value), ErrMalformed)
	}
}

func (r *headerReader) text(name string, required bool) string {
	raw := r.m.get(name)
	v, ok := percentDecode(raw)
	if !ok || required && v == "" {
		r.fail(name, raw)
	}
	return v
}

func (r *headerReader) time(name string, required bool) time.Time {
	v := r.m.get(name)
	if v == "" && !required {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339Nano, v)
	if err != nil {
		r.fail(name, v)
	}
	return t.UTC()
}

func (r *headerReader) number(name string) uint64 {
	v := r.m.get(name)
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		r.fail(name, v)
	}
	return n
}

func (r *headerReader) hash() Hash {
	v := r.m.get(HeaderHash)
	h, err := ParseHash(v)
	if err != nil {
		r.fail(HeaderHash, v)
	}
	return h
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// percentEncode makes a header value printable ASCII, as the CloudEvents bindings demand: space, double quote, percent and
// everything outside U+0021 to U+007E become %XX of their UTF-8 bytes.
func percentEncode(s string) string {
	n := 0
	for i := range len(s) {
		if mustEncode(s[i]) {
			n++
		}
	}
	if n == 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 2*n)
	for i := range len(s) {
		if c := s[i]; mustEncode(c) {
			b.WriteByte('%')
			b.WriteByte(upperHex[c>>4])
			b.WriteByte(upperHex[c&15])
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func mustEncode(c byte) bool { return c <= ' ' || c == '"' || c == '%' || c >= 0x7F }

func percentDecode(s string) (string, bool) {
	if !strings.Contains(s, "%") {
		return s, true
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			out = append(out, s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", false
		}
		n, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			return "", false
		}
		out = append(out, byte(n))
		i += 2
	}
	return string(out), true
}

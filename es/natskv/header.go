package natskv

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/es"
	"catenary/es/project"
)

// Names of the headers of a value. Those that events have too mean the same.
const (
	// HeaderPosition is where the value stands in the bucket's order: 17.1/2 is the first of two values of event 17.
	HeaderPosition = "Cat-Position"
	// HeaderSource is the event the value comes from: its sequence and its id.
	HeaderSource = "Cat-Source"
	// HeaderFold is the version of the view that made the value.
	HeaderFold = "Cat-Fold"
	// HeaderType is the stored name of the source event.
	HeaderType = "Cat-Type"
	// HeaderRecorded is when the source event was recorded.
	HeaderRecorded = "Cat-Recorded"
	// HeaderEffective is when it became true, if that was another time.
	HeaderEffective = es.HeaderEffective
	// HeaderActor and HeaderOnBehalfOf are opaque ids of who caused it.
	HeaderActor      = es.HeaderActor
	HeaderOnBehalfOf = es.HeaderOnBehalfOf
	// HeaderBackfill marks a value that adds to history.
	HeaderBackfill = es.HeaderBackfill
	// HeaderMended marks a value that was written again to mend the bucket: when, and the revision it replaces.
	HeaderMended = "Cat-Mended"
)

// headerOf gives the headers of a value. Those that say nothing are left out.
func headerOf(m project.Meta) nats.Header {
	h := make(nats.Header, 10)
	values := make([]string, 0, 9) // one piece of memory for all of them
	set := func(name, value string) {
		if value != "" {
			values = append(values, value)
			h[name] = values[len(values)-1 : len(values) : len(values)]
		}
	}
	set(HeaderPosition, m.Position.String())
	set(HeaderSource, strconv.FormatUint(m.Source.Sequence, 10)+" "+es.EncodeHeaderValue(m.Source.ID))
	set(HeaderFold, strconv.Itoa(m.Fold))
	set(HeaderType, es.EncodeHeaderValue(m.Type))
	set(HeaderRecorded, m.Recorded.UTC().Format(time.RFC3339Nano))
	if !m.Effective.Equal(m.Recorded) {
		set(HeaderEffective, m.Effective.UTC().Format(time.RFC3339Nano))
	}
	set(HeaderActor, es.EncodeHeaderValue(m.Actor))
	set(HeaderOnBehalfOf, es.EncodeHeaderValue(m.OnBehalfOf))
	if m.Backfill {
		set(HeaderBackfill, "1")
	}
	if !m.Mended.IsZero() {
		set(HeaderMended, m.Mended.UTC().Format(time.RFC3339Nano)+" "+strconv.FormatUint(m.Replaces, 10))
	}
	return h
}

// readHeader reads the headers of a value. It gives errors marked [project.ErrForeign].
func readHeader(h nats.Header) (project.Meta, error) {
	r := headerReader{h: h}
	m := project.Meta{
		Position:   r.position(),
		Source:     r.source(),
		Fold:       int(r.number(HeaderFold, r.get(HeaderFold))),
		Type:       r.text(HeaderType),
		Recorded:   r.time(HeaderRecorded, r.get(HeaderRecorded)),
		Actor:      r.text(HeaderActor),
		OnBehalfOf: r.text(HeaderOnBehalfOf),
		Backfill:   r.get(HeaderBackfill) != "",
	}
	m.Effective = m.Recorded
	if r.get(HeaderEffective) != "" {
		m.Effective = r.time(HeaderEffective, r.get(HeaderEffective))
	}
	if mended := r.get(HeaderMended); mended != "" {
		at, replaced, _ := strings.Cut(mended, " ")
		m.Mended, m.Replaces = r.time(HeaderMended, at), r.number(HeaderMended, replaced)
	}
	return m, r.err
}

// headerReader reads headers and keeps the first failure.
type headerReader struct {
	h   nats.Header
	err error
}

func (r *headerReader) get(name string) string {
	if values := r.h[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

func (r *headerReader) fail(name string) {
	if r.err == nil {
		r.err = errors.Mark(errors.Newf("header %s is missing or unreadable (%q)", name, r.get(name)), project.ErrForeign)
	}
}

func (r *headerReader) number(name, text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		r.fail(name)
	}
	return n
}

func (r *headerReader) text(name string) string {
	v, err := es.DecodeHeaderValue(r.get(name))
	if err != nil {
		r.fail(name)
	}
	return v
}

func (r *headerReader) time(name, text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		r.fail(name)
	}
	return t.UTC()
}

func (r *headerReader) position() project.Position {
	v := r.get(HeaderPosition)
	sequence, rest, ok := strings.Cut(v, ".")
	part, parts, ok2 := strings.Cut(rest, "/")
	p := project.Position{
		Sequence: r.number(HeaderPosition, sequence),
		Part:     int(r.number(HeaderPosition, part)),
		Parts:    int(r.number(HeaderPosition, parts)),
	}
	if !ok || !ok2 || p.Sequence == 0 || p.Part < 1 || p.Part > p.Parts {
		r.fail(HeaderPosition)
	}
	return p
}

func (r *headerReader) source() project.Source {
	sequence, id, ok := strings.Cut(r.get(HeaderSource), " ")
	s := project.Source{Sequence: r.number(HeaderSource, sequence)}
	var err error
	if s.ID, err = es.DecodeHeaderValue(id); !ok || err != nil || s.ID == "" || s.Sequence == 0 {
		r.fail(HeaderSource)
	}
	return s
}

// foreign says which message it is that no projector wrote.
func (s *source) foreign(err error, e project.Entry) error {
	return errors.Wrap(err, fmt.Sprintf("value %d of the bucket %s (key %s)", e.Revision, s.bucket, e.Key))
}

package natskv

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

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

// maxHeaders is how many headers a value has at most, its guard among them.
const maxHeaders = 11

// headerWriter writes the headers of one value. Their texts share one piece of memory, and their lists another.
type headerWriter struct {
	text  []byte
	names [maxHeaders]string
	ends  [maxHeaders]int
	n     int
}

// end ends the text of a header. One that says nothing is left out.
func (w *headerWriter) end(name string) {
	begun := 0
	if w.n > 0 {
		begun = w.ends[w.n-1]
	}
	if len(w.text) == begun {
		return
	}
	w.names[w.n], w.ends[w.n] = name, len(w.text)
	w.n++
}

func (w *headerWriter) say(name, value string) {
	w.text = append(w.text, value...)
	w.end(name)
}

func (w *headerWriter) count(name string, value uint64) {
	w.text = strconv.AppendUint(w.text, value, 10)
	w.end(name)
}

func (w *headerWriter) time(name string, value time.Time) {
	w.text = value.UTC().AppendFormat(w.text, time.RFC3339Nano)
	w.end(name)
}

// header gives the headers, and how many bytes they have on the wire.
func (w *headerWriter) header() (nats.Header, int) {
	h := make(nats.Header, w.n)
	text, values := string(w.text), make([]string, w.n)
	size := len("NATS/1.0\r\n\r\n") + len(text)
	begun := 0
	for i := range values {
		values[i] = text[begun:w.ends[i]]
		begun = w.ends[i]
		h[w.names[i]] = values[i : i+1 : i+1]
		size += len(w.names[i]) + len(": \r\n")
	}
	return h, size
}

// headerOf gives the headers of a value that is to stand directly after a revision, and their size.
func headerOf(m project.Meta, after uint64) (nats.Header, int) {
	w := headerWriter{text: make([]byte, 0, 256)} // most fit
	w.count(jetstream.ExpectedLastSeqHeader, after)
	w.text = m.Position.Append(w.text)
	w.end(HeaderPosition)
	w.text = strconv.AppendUint(w.text, m.Source.Sequence, 10)
	w.text = append(w.text, ' ')
	w.say(HeaderSource, es.EncodeHeaderValue(m.Source.ID))
	w.text = strconv.AppendInt(w.text, int64(m.Fold), 10)
	w.end(HeaderFold)
	w.say(HeaderType, es.EncodeHeaderValue(m.Type))
	w.time(HeaderRecorded, m.Recorded)
	if !m.Effective.Equal(m.Recorded) {
		w.time(HeaderEffective, m.Effective)
	}
	w.say(HeaderActor, es.EncodeHeaderValue(m.Actor))
	w.say(HeaderOnBehalfOf, es.EncodeHeaderValue(m.OnBehalfOf))
	if m.Backfill {
		w.say(HeaderBackfill, "1")
	}
	if !m.Mended.IsZero() {
		w.text = m.Mended.UTC().AppendFormat(w.text, time.RFC3339Nano)
		w.text = append(w.text, ' ')
		w.count(HeaderMended, m.Replaces)
	}
	return w.header()
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

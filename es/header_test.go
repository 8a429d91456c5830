package es_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"catenary/es"
)

// odd draws texts that a header line could not carry as they are.
func odd() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.String(),
		rapid.StringOf(rapid.SampledFrom([]rune(" \t\r\n\"%:;,=äé節\u00A0\u200B\x00\x7F🚀abc"))),
		rapid.SampledFrom([]string{"", " ", "%", "%41", "%zz", "a: b\r\nNats-Expected-Last-Sequence: 1", " lead", "trail ", "\xFF\xFE"}),
	)
}

func filled(g *rapid.Generator[string]) *rapid.Generator[string] {
	return g.Filter(func(s string) bool { return s != "" })
}

func instant() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		zone := time.FixedZone("", rapid.IntRange(-12, 14).Draw(t, "zone")*3600)
		return time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "seconds"), rapid.Int64Range(0, 1e9-1).Draw(t, "nanoseconds")).In(zone)
	})
}

func anyEvent() *rapid.Generator[es.Event] {
	return rapid.Custom(func(t *rapid.T) es.Event {
		ref := es.Ref{Aggregate: "node", Key: es.Key(anyName().Draw(t, "name"))}
		e := es.Event{
			Sequence: rapid.Uint64().Draw(t, "sequence"),
			ID:       filled(odd()).Draw(t, "id"),
			Type:     filled(odd()).Draw(t, "type"),
			Ref:      ref,
			Version:  rapid.Uint64().Draw(t, "version"),
			Recorded: instant().Draw(t, "recorded"),
			Backfill: rapid.Bool().Draw(t, "backfill"),
			Command: es.Cause{
				ID: filled(odd()).Draw(t, "command"), Ref: ref, Digest: odd().Draw(t, "digest"),
				Actor: odd().Draw(t, "actor"), OnBehalfOf: odd().Draw(t, "on behalf of"),
				Causation: odd().Draw(t, "causation"), Correlation: odd().Draw(t, "correlation"), Trace: odd().Draw(t, "trace"),
			},
			Body: rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "body"),
		}
		e.Effective = e.Recorded
		if rapid.Bool().Draw(t, "effective earlier") {
			e.Effective = instant().Draw(t, "effective")
		}
		if rapid.Bool().Draw(t, "command to another instance") {
			e.Command.Ref = es.Ref{Aggregate: "module", Key: es.Key(anyName().Draw(t, "other"))}
		}
		return e
	})
}

func TestHeadersComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := anyEvent().Draw(t, "event")
		m := e.Message(es.ContentTypeMsgpack)
		var before es.Head
		after := before.Seal(&m)
		m.Sequence, e.Hash = e.Sequence, after.Hash
		for name, values := range m.Header {
			for _, v := range values {
				if strings.TrimSpace(v) != v || strings.ContainsFunc(v, func(r rune) bool { return r < '!' || r > '~' }) {
					t.Fatalf("%s: %q is no header value", name, v)
				}
			}
		}
		got, err := es.ReadEvent(m)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, got); diff != "" {
			t.Fatalf("event (-written +read):\n%s", diff)
		}
		if got.Recorded.Location() != time.UTC || got.Effective.Location() != time.UTC {
			t.Fatalf("times are in %v and %v, not in UTC", got.Recorded.Location(), got.Effective.Location())
		}
	})
}

// An effective time that was never set is the recorded one: it is not written as the year 1.
func TestUnsetEffectiveTimeIsTheRecordedOne(t *testing.T) {
	t.Parallel()
	e := es.Event{ID: "e", Type: "t", Ref: es.Ref{Aggregate: "node", Key: "n1"}, Version: 1, Recorded: time.Unix(1, 0), Command: es.Cause{ID: "c"}}
	m := e.Message(es.ContentTypeMsgpack)
	if v, ok := m.Header[es.HeaderEffective]; ok {
		t.Errorf("the effective time is written as %q", v)
	}
	es.Head{}.Seal(&m)
	if got, err := es.ReadEvent(m); err != nil || !got.Effective.Equal(e.Recorded) {
		t.Errorf("effective %v (%v), want %v", got.Effective, err, e.Recorded)
	}
}

func good() es.Message {
	e := es.Event{
		ID: "e1", Type: "node.registered.v1", Ref: es.Ref{Aggregate: "node", Key: "n1"}, Version: 3,
		Recorded: time.Unix(1_700_000_000, 5), Effective: time.Unix(1_600_000_000, 0), Backfill: true,
		Command: es.Cause{ID: "c1", Ref: es.Ref{Aggregate: "module", Key: "web"}, Digest: "d", Actor: "a", OnBehalfOf: "b", Causation: "x", Correlation: "y", Trace: "z"},
		Body:    []byte{0x80},
	}
	m := e.Message(es.ContentTypeMsgpack)
	es.Head{}.Seal(&m)
	return m
}

// The stored header names and forms are a storage format.
func TestHeadersArePinned(t *testing.T) {
	t.Parallel()
	m := good()
	delete(m.Header, es.HeaderHash)
	want := map[string][]string{
		"ce-id": {"e1"}, "ce-source": {"catenary"}, "ce-specversion": {"1.0"}, "ce-type": {"node.registered.v1"},
		"ce-time": {"2023-11-14T22:13:20.000000005Z"}, "content-type": {"application/msgpack"},
		"Cat-Version": {"3"}, "Cat-Effective": {"2020-09-13T12:26:40Z"}, "Cat-Backfill": {"1"},
		"Cat-Command": {"c1"}, "Cat-Command-Ref": {"module.web"}, "Cat-Digest": {"d"}, "Cat-Actor": {"a"},
		"Cat-On-Behalf-Of": {"b"}, "Cat-Causation": {"x"}, "Cat-Correlation": {"y"}, "traceparent": {"z"},
	}
	if diff := cmp.Diff(want, m.Header); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

func TestReadEventRefusesWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	set := func(name, value string) func(*es.Message) {
		return func(m *es.Message) { m.Header[name] = []string{value} }
	}
	cases := map[string]struct {
		change func(*es.Message)
		says   string
	}{
		"another subject":      {func(m *es.Message) { m.Subject = "$KV.x.y" }, "$KV.x.y"},
		"no headers":           {func(m *es.Message) { m.Header = nil }, es.HeaderID},
		"no id":                {set(es.HeaderID, ""), es.HeaderID},
		"no type":              {func(m *es.Message) { delete(m.Header, es.HeaderType) }, es.HeaderType},
		"no command":           {func(m *es.Message) { delete(m.Header, es.HeaderCommand) }, es.HeaderCommand},
		"no hash":              {func(m *es.Message) { delete(m.Header, es.HeaderHash) }, es.HeaderHash},
		"a short hash":         {set(es.HeaderHash, "00ff"), es.HeaderHash},
		"no time":              {set(es.HeaderTime, ""), es.HeaderTime},
		"an unreadable time":   {set(es.HeaderTime, "yesterday"), es.HeaderTime},
		"an unreadable since":  {set(es.HeaderEffective, "2020-13-01T00:00:00Z"), es.HeaderEffective},
		"a version below zero": {set(es.HeaderVersion, "-1"), es.HeaderVersion},
		"no version":           {set(es.HeaderVersion, ""), es.HeaderVersion},
		"a cut escape":         {set(es.HeaderActor, "a%4"), es.HeaderActor},
		"a bad escape":         {set(es.HeaderActor, "a%zz"), es.HeaderActor},
		"a reference of one":   {set(es.HeaderCommandRef, "module"), es.HeaderCommandRef},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := good()
			c.change(&m)
			if e, err := es.ReadEvent(m); !errors.Is(err, es.ErrMalformed) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("read as %+v, error %v: want one that names %s", e, err, c.says)
			}
		})
	}
}

// FuzzReadEvent checks that nothing a stream may hold stops the reader, and that what is read can be written again.
func FuzzReadEvent(f *testing.F) {
	m := good()
	f.Add(m.Subject, m.Header[es.HeaderID][0], m.Header[es.HeaderTime][0], m.Header[es.HeaderVersion][0], m.Header[es.HeaderCommandRef][0], "a%20b")
	f.Add("evt..", "%", "0000-01-01T00:00:00Z", "18446744073709551615", ".", "%C3%A4")
	f.Add("evt.a.b.c", "x", "2026-02-29T24:00:00+99:00", "0", "a.b", "%00")
	f.Fuzz(func(t *testing.T, subject, id, at, version, ref, actor string) {
		m := good()
		m.Subject = subject
		m.Header[es.HeaderID] = []string{id}
		m.Header[es.HeaderTime] = []string{at}
		m.Header[es.HeaderVersion] = []string{version}
		m.Header[es.HeaderCommandRef] = []string{ref}
		m.Header[es.HeaderActor] = []string{actor}
		e, err := es.ReadEvent(m)
		if err != nil {
			if !errors.Is(err, es.ErrMalformed) {
				t.Fatalf("error %v is not marked", err)
			}
			return
		}
		again := e.Message(es.ContentTypeMsgpack)
		again.Header[es.HeaderHash] = m.Header[es.HeaderHash]
		back, err := es.ReadEvent(again)
		if err != nil {
			t.Fatalf("what was read can't be read again: %v", err)
		}
		if diff := cmp.Diff(e, back); diff != "" {
			t.Fatalf("event (-read +read again):\n%s", diff)
		}
	})
}

// The order of the hash's headers is that of their bytes, and none of an event's is missing.
func TestSortedHeaders(t *testing.T) {
	t.Parallel()
	if !slices.IsSorted(es.SortedHeaders()) {
		t.Errorf("%q is not sorted", es.SortedHeaders())
	}
	ref := es.Ref{Aggregate: "node", Key: "n1"}
	full := es.Event{
		ID: "e", Type: "t", Ref: ref, Version: 1, Recorded: time.Unix(1, 0), Effective: time.Unix(2, 0), Backfill: true,
		Command: es.Cause{ID: "c", Ref: es.Ref{Aggregate: "node", Key: "n2"}, Digest: "d", Actor: "a", OnBehalfOf: "b", Causation: "c", Correlation: "d", Trace: "t"},
	}
	m := full.Message(es.ContentTypeMsgpack)
	if diff := cmp.Diff(es.SortedHeaders(), slices.Sorted(maps.Keys(m.Header))); diff != "" {
		t.Errorf("headers (-sorted +of a full event):\n%s", diff)
	}
}

// The headers that the hash covers are found sorted, whichever there are.
func TestCoveredHeaders(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.SampledFrom(es.SortedHeaders()), rapid.SampledFrom([]string{es.HeaderHash, "Nats-Msg-Id", "Nats-X", "Other", "aa", "Cat-New", "ce-new", "nats-lower", ""}))
		header := map[string][]string{}
		for _, n := range rapid.SliceOf(name).Draw(t, "names") {
			header[n] = nil
		}
		want := []string{}
		for _, n := range slices.Sorted(maps.Keys(header)) {
			if n != es.HeaderHash && !strings.HasPrefix(n, "Nats-") {
				want = append(want, n)
			}
		}
		if diff := cmp.Diff(want, es.CoveredHeaders(header)); diff != "" {
			t.Fatalf("of %q (-want +got):\n%s", slices.Collect(maps.Keys(header)), diff)
		}
	})
}

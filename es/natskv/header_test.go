package natskv

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"pgregory.net/rapid"

	"catenary/es/project"
)

func TestHeadersGiveBackWhatWasPut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.IntRange(1, 1000).Draw(t, "parts")
		moment := rapid.Custom(func(t *rapid.T) time.Time {
			return time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).UTC()
		})
		text := rapid.String()
		m := Meta{
			Position: Position{Sequence: rapid.Uint64Range(1, 1<<60).Draw(t, "sequence"), Part: rapid.IntRange(1, parts).Draw(t, "part"), Parts: parts},
			Source:   Source{Sequence: rapid.Uint64Range(1, 1<<60).Draw(t, "source"), ID: rapid.StringN(1, 40, -1).Draw(t, "id")},
			Fold:     rapid.IntRange(0, 1<<30).Draw(t, "fold"), Type: text.Draw(t, "type"),
			Recorded: moment.Draw(t, "recorded"), Effective: moment.Draw(t, "effective"),
			Actor: text.Draw(t, "actor"), OnBehalfOf: text.Draw(t, "on behalf of"), Backfill: rapid.Bool().Draw(t, "backfill"),
		}
		after := rapid.Uint64().Draw(t, "after")
		h, size := headerOf(m, after)
		if want := (&nats.Msg{Header: h}).Size(); size != want || h.Get("Nats-Expected-Last-Sequence") != strconv.FormatUint(after, 10) {
			t.Errorf("%d bytes, want %d, after %s, want %d", size, want, h.Get("Nats-Expected-Last-Sequence"), after)
		}
		for name, values := range h {
			if strings.ContainsFunc(values[0], func(r rune) bool { return r < ' ' || r > '~' }) {
				t.Errorf("header %s is not printable: %q", name, values[0])
			}
		}
		got, err := readHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, got); diff != "" {
			t.Errorf("put and read differ (-put +read):\n%s", diff)
		}
	})
}

func TestHeaderForms(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m := Meta{
		Position: Position{Sequence: 17, Part: 1, Parts: 2}, Source: Source{Sequence: 16, ID: "018f-a"}, Fold: 3, Type: "thing.put.v1",
		Recorded: at, Effective: at.Add(-time.Hour), Actor: "a 1", OnBehalfOf: "ä", Backfill: true,
	}
	want := nats.Header{
		"Nats-Expected-Last-Sequence": {"7"}, "Cat-Position": {"17.1/2"}, "Cat-Source": {"16 018f-a"}, "Cat-Fold": {"3"}, "Cat-Type": {"thing.put.v1"},
		"Cat-Recorded": {"2026-01-02T03:04:05Z"}, "Cat-Effective": {"2026-01-02T02:04:05Z"},
		"Cat-Actor": {"a%201"}, "Cat-On-Behalf-Of": {"%C3%A4"}, "Cat-Backfill": {"1"},
	}
	have, _ := headerOf(m, 7)
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("headers (-want +have):\n%s", diff)
	}
}

func TestHeadersOfForeignMessages(t *testing.T) {
	t.Parallel()
	whole := func() nats.Header {
		h, _ := headerOf(Meta{Position: Position{Sequence: 1, Part: 1, Parts: 1}, Source: Source{Sequence: 1, ID: "e"}, Fold: 1, Type: "t", Recorded: time.Unix(0, 0)}, 0)
		return h
	}
	if _, err := readHeader(whole()); err != nil {
		t.Fatalf("the whole one: %v", err)
	}
	for _, c := range []struct{ header, value string }{
		{HeaderPosition, ""}, {HeaderPosition, "1"}, {HeaderPosition, "1.1"}, {HeaderPosition, "1.2/1"}, {HeaderPosition, "1.0/1"},
		{HeaderPosition, "0.1/1"}, {HeaderPosition, "-1.1/1"}, {HeaderPosition, "1.1/x"},
		{HeaderSource, ""}, {HeaderSource, "1"}, {HeaderSource, "1 "}, {HeaderSource, "x e"}, {HeaderSource, "0 e"}, {HeaderSource, "1 %ZZ"},
		{HeaderFold, ""}, {HeaderFold, "one"}, {HeaderRecorded, ""}, {HeaderRecorded, "yesterday"}, {HeaderEffective, "tomorrow"}, {HeaderActor, "%1"},
	} {
		h := whole()
		h[c.header] = []string{c.value}
		if _, err := readHeader(h); !errors.Is(err, project.ErrForeign) || !strings.Contains(err.Error(), c.header) {
			t.Errorf("%s: %q gives %v, want one marked foreign that names it", c.header, c.value, err)
		}
	}
	if _, err := readHeader(nil); !errors.Is(err, project.ErrForeign) {
		t.Errorf("no headers give %v", err)
	}
}

package es_test

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"catenary/es"
)

func message(n int) es.Message {
	return es.Message{
		Subject: fmt.Sprintf("evt.node.n%d", n%3),
		Header:  map[string][]string{es.HeaderID: {fmt.Sprint("id-", n)}, es.HeaderType: {"node.registered.v1"}, es.HeaderTrace: {"t"}},
		Body:    fmt.Appendf(nil, "body %d", n),
	}
}

// sealed gives n messages, each sealed onto the one before.
func sealed(n int) []es.Message {
	var head es.Head
	out := make([]es.Message, n)
	for i := range out {
		out[i] = message(i)
		head = head.Seal(&out[i])
	}
	return out
}

func passes(messages ...es.Message) iter.Seq2[es.Message, error] {
	return func(yield func(es.Message, error) bool) {
		for _, m := range messages {
			if !yield(m, nil) {
				return
			}
		}
	}
}

func clone(m es.Message) es.Message {
	h := make(map[string][]string, len(m.Header))
	for k, vs := range m.Header {
		h[k] = slices.Clone(vs)
	}
	m.Header, m.Body = h, slices.Clone(m.Body)
	return m
}

func TestChainHolds(t *testing.T) {
	t.Parallel()
	chain := sealed(10)
	var head es.Head
	seen := 0
	for _, err := range es.VerifyChain(&head, passes(chain...)) {
		if err != nil {
			t.Fatal(err)
		}
		seen++
	}
	if seen != 10 || head.Sequence != 10 || head.Hash.String() != chain[9].Header[es.HeaderHash][0] {
		t.Errorf("%d messages, head %d %v", seen, head.Sequence, head.Hash)
	}
}

// The server adds headers of its own when it stores and delivers: they are no part of the event.
func TestChainLeavesOutTheServersHeaders(t *testing.T) {
	t.Parallel()
	chain := sealed(3)
	chain[1].Header["Nats-Expected-Last-Sequence"] = []string{"1"}
	chain[1].Header["Nats-Batch-Id"] = []string{"x"}
	var head es.Head
	for _, err := range es.VerifyChain(&head, passes(chain...)) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestChainFindsDamage(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		damage func(chain []es.Message) []es.Message
		at     uint64 // the head where the check stops
		says   string
	}{
		"a changed body":           {func(c []es.Message) []es.Message { c[4].Body[0] ^= 1; return c }, 4, "event 5"},
		"a shortened body":         {func(c []es.Message) []es.Message { c[4].Body = c[4].Body[:3]; return c }, 4, "event 5"},
		"a changed header":         {func(c []es.Message) []es.Message { c[4].Header[es.HeaderType][0] = "x"; return c }, 4, "event 5"},
		"a header more":            {func(c []es.Message) []es.Message { c[4].Header["Cat-More"] = []string{"x"}; return c }, 4, "event 5"},
		"a header less":            {func(c []es.Message) []es.Message { delete(c[4].Header, es.HeaderTrace); return c }, 4, "event 5"},
		"a header's second value":  {func(c []es.Message) []es.Message { c[4].Header[es.HeaderTrace] = []string{"t", "u"}; return c }, 4, "event 5"},
		"another subject":          {func(c []es.Message) []es.Message { c[4].Subject += "x"; return c }, 4, "evt.node.n1x"},
		"another hash":             {func(c []es.Message) []es.Message { c[4].Header[es.HeaderHash][0] = strings.Repeat("0", 64); return c }, 4, "event 5"},
		"no hash":                  {func(c []es.Message) []es.Message { delete(c[4].Header, es.HeaderHash); return c }, 4, "event 5"},
		"a hole":                   {func(c []es.Message) []es.Message { return slices.Delete(c, 4, 5) }, 4, "event 5 is missing"},
		"a repeat":                 {func(c []es.Message) []es.Message { return slices.Insert(c, 5, clone(c[4])) }, 5, "event 6 is missing"},
		"a missing start":          {func(c []es.Message) []es.Message { return c[1:] }, 0, "event 1 is missing"},
		"a swap":                   {func(c []es.Message) []es.Message { c[4], c[5] = c[5], c[4]; return c }, 4, "event 5 is missing"},
		"a swap under old numbers": {swapContents, 4, "event 5"},
		"a replaced tail with hashes of its own": {func(c []es.Message) []es.Message {
			var fork es.Head
			for i := range c {
				if i >= 4 {
					c[i].Body = []byte("forged")
				}
				fork = fork.Seal(&c[i])
			}
			c[4] = sealed(10)[4]
			return c
		}, 5, "event 6"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var head es.Head
			var found error
			for _, err := range es.VerifyChain(&head, passes(c.damage(sealed(10))...)) {
				found = err
			}
			if !errors.Is(found, es.ErrBrokenChain) || !strings.Contains(found.Error(), c.says) {
				t.Errorf("error %v, want a broken chain that says %q", found, c.says)
			}
			if head.Sequence != c.at {
				t.Errorf("the head stands at %d, want %d", head.Sequence, c.at)
			}
		})
	}
}

func swapContents(c []es.Message) []es.Message {
	c[4], c[5] = c[5], c[4]
	c[4].Sequence, c[5].Sequence = 5, 6
	return c
}

// Nothing can move from one part of a message to another under the same hash.
func TestHashTellsPartsApart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-c]{0,3}`)
		draw := func(name string) es.Message {
			header := map[string][]string{}
			for range rapid.IntRange(0, 2).Draw(t, name+" headers") {
				header["H"+text.Draw(t, name+" header")] = rapid.SliceOfN(text, 1, 2).Draw(t, name+" values")
			}
			return es.Message{Subject: text.Draw(t, name+" subject"), Header: header, Body: []byte(text.Draw(t, name+" body"))}
		}
		a, b := draw("a"), draw("b")
		same := a.Subject == b.Subject && cmp.Equal(a.Header, b.Header) && string(a.Body) == string(b.Body)
		ha, hb := es.Head{}.Seal(&a), es.Head{}.Seal(&b)
		if same != (ha.Hash == hb.Hash) {
			t.Fatalf("same %v, hashes %v and %v", same, ha.Hash, hb.Hash)
		}
	})
}

// The hash of a fixed chain never changes: it is a storage format.
func TestHashIsPinned(t *testing.T) {
	t.Parallel()
	chain := sealed(2)
	want := []string{
		"5e705b79be0159dd399c382917131a30ac2fe5cc10d64c704a435ec9398a5a1b",
		"22daea23d6a435fcc882c326cef0aef401098f107a410ae5810b4bc1ce79e6e6",
	}
	for i, m := range chain {
		if got := m.Header[es.HeaderHash][0]; got != want[i] {
			t.Errorf("message %d has the hash %s, want %s", i+1, got, want[i])
		}
	}
}

func TestParseHash(t *testing.T) {
	t.Parallel()
	h := es.Head{}.Seal(&es.Message{Header: map[string][]string{}}).Hash
	var back es.Hash
	text, err := h.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	if err := back.UnmarshalText(text); err != nil || back != h {
		t.Errorf("%s comes back as %v (%v)", text, back, err)
	}
	for _, bad := range []string{"", "00", strings.Repeat("g", 64), strings.Repeat("0", 63), strings.Repeat("0", 66)} {
		if _, err := es.ParseHash(bad); err == nil {
			t.Errorf("%q is read as a hash", bad)
		}
	}
}

func TestVerifyChainEndsWithTheFirstError(t *testing.T) {
	t.Parallel()
	lost := errors.New("lost")
	var head es.Head
	var got []error
	for _, err := range es.VerifyChain(&head, func(yield func(es.Message, error) bool) {
		if yield(sealed(1)[0], nil) && yield(es.Message{}, lost) {
			yield(sealed(2)[1], nil)
		}
	}) {
		got = append(got, err)
	}
	if len(got) != 2 || got[0] != nil || !errors.Is(got[1], lost) {
		t.Errorf("errors %v, want none and then the source's own", got)
	}
}

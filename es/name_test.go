package es_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"catenary/es"
)

// keyPattern is what the server takes as a key of a bucket.
var keyPattern = regexp.MustCompile(`\A[-/_=\.a-zA-Z0-9]+\z`)

// TestNames covers the cases D01, D02, D07 and D11 at the level of names.
func TestNames(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		// token is the escaped form of a good name.
		token string
		// refused is what the refusal of a bad one says.
		refused []string
	}{
		// Ordinary names stay as they are.
		{name: "n1", token: "n1"},
		{name: "web-shop_2", token: "web-shop_2"},
		// Case D01: any script, any punctuation.
		{name: "a~b", token: "a=7Eb"},
		{name: "a:b", token: "a=3Ab"},
		{name: "a@b", token: "a=40b"},
		{name: "node ä", token: "node=20=C3=A4"},
		{name: "節点", token: "=E7=AF=80=E7=82=B9"},
		{name: "🚀", token: "=F0=9F=9A=80"},
		{name: "👩\u200D🚀", token: "=F0=9F=91=A9=E2=80=8D=F0=9F=9A=80"},
		{name: "क्\u200Dष", token: "=E0=A4=95=E0=A5=8D=E2=80=8D=E0=A4=B7"},
		{name: "registry.example.org/shop:1.20", token: "registry=2Eexample=2Eorg=2Fshop=3A1=2E20"},
		{name: "a=41", token: "a=3D41"},
		{name: "*", token: "=2A"},
		{name: ">", token: "=3E"},
		// Case D02: dots anywhere work, the empty name is refused.
		{name: "a..b", token: "a=2E=2Eb"},
		{name: ".a", token: "=2Ea"},
		{name: "a.", token: "a=2E"},
		{name: ".", token: "=2E"},
		{name: "..", token: "=2E=2E"},
		{name: "", refused: []string{"node is empty"}},
		// Case D07: what can't be seen or told apart is refused with its code point.
		{name: "a\u00A0b", refused: []string{"U+00A0", "byte 1"}},
		{name: "a\u200Bb", refused: []string{"U+200B", "byte 1"}},
		{name: "\uFEFFa", refused: []string{"U+FEFF", "byte 0"}},
		{name: "a\u202Eb", refused: []string{"U+202E"}},
		{name: "a\u00ADb", refused: []string{"U+00AD"}},
		{name: "a\tb", refused: []string{"U+0009"}},
		{name: "a\nb", refused: []string{"U+000A"}},
		{name: "a\x00b", refused: []string{"U+0000"}},
		{name: "a\x7Fb", refused: []string{"U+007F"}},
		{name: "caf\u00E9", token: "caf=C3=A9"},
		{name: "cafe\u0301", refused: []string{"normal form C", "\"café\""}},
		{name: "a\xFFb", refused: []string{"not valid UTF-8"}},
		// Case D11: far over the limit, and its edge.
		{name: strings.Repeat("x", 5000), refused: []string{"5000 bytes", "limit is 255"}},
		{name: strings.Repeat("x", es.MaxNameBytes), token: strings.Repeat("x", es.MaxNameBytes)},
		{name: strings.Repeat("é", 128), refused: []string{"256 bytes"}},
	}
	for _, c := range cases {
		err := es.CheckName("node", c.name)
		if c.refused != nil {
			if !errors.Is(err, es.ErrName) {
				t.Errorf("%q: error %v is not marked as a bad name", c.name, err)
				continue
			}
			for _, want := range c.refused {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q: the refusal %q does not say %q", c.name, err, want)
				}
			}
			continue
		}
		if err != nil {
			t.Errorf("%q is refused: %v", c.name, err)
			continue
		}
		token := es.EscapeToken(c.name)
		if token != c.token {
			t.Errorf("%q is escaped as %q, want %q", c.name, token, c.token)
		}
		if back, err := es.UnescapeToken(token); err != nil || back != c.name {
			t.Errorf("%q comes back as %q (%v)", c.name, back, err)
		}
	}
}

func TestUnescapeRefusesWhatEscapeNeverWrites(t *testing.T) {
	t.Parallel()
	for _, token := range []string{"", "=", "a=", "a=4", "=7e", "=41", "=5F", "=ZZ", "a.b", "a b", "ä", "=+1", "=2E.", "a=2"} {
		if name, err := es.UnescapeToken(token); !errors.Is(err, es.ErrName) {
			t.Errorf("%q means %q (%v): two tokens would mean one name", token, name, err)
		}
	}
}

// anyName draws names that people may use, in any script, and some that look like escapes.
func anyName() *rapid.Generator[string] {
	odd := rapid.SampledFrom([]rune(".=*>~@:/ %\"_-äé節点🚀\u200D"))
	letters := rapid.OneOf(rapid.Rune(), odd, rapid.RuneFrom([]rune("abcXYZ019")))
	return rapid.Custom(func(t *rapid.T) string {
		return norm.NFC.String(rapid.StringOfN(letters, 1, 40, es.MaxNameBytes).Draw(t, "name"))
	}).Filter(func(s string) bool { return es.CheckName("name", s) == nil })
}

func TestEscapeIsReversibleAndFitsAKey(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(anyName(), 1, 4).Draw(t, "names")
		key := es.Key(names...)
		if !keyPattern.MatchString(key) || strings.HasPrefix(key, ".") || strings.HasSuffix(key, ".") || strings.Contains(key, "..") {
			t.Fatalf("%q is no key of a bucket", key)
		}
		if n := strings.Count(key, "."); n != len(names)-1 {
			t.Fatalf("%d names became %d tokens", len(names), n+1)
		}
		back, err := es.SplitKey(key)
		if diff := cmp.Diff(names, back); err != nil || diff != "" {
			t.Fatalf("names (-in +out), error %v:\n%s", err, diff)
		}
		ref := es.Ref{Aggregate: "node", Key: key}
		if parsed, err := es.ParseSubject(ref.Subject()); err != nil || parsed != ref {
			t.Fatalf("%v comes back as %v (%v)", ref, parsed, err)
		}
	})
}

func TestEscapeIsInjective(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOfN(anyName(), 1, 3).Draw(t, "a")
		b := rapid.SliceOfN(anyName(), 1, 3).Draw(t, "b")
		if cmp.Equal(a, b) != (es.Key(a...) == es.Key(b...)) {
			t.Fatalf("%q and %q have the keys %q and %q", a, b, es.Key(a...), es.Key(b...))
		}
	})
}

func TestCheckNameTakesOnlyWhatItPromises(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "name")
		if es.CheckName("name", name) != nil {
			return
		}
		if name == "" || len(name) > es.MaxNameBytes || !utf8.ValidString(name) || !norm.NFC.IsNormalString(name) {
			t.Fatalf("%q was taken", name)
		}
	})
}

func TestParseSubjectRefusesWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	for _, subject := range []string{"", "evt", "evt.", "evt.node", "evt.node.", "evt..k", "$KV.x.y", "events.node.n1", "EVT.node.n1"} {
		if ref, err := es.ParseSubject(subject); !errors.Is(err, es.ErrName) {
			t.Errorf("%q is read as %v (%v)", subject, ref, err)
		}
	}
}

func FuzzUnescapeToken(f *testing.F) {
	for _, s := range []string{"n1", "=C3=A4", "a=2E", "=", "=7e", "=41", "a.b", "", "=FF"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, token string) {
		name, err := es.UnescapeToken(token)
		if err != nil {
			return
		}
		if again := es.EscapeToken(name); again != token {
			t.Fatalf("%q means %q, which is escaped as %q", token, name, again)
		}
	})
}

// IsKey agrees with Key about every key.
func TestIsKey(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.StringMatching(`[a-c]{1,2}`), rapid.StringMatching(`[a.=/ ]{1,3}`))
		names, other := rapid.SliceOfN(name, 1, 3).Draw(t, "names"), rapid.SliceOfN(name, 1, 3).Draw(t, "other")
		for _, key := range []string{es.Key(names...), es.Key(other...)} {
			if got, want := es.IsKey(key, names...), key == es.Key(names...); got != want {
				t.Errorf("key %s of %q: %v", key, names, got)
			}
		}
	})
	if es.IsKey("") || es.IsKey("a") || es.IsKey("a.", "a") || es.IsKey("a", "a", "") {
		t.Error("what is no key of the names is taken for it")
	}
}

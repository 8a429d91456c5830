package proof_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"catenary/audit/proof"
	"catenary/es"
)

// TestInclusion proves each event of chains of all sizes around the edges of tiles.
func TestInclusion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	log, _ := f.run(f.config())
	keys := public(t, f.keys)
	for _, more := range []int{1, 1, 1, 4, 248, 1, 1, 300} {
		f.append(more)
		last := f.chain.Head.Sequence
		for _, sequence := range []uint64{1, last/2 + 1, last} {
			p, err := log.Prove(bounded(t), sequence)
			if err != nil {
				t.Fatal(err)
			}
			c, err := p.Verify(keys)
			if err != nil {
				t.Fatalf("event %d of %d: %v", sequence, last, err)
			}
			if c.Size < sequence || c.Origin != "test-chain" {
				t.Errorf("event %d is proved by a checkpoint of %d events of %s", sequence, c.Size, c.Origin)
			}
		}
	}
}

// TestInclusionRefused: whatever is changed in a proof is found, and said in words of its own.
func TestInclusionRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	log, _ := f.run(f.config())
	f.append(11)
	latest(t, log, public(t, f.keys))
	whole, err := log.Prove(bounded(t), 5)
	if err != nil {
		t.Fatal(err)
	}
	f.append(1)
	latest(t, log, public(t, f.keys))
	other, err := log.Prove(bounded(t), 6)
	if err != nil {
		t.Fatal(err)
	}
	checkpoint := func(change func(lines []string)) func(*proof.Inclusion) {
		return func(p *proof.Inclusion) {
			lines := strings.Split(p.Checkpoint, "\n")
			change(lines)
			p.Checkpoint = strings.Join(lines, "\n")
		}
	}
	stranger := newKeys(t, "test-chain")
	for _, test := range []struct {
		name   string
		change func(*proof.Inclusion)
		kind   error
		says   string
	}{
		{"a byte of the event's body", func(p *proof.Inclusion) { p.Event.Body[0] ^= 1 }, proof.ErrEvent, "event 5"},
		{"a header of the event", func(p *proof.Inclusion) { p.Event.Headers[es.HeaderActor] = []string{"another"} }, proof.ErrEvent, "event 5"},
		{"the event's subject", func(p *proof.Inclusion) { p.Event.Subject = "evt.node.n9" }, proof.ErrEvent, "evt.node.n9"},
		{"a byte of the proof", func(p *proof.Inclusion) { p.Path[1][7] ^= 1 }, proof.ErrProof, "hashes of the proof"},
		{"a proof that is too short", func(p *proof.Inclusion) { p.Path = p.Path[1:] }, proof.ErrProof, "hashes of the proof"},
		{"two events swapped", func(p *proof.Inclusion) { p.Event = other.Event }, proof.ErrProof, "event 6"},
		{"a byte of the root", checkpoint(func(l []string) { l[2] = flipped(t, l[2]) }), proof.ErrRoot, "its root was changed"},
		{"the size", checkpoint(func(l []string) { l[1] = "12" }), proof.ErrSize, "says 12 events, but what was signed says 11"},
		{"a byte of the signature", checkpoint(func(l []string) {
			name, signature, _ := strings.Cut(strings.TrimPrefix(l[6], "— "), " ")
			l[6] = "— " + name + " " + flippedAt(t, signature, 20)
		}), proof.ErrSignature, "signature of test-chain"},
		{"the time", checkpoint(func(l []string) { l[4] = "time 2001-01-01T00:00:00Z" }), proof.ErrSignature, "one of the two was changed"},
		{"the origin", checkpoint(func(l []string) { l[0] = "prod-chain" }), proof.ErrOrigin, "chain prod-chain"},
		{"another key", func(p *proof.Inclusion) {
			c, err := proof.Peek([]byte(p.Checkpoint))
			if err != nil {
				t.Fatal(err)
			}
			p.Checkpoint = string(sign(t, c, stranger.Signers...))
		}, proof.ErrKey, "not by test-chain+"},
		{"an older checkpoint", func(p *proof.Inclusion) {
			early, err := proof.Peek([]byte(p.Checkpoint))
			if err != nil {
				t.Fatal(err)
			}
			early.Size = 3
			p.Size, p.Checkpoint = 3, string(sign(t, early, f.keys.Signers...))
		}, proof.ErrOlder, "has seen 3 events, so it can't prove event 5"},
		{"a newer checkpoint than the proof's", func(p *proof.Inclusion) { p.Checkpoint = other.Checkpoint }, proof.ErrSize, "made for 11 events, its checkpoint has seen 12"},
		{"no checkpoint at all", func(p *proof.Inclusion) { p.Checkpoint = "hello" }, proof.ErrMalformed, "no checkpoint"},
	} {
		p := copied(t, whole)
		test.change(&p)
		_, err := p.Verify(public(t, f.keys))
		wantKind(t, err, test.kind)
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: found %v, want words of %q", test.name, err, test.says)
			continue
		}
	}
	if _, err := whole.Verify(public(t, f.keys)); err != nil {
		t.Errorf("unchanged, it gives %v", err)
	}
}

func flipped(t *testing.T, text string) string { return flippedAt(t, text, 0) }

func flippedAt(t *testing.T, text string, at int) string {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	data[at] ^= 1
	return base64.StdEncoding.EncodeToString(data)
}

// copied goes through JSON, as a proof does on its way to who checks it.
func copied(t *testing.T, p proof.Inclusion) proof.Inclusion {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	again, err := proof.ReadInclusion(text)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// TestRootsAgree compares what keeps a few hashes with the textbook's tree, for any number of events.
func TestRootsAgree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		size := rapid.IntRange(0, 600).Draw(r, "events")
		var stored []tlog.Hash
		read := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
			var found []tlog.Hash
			for _, i := range indexes {
				found = append(found, stored[i])
			}
			return found, nil
		})
		var a proof.Accumulator
		for n := range size {
			head := es.Head{Sequence: uint64(n + 1), Hash: es.Hash{byte(n), byte(n >> 8)}}
			a.Add(head)
			hashes, err := tlog.StoredHashesForRecordHash(int64(n), proof.LeafHash(head), read)
			if err != nil {
				r.Fatal(err)
			}
			stored = append(stored, hashes...)
		}
		want, err := tlog.TreeHash(int64(size), read)
		if err != nil {
			r.Fatal(err)
		}
		if found := a.Root(); found != want {
			r.Fatalf("the root over %d events is %s, the textbook's %s", size, found, want)
		}
	})
}

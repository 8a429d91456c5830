package proof_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"catenary/audit/proof"
)

// TestVerifyExport checks an export as it stands in a file, and finds whatever is not as it was signed.
func TestVerifyExport(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	keys := public(t, f.keys)
	log, _ := f.run(f.config())
	var signed [][]byte
	for range 3 {
		f.append(4)
		_, text := latest(t, log, keys)
		signed = append(signed, text)
	}
	var all []proof.Record
	for r, err := range records(f.events) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	export := func(all []proof.Record) *bytes.Buffer {
		var file bytes.Buffer
		e := json.NewEncoder(&file)
		for _, r := range all {
			if err := e.Encode(map[string]any{
				"sequence": r.Sequence, "type": "shown to people", "stored": map[string]any{
					"sequence": r.Sequence, "subject": r.Subject, "headers": r.Headers, "body": r.Body, "previous": r.Previous, "hash": r.Hash,
				},
			}); err != nil {
				t.Fatal(err)
			}
		}
		return &file
	}
	found, err := proof.VerifyExport(proof.ReadExport(export(all), nil), signed, keys)
	if err != nil || !cmp.Equal(found, proof.Checked{Events: 12, Checkpoints: 3, Newest: 12}) {
		t.Errorf("of the whole export it finds %+v, %v", found, err)
	}

	forkedAt := func(size int) []byte {
		c, err := proof.Open(signed[1], keys)
		if err != nil {
			t.Fatal(err)
		}
		c.Root[0] ^= 1
		c.Size = uint64(size)
		return sign(t, c, f.keys.Signers...)
	}
	change := func(do func(all []proof.Record) []proof.Record) []proof.Record {
		again := slices.Collect(func(yield func(proof.Record) bool) {
			for r, err := range proof.ReadExport(export(all), nil) {
				if err != nil || !yield(r) {
					return
				}
			}
		})
		return do(again)
	}
	for _, test := range []struct {
		name   string
		all    []proof.Record
		signed [][]byte
		kind   error
		says   string
	}{
		{"a byte", change(func(all []proof.Record) []proof.Record { all[6].Body[0] ^= 1; return all }), signed, proof.ErrEvent, "event 7"},
		{"the hash before", change(func(all []proof.Record) []proof.Record { all[6].Previous[0] ^= 1; return all }), signed, proof.ErrEvent, "event 7 was changed"},
		{"two events swapped", change(func(all []proof.Record) []proof.Record { all[2], all[3] = all[3], all[2]; return all }), signed, proof.ErrEvent, "event 3 is missing"},
		{"two events swapped with their places", change(func(all []proof.Record) []proof.Record {
			all[2], all[3] = all[3], all[2]
			all[2].Sequence, all[3].Sequence = 3, 4
			return all
		}), signed, proof.ErrEvent, "event 3 on"},
		{"one left out", change(func(all []proof.Record) []proof.Record { return slices.Delete(all, 4, 5) }), signed, proof.ErrEvent, "event 5 is missing"},
		{"cut short", all[:10], signed, proof.ErrShortened, "ends with event 10, but a checkpoint was signed over 12 events"},
		{"a fork at equal size", all, [][]byte{signed[1], forkedAt(8)}, proof.ErrForked, "two checkpoints of 8 events"},
		{"a fork", all, [][]byte{forkedAt(8)}, proof.ErrForked, "the first 8 events have the root"},
		{"an older checkpoint", all, signed[:1], nil, ""},
	} {
		found, err := proof.VerifyExport(proof.ReadExport(export(test.all), nil), test.signed, keys)
		if test.kind == nil {
			if err != nil || found.Newest != 4 {
				t.Errorf("%s: found %+v, %v", test.name, found, err)
			}
			continue
		}
		wantKind(t, err, test.kind)
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: found %v, want words of %q", test.name, err, test.says)
		}
	}
	// A record that was rewritten with all its hashes is whole in itself: only what was signed tells.
	other := newFixture(t)
	other.chain.Label = "rewritten"
	other.append(12)
	var rewritten []proof.Record
	for r, err := range records(other.events) {
		if err != nil {
			t.Fatal(err)
		}
		rewritten = append(rewritten, r)
	}
	if _, err := proof.VerifyExport(proof.ReadExport(export(rewritten), nil), nil, keys); err != nil {
		t.Errorf("without a checkpoint a rewritten record gives %v", err)
	}
	_, err = proof.VerifyExport(proof.ReadExport(export(rewritten), nil), signed[2:], keys)
	wantKind(t, err, proof.ErrForked)
	for _, text := range []string{`{"sequence":1}`, `{"stored":{"sequence":1}}`, `{"sequence":1,"subject":"evt.a.b","header":{},"stored":"e30="}`, `{`, `{"sequence":"x"}`} {
		for _, err := range proof.ReadExport(strings.NewReader(text), nil) {
			wantKind(t, err, proof.ErrMalformed)
		}
	}
}

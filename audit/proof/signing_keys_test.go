package proof_test

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"golang.org/x/mod/sumdb/note"

	"catenary/audit/proof"
	"catenary/es"
)

// TestSigningKeys: only keys that have signed for the chain before sign for it, unless somebody says why others do; a file that is gone,
// of another chain or of a stranger is refused with what was expected and what was found.
func TestSigningKeys(t *testing.T) {
	t.Parallel()
	own, stranger, other := newKeys(t, "shop"), newKeys(t, "shop"), newKeys(t, "mall")
	damaged := proof.KeyFile{Path: filepath.Join(t.TempDir(), "checkpoint.key")}
	if err := os.WriteFile(damaged.Path, []byte("PRIVATE+KEY+of no chain\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	kept := newMemory()
	sizes := map[uint64][]note.Signer{5: own.Signers, 9: newKeys(t, "shop").Signers} // the newest is another projector's
	for _, size := range []uint64{5, 9} {
		if err := kept.Append(t.Context(), uint64(len(kept.signed)), sign(t, proof.Checkpoint{Origin: "shop", Size: size}, sizes[size]...)); err != nil {
			t.Fatal(err)
		}
	}
	id := func(f proof.KeyFile) string { return strings.Join(strings.SplitN(f.Public[0], "+", 3)[:2], "+") }
	for name, c := range map[string]struct {
		file    proof.KeyFile // none without a path
		chain   string
		newKeys string
		kept    *memory
		fails   error
		says    []string
		records bool
		made    string
	}{
		"the first start makes a key":        {kept: newMemory(), chain: "mill", made: "mill"},
		"a reason at the first start":        {kept: newMemory(), chain: "mill", newKeys: "why not", made: "mill"},
		"the chain's key":                    {file: own, kept: kept},
		"the chain's key, with a reason":     {file: own, newKeys: "left over", kept: kept},
		"no file":                            {kept: kept, fails: proof.ErrKeyLost, says: []string{"there is no key file", "signed as shop", "over 9 events, by shop+", "--new-checkpoint-key"}},
		"no file, and a name":                {kept: kept, chain: "mall", fails: proof.ErrKeyLost},
		"no file, and a reason":              {kept: kept, newKeys: "the disk burnt", records: true, made: "shop"},
		"no file, a reason and another name": {kept: kept, chain: "mall", newKeys: "the disk burnt", fails: proof.ErrOrigin, says: []string{"the chain is called shop"}},
		"a stranger's file":                  {file: stranger, kept: kept, fails: proof.ErrKeyLost, says: []string{"none of the keys", id(stranger), "by shop+"}},
		"a stranger's file, with a reason":   {file: stranger, newKeys: "a second projector", kept: kept, records: true},
		"a damaged file":                     {file: damaged, kept: kept, fails: proof.ErrKeyLost, says: []string{"is damaged", "no secret key", "by shop+", "bring the file with that key back", "move it away first"}},
		"another chain's file":               {file: other, kept: kept, fails: proof.ErrKeyLost, says: []string{id(other), "signed as shop", "move it away first"}},
		"another chain's, with a reason":     {file: other, newKeys: "so be it", kept: kept, fails: proof.ErrKeyLost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := c.file.Path
			if path == "" {
				path = filepath.Join(t.TempDir(), "checkpoint.key")
			}
			f, record, err := proof.SigningKeys{Path: path, Chain: c.chain, NewKeys: c.newKeys, Random: rand.Reader}.Open(t.Context(), c.kept)
			if !errors.Is(err, c.fails) {
				t.Fatalf("it gave %v, want %v", err, c.fails)
			}
			for _, say := range c.says {
				if !strings.Contains(err.Error()+errors.FlattenHints(err), say) {
					t.Errorf("it says %v (%s), want %q", err, errors.FlattenHints(err), say)
				}
			}
			if c.fails != nil {
				if _, err := os.Stat(path); c.file.Path == "" && !os.IsNotExist(err) {
					t.Error("a key was made all the same")
				}
				return
			}
			if c.made != "" && f.Name() != c.made {
				t.Errorf("the chain is called %s, want %s", f.Name(), c.made)
			}
			if record != nil != c.records || record != nil && (record.Keys != id(f) || record.Reason != c.newKeys) {
				t.Errorf("it puts %+v on record", record)
			}
		})
	}
	for _, reason := range []string{"two\nlines", strings.Repeat("x", 501), "\x00"} {
		wantKind(t, proof.CheckNewKeysReason(reason), proof.ErrMalformed)
	}
}

// TestNewKeysAreOnRecord: the first checkpoint of new keys says so, once; what was signed before verifies with the old key, and a check
// of the whole tells both.
func TestNewKeysAreOnRecord(t *testing.T) {
	t.Parallel()
	ctx := bounded(t)
	f := newFixture(t)
	f.append(3)
	log, stop := f.run(f.config())
	then, _, err := log.Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	before := public(t, f.keys)
	if err := os.Remove(f.keys.Path); err != nil {
		t.Fatal(err)
	}
	keys, record, err := proof.SigningKeys{Path: f.keys.Path, NewKeys: "the disk burnt", Random: rand.Reader}.Open(ctx, f.kept)
	if err != nil || record == nil {
		t.Fatalf("it gave %v and %v on record", err, record)
	}
	f.keys = keys
	c := f.config()
	c.New = record
	// Nothing was recorded meanwhile: the change of keys is signed all the same.
	log, stop = f.run(c)
	if _, _, err := log.Latest(ctx); err != nil {
		t.Fatal(err)
	}
	stop()
	again, record, err := proof.SigningKeys{Path: f.keys.Path, Random: rand.Reader}.Open(ctx, f.kept)
	if err != nil || record != nil || again.Public[0] != keys.Public[0] {
		t.Fatalf("the next start finds %v (%v), and puts %v on record", again.Public, err, record)
	}
	f.append(2)
	log, stop = f.run(f.config())
	if _, _, err := log.Latest(ctx); err != nil {
		t.Fatal(err)
	}
	stop()

	if c, err := proof.Open(then, before); err != nil || c.Size != 3 {
		t.Errorf("with the old key the old checkpoint is %+v (%v)", c, err)
	}
	if len(f.kept.signed) != 3 {
		t.Fatalf("%d checkpoints are kept, want three", len(f.kept.signed))
	}
	_, err = proof.Open(f.kept.signed[1], before)
	wantKind(t, err, proof.ErrKey)
	found, err := proof.VerifyExport(f.records(), f.kept.signed, append(before, public(t, keys)...))
	if err != nil || found.Checkpoints != 3 || len(found.NewKeys) != 1 {
		t.Fatalf("the whole is %+v (%v), want three checkpoints and one change of keys", found, err)
	}
	if k := found.NewKeys[0]; k.Events != 3 || k.Reason != "the disk burnt" || !strings.HasPrefix(keys.Public[0], k.Keys+"+") {
		t.Errorf("the change of keys is %+v", k)
	}
}

// records gives the events as an export has them.
func (f *fixture) records() func(func(proof.Record, error) bool) {
	return func(yield func(proof.Record, error) bool) {
		var head es.Head
		for m, err := range f.events.Read(f.t.Context(), 0) {
			var r proof.Record
			if err == nil {
				r, err = proof.NewRecord(head, m)
				head = r.Head()
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

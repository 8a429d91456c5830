package proof_test

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"catenary/audit/proof"
)

// TestKeyFile: a key is made once, only its owner can read it, and a second one takes over without a gap.
func TestKeyFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "checkpoint.key")
	first, err := proof.OpenKeyFile(path, "", rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has the mode %v, %v", info.Mode(), err)
	}
	if !strings.HasPrefix(first.Name(), "catenary-") || len(first.Name()) != len("catenary-")+12 {
		t.Errorf("the chain is called %q", first.Name())
	}
	again, err := proof.OpenKeyFile(path, "other", rand.Reader)
	if err != nil || again.Public[0] != first.Public[0] {
		t.Errorf("opened again it has the key %v, %v; want the first one", again.Public, err)
	}

	added, err := proof.AddKey(path, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	both, err := proof.OpenKeyFile(path, "", rand.Reader)
	if err != nil || len(both.Public) != 2 || both.Public[1] != added || both.Name() != first.Name() {
		t.Fatalf("after a key was added there are %v, %v", both.Public, err)
	}
	signed := sign(t, proof.Checkpoint{Origin: first.Name(), Size: 7}, both.Signers...)
	for _, key := range both.Public {
		keys, err := proof.ParseKeys(key)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := proof.Open(signed, keys); err != nil || c.Size != 7 {
			t.Errorf("with the key %s it gives %+v, %v", key, c, err)
		}
	}

	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if exposed, err := proof.OpenKeyFile(path, "", rand.Reader); err != nil || !exposed.Exposed {
		t.Errorf("of a file that others could read it says %v, %v", exposed.Exposed, err)
	}
	if closed, err := proof.OpenKeyFile(path, "", rand.Reader); err != nil || closed.Exposed {
		t.Errorf("opened again: %v, %v; want that others can't read it any more", closed.Exposed, err)
	}
	for _, text := range []string{"", "hello", "a+b+c"} {
		_, err := proof.ParseKeys(text)
		wantKind(t, err, proof.ErrMalformed)
	}
}

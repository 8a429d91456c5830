package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"catenary/chain"
	"catenary/es/dispatch"
)

// written puts a text into a file of the test's own.
func written(t *testing.T, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAuditProofs goes the whole way from a checkpoint that somebody keeps to a proof that holds without the chain, and on to what
// is refused.
func TestAuditProofs(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	u := started(t, "--store", store, "--durability", "interval", "--chain", "shop", "--checkpoint-every", "1h")
	c := caller{t: t, url: u.ready.NATS}
	nobody := caller{t: t, url: "nats://127.0.0.1:1"}
	c.node("n1")
	key := strings.TrimSpace(c.ok("audit", "key").out)
	if !strings.HasPrefix(key, "shop+") {
		t.Errorf("the key is %q, want the chain's name in it", key)
	}
	if found := nobody.ok("audit", "key", "--store", store); strings.TrimSpace(found.out) != key {
		t.Errorf("the file's key is %q, want %q", found.out, key)
	}
	then := filepath.Join(t.TempDir(), "then.txt")
	c.ok("audit", "checkpoint", "-o", then)
	c.node("n2")

	kept := c.with(map[string]string{keyVariable: key})
	if found := kept.ok("audit", "verify", "--checkpoint", then); !strings.Contains(found.err, "the record holds") || strings.Contains(found.err, "came along") {
		t.Errorf("with a key that was kept it says %q", found.err)
	}
	if found := c.ok("audit", "verify"); !strings.Contains(found.err, "compare it with the one you have kept") {
		t.Errorf("without a key that was kept it says %q", found.err)
	}

	at := filepath.Join(t.TempDir(), "proof.json")
	c.ok("audit", "prove", "2", "-o", at)
	if found := nobody.ok("audit", "verify-proof", at, "--key", key); !strings.Contains(found.out, "event      2 on evt.node.n1") {
		t.Errorf("the proof shows %q", found.out)
	}
	text, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.TrimSpace(on(t).ok("audit", "key").out)
	for _, test := range []struct {
		name, file, key, says string
		code                  int
	}{
		{"another event", strings.Replace(string(text), "evt.node.n1", "evt.node.n9", 1), key, "event 2 on evt.node.n9 was changed", exitFailed},
		{"another origin", strings.Replace(string(text), `"checkpoint": "shop\n`, `"checkpoint": "mall\n`, 1), key, "chain mall", exitFailed},
		{"another chain's key", string(text), other, "is a checkpoint of the chain shop", exitFailed},
		{"no proof", "{}", key, "no proof of an event", exitUsage},
		{"no key", string(text), "shop", "no public key", exitUsage},
	} {
		found := nobody.must(test.code, "audit", "verify-proof", written(t, []byte(test.file)), "--key", test.key)
		if !strings.Contains(found.err, test.says) {
			t.Errorf("%s: it says %q, want %q", test.name, found.err, test.says)
		}
	}
	c.must(exitNotFound, "audit", "prove", "4000")
	c.must(exitUsage, "audit", "prove", "n1")

	// An export is checked without the chain, too.
	export := c.ok("export", "events").out
	now := written(t, []byte(c.ok("audit", "checkpoint").out))
	events := written(t, []byte(export))
	lines := strings.SplitAfter(strings.TrimSuffix(export, "\n"), "\n")
	if found := nobody.ok("audit", "verify", "--offline", events, "--checkpoint", then, "--checkpoint", now, "--key", key); !strings.Contains(found.err, fmt.Sprintf("%d events agree with 2", len(lines))) {
		t.Errorf("of the export it says %q", found.err)
	}
	nobody.must(exitUsage, "audit", "verify", "--offline", events, "--key", key)
	body := base64.StdEncoding.EncodeToString([]byte("abc"))
	for name, changed := range map[string]string{
		"cut short":  strings.Join(lines[:len(lines)-1], ""),
		"left out":   strings.Join(slices.Delete(slices.Clone(lines), 1, 2), ""),
		"swapped":    lines[1] + lines[0] + strings.Join(lines[2:], ""),
		"other body": lines[0] + strings.Replace(lines[1], `"body":"`, `"body":"`+body, 1) + strings.Join(lines[2:], ""),
		// What people see in a line must be what is stored beside it.
		"another node":       strings.Replace(export, `"data":{"node":"n1"`, `"data":{"node":"n9"`, 1),
		"another type":       strings.Replace(export, `"type":"node.registered.v1"`, `"type":"node.retired.v1"`, 1),
		"another time":       strings.Replace(export, `"recorded":"2`, `"recorded":"1`, 1),
		"another key":        strings.Replace(export, `"key":"n1"`, `"key":"n9"`, 1),
		"another number":     strings.Replace(export, `{"sequence":2`, `{"sequence":3`, 1),
		"a field of its own": strings.Replace(export, `{"sequence":2,`, `{"sequence":2,"approved-by":"ann",`, 1),
		"a field left out":   strings.Replace(export, `,"aggregate":"node"`, ``, 1),
		"a field in capital": strings.Replace(export, `"aggregate":"node"`, `"Aggregate":"node"`, 1),
	} {
		if changed == export {
			t.Errorf("%s: the export was not changed", name)
		}
		found := nobody.must(exitFailed, "audit", "verify", "--offline", written(t, []byte(changed)), "--checkpoint", now, "--key", key)
		if !strings.Contains(found.err, "the export does not hold") {
			t.Errorf("%s: it says %q", name, found.err)
		}
	}

	// A second key takes over without a gap.
	added := strings.TrimSpace(nobody.ok("audit", "key", "--add", "--store", store).out)
	if code := u.stop(); code != exitOK {
		t.Fatalf("it ended with %d:\n%s", code, u.stderr.String())
	}
	u = started(t, "--store", store, "--durability", "interval")
	c.url = u.ready.NATS
	for _, k := range []string{key, added} {
		c.ok("audit", "verify", "--checkpoint", then, "--key", key+" "+k)
		c.ok("audit", "prove", "2", "-o", at)
		nobody.ok("audit", "verify-proof", at, "--key", k)
	}
	// With the new key alone, what was signed before it can't be checked: it says which key is missing.
	if found := c.must(exitFailed, "audit", "verify", "--key", added); !strings.Contains(found.err, "not by shop+") || !strings.Contains(found.err, "the keys of before") {
		t.Errorf("with the new key alone it says %q", found.err)
	}
}

// TestAuditRefused: case F10, a refused command is shown with its actor, and what it did not do is in no event.
func TestAuditRefused(t *testing.T) {
	t.Parallel()
	c := on(t)
	c.node("refused-node")
	c.module("refused-module")
	c.ok("assign", "refused-node", "refused-module", "--package", "p@1", "--on-behalf-of", "Rosa Refused")
	c.must(exitRefused, "send", "module", "forget", "--data", `{"module":"refused-module"}`, "--on-behalf-of", "Rosa Refused")
	c.must(exitUsage, "send", "module", "forget", "--data", `{"module":"refused-module","pasword":"s3cret"}`)
	var found []dispatch.Refused
	eventually(t, "the refused commands", func() bool {
		found = read[[]dispatch.Refused](c, "audit", "refused", "--aggregate", "module", "--limit", "50")
		found = slices.DeleteFunc(found, func(r dispatch.Refused) bool {
			return r.Key != "refused-module" && r.Code != "unknown-field"
		})
		return len(found) >= 2
	})
	i := slices.IndexFunc(found, func(r dispatch.Refused) bool { return r.Code == "module-stands" })
	if i < 0 {
		t.Fatalf("found %+v, want the refusal of the rule", found)
	}
	r := found[i]
	if r.Actor != "operator" || r.OnBehalfOf != "Rosa Refused" || r.Verb != "forget" || r.Digest == "" || r.Recorded.IsZero() || !strings.Contains(r.Message, "refused-node") {
		t.Errorf("it shows %+v, want who sent it, on whose behalf, what and why", r)
	}
	for _, r := range found {
		if text := fmt.Sprint(r); strings.Contains(text, "s3cret") || strings.Contains(text, "pasword") {
			t.Errorf("it repeats what was sent: %s", text)
		}
	}
	if found := c.ok("audit", "refused", "--actor", "Rosa Refused"); !strings.Contains(found.out, "module-stands") {
		t.Errorf("of whom it was for it shows %q", found.out)
	}
}

// TestAuditForget erases a person: the name is in no file of the store any more, and everything still verifies.
func TestAuditForget(t *testing.T) {
	t.Parallel()
	const person, author = "Zebulon Quagmire", "Ximena Author"
	store := t.TempDir()
	u := started(t, "--store", store, "--durability", "interval")
	c := caller{t: t, url: u.ready.NATS}
	c.ok("send", "node", "register", "--data", `{"node":"n1"}`, "--on-behalf-of", person)
	c.ok("send", "commit", "record", "--data", `{"repository":"r","commit":"c1","author":"`+author+`"}`)
	c.must(exitRefused, "send", "node", "retire", "--data", `{"node":"none"}`, "--on-behalf-of", person)
	then := filepath.Join(t.TempDir(), "then.txt")
	c.ok("audit", "checkpoint", "-o", then)

	// Names of people stand in no subject, no key and no header: in no file but those of the directory and of what is asked by name.
	for _, name := range []string{person, author} {
		for _, path := range filesWith(t, store, name) {
			if !strings.Contains(path, "catenary-actors") && !strings.Contains(path, "audit.db") {
				t.Errorf("%s holds the name %s", path, name)
			}
		}
	}
	id := func(name string) string {
		t.Helper()
		for _, a := range read[[]struct {
			ID string `json:"id"`
			chain.Actor
		}](c, "audit", "actors") {
			if a.Name == name {
				return a.ID
			}
		}
		t.Fatalf("%s is not in the directory", name)
		return ""
	}
	forgotten := id(person)
	if found := c.must(exitRefused, "audit", "forget-actor", forgotten, "--reason", "zebulon quagmire asked for it"); !strings.Contains(found.err, "names the person") {
		t.Errorf("with the name in the reason it says %q", found.err)
	}
	if found := c.must(exitRefused, "audit", "forget-actor", "nobody", "--reason", "request 12"); !strings.Contains(found.err, "no-such-actor") {
		t.Errorf("of an id that is not there it says %q", found.err)
	}
	c.must(exitUsage, "audit", "forget-actor", forgotten)
	c.ok("audit", "forget-actor", forgotten, "--reason", "request 12")
	c.ok("audit", "forget-actor", id(author), "--reason", "request 13")
	if found := c.ok("audit", "forget-actor", forgotten, "--reason", "request 12"); !strings.Contains(found.out, `"unchanged"`) {
		t.Errorf("forgotten again: %s", found.out)
	}
	for _, name := range []string{person, author} {
		// What is fed by the directory follows it.
		eventually(t, "no file with "+name, func() bool { return len(filesWith(t, store, name)) == 0 })
	}
	if found := c.ok("log", "--actor", forgotten); !strings.Contains(found.out, forgotten) || strings.Contains(found.out, person) {
		t.Errorf("the log shows\n%swant the id in the place of the name", found.out)
	}
	c.ok("verify")
	c.ok("audit", "verify", "--checkpoint", then)
	// Who comes back is somebody new.
	c.ok("send", "node", "register", "--data", `{"node":"n2"}`, "--on-behalf-of", person)
	if again := id(person); again == forgotten {
		t.Error("the name got the id again that was forgotten")
	}
	if code := u.stop(); code != exitOK {
		t.Fatalf("it ended with %d:\n%s", code, u.stderr.String())
	}
}

// filesWith lists the files below a directory that hold a text.
func filesWith(t *testing.T, dir, text string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return skipGone(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return skipGone(err)
		}
		if strings.Contains(string(data), text) {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// skipGone passes over what a running server has removed meanwhile.
func skipGone(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

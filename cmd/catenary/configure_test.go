package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConfigure writes what only its owner reads, keeps keys and passwords when it is run again, and refuses what can't work. That a server takes it,
// and what the parts do with it, is tested with the guide on separate processes.
func TestConfigure(t *testing.T) {
	t.Parallel()
	nobody := caller{t: t, url: "nats://127.0.0.1:1"}
	dir := filepath.Join(t.TempDir(), "deploy")
	first := nobody.ok("configure", dir, "--person", "ann")
	kept := map[string]string{}
	for _, path := range strings.Fields(first.out) {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(path, ".conf") {
			kept[path] = string(text)
		}
	}
	if len(kept) != 5 {
		t.Errorf("it wrote\n%s", first.out)
	}
	again := nobody.ok("configure", dir, "--person", "ann", "--agent", "edge 1")
	if !strings.Contains(again.out, "agent.edge=201.env") {
		t.Errorf("with an agent it wrote\n%s", again.out)
	}
	for path, before := range kept {
		if now, err := os.ReadFile(path); err != nil || string(now) != before {
			t.Errorf("%s is another one, %v", path, err)
		}
	}
	conf, err := os.ReadFile(filepath.Join(dir, "nats-server.conf"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`user: "agent.edge=201"`, `"told.edge=201.*"`, `user: "ann"`, "nkey: \"U", "sync_interval: always"} {
		if !strings.Contains(string(conf), want) {
			t.Errorf("the configuration lacks %s", want)
		}
	}
	for path := range kept {
		if _, password, ok := strings.Cut(kept[path], passwordLine); ok && strings.Contains(string(conf), strings.TrimSpace(password)) {
			t.Errorf("the configuration has the password of %s", path)
		}
	}
	for _, usage := range [][]string{
		{}, {dir, "--listen", "x"}, {dir, "--durability", "none"}, {dir, "--store-bytes", "1000"}, {dir, "--person", "a b"}, {dir, "--person", "ann", "--person", "ann"}, {dir, "--agent", ""},
	} {
		nobody.must(exitUsage, append([]string{"configure"}, usage...)...)
	}
	if err := os.WriteFile(filepath.Join(dir, "ledger.nk"), []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found := nobody.must(exitFailed, "configure", dir); !strings.Contains(found.err, "remove it") {
		t.Errorf("over a broken key it says %q", found.err)
	}
}

// TestConfigureCluster writes a configuration for each of three servers, which differ in what they must and share the rest, and refuses
// numbers of servers that survive nothing more.
func TestConfigureCluster(t *testing.T) {
	t.Parallel()
	nobody := caller{t: t, url: "nats://127.0.0.1:1"}
	dir := filepath.Join(t.TempDir(), "deploy")
	three := []string{"configure", dir, "--member", "s1=10.0.0.1:4222", "--member", "s2=10.0.0.2:4222,7000", "--member", "s3=[::1]:4222", "--person", "ann"}
	read := func(name string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	nobody.ok(three...)
	secret := strings.TrimSpace(read("cluster.secret"))
	for name, wants := range map[string][]string{
		"nats-server.s1.conf": {`server_name: "s1"`, `listen: "10.0.0.1:4222"`, `listen: "10.0.0.1:6222"`, filepath.Join(dir, "data", "s1")},
		"nats-server.s2.conf": {`server_name: "s2"`, `listen: "10.0.0.2:4222"`, `listen: "10.0.0.2:7000"`, filepath.Join(dir, "data", "s2")},
		"nats-server.s3.conf": {`server_name: "s3"`, `listen: "[::1]:4222"`, `listen: "[::1]:6222"`, filepath.Join(dir, "data", "s3")},
	} {
		text := read(name)
		for _, want := range append(wants, "server:"+secret+"@10.0.0.1:6222", "server:"+secret+"@10.0.0.2:7000", "server:"+secret+"@[::1]:6222", `password: "`+secret+`"`) {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %s", name, want)
			}
		}
	}
	const all = "nats://10.0.0.1:4222,nats://10.0.0.2:4222,nats://[::1]:4222"
	if text := read("catenary.yaml"); !strings.Contains(text, "replicas: 3\n") || !strings.Contains(text, all) {
		t.Errorf("the settings are\n%s", text)
	}
	if text := read("ann.env"); !strings.Contains(text, "NATS_URL="+all+"\n") {
		t.Errorf("ann is told\n%s", text)
	}
	before := read("nats-server.s2.conf")
	nobody.ok(append(three, "--person", "bob")...)
	if after := read("nats-server.s2.conf"); !strings.Contains(after, `user: "bob"`) || !strings.Contains(after, secret) || before == after {
		t.Error("with another person the configuration is not another one with the same secret")
	}
	member := func(texts ...string) (args []string) {
		for _, text := range texts {
			args = append(args, "--member", text)
		}
		return args
	}
	for name, c := range map[string]struct {
		members []string
		says    string
	}{
		"one":             {member("s1=10.0.0.1:4222"), "three servers"},
		"two":             {member("s1=10.0.0.1:4222", "s2=10.0.0.2:4222"), "an even number"},
		"four":            {member("a=h:1", "b=h:2", "c=h:3", "d=h:4"), "an even number"},
		"a name twice":    {member("s1=10.0.0.1:4222", "s1=10.0.0.2:4222", "s3=10.0.0.3:4222"), "two servers"},
		"an address":      {member("s1=10.0.0.1:4222", "s2=10.0.0.1:4222", "s3=10.0.0.3:4222"), "two servers"},
		"a port for both": {member("s1=10.0.0.1:4222", "s2=10.0.0.1:6222", "s3=10.0.0.3:4222"), "for clients and servers alike"},
		"any address":     {member("s1=0.0.0.0:4222", "s2=10.0.0.2:4222", "s3=10.0.0.3:4222"), "name the host"},
		"no name":         {member("10.0.0.1:4222", "s2=10.0.0.2:4222", "s3=10.0.0.3:4222"), "its name is"},
		"no port":         {member("s1=10.0.0.1", "s2=10.0.0.2:4222", "s3=10.0.0.3:4222"), "NAME=HOST:PORT"},
		"a port too high": {member("s1=10.0.0.1:64000", "s2=10.0.0.2:4222", "s3=10.0.0.3:4222"), "behind a comma"},
		"a route":         {member("s1=10.0.0.1:4222,x", "s2=10.0.0.2:4222", "s3=10.0.0.3:4222"), "the port for servers"},
		"alone, too":      {append(member("s1=10.0.0.1:4222", "s2=10.0.0.2:4222", "s3=10.0.0.3:4222"), "--listen", "127.0.0.1:4222"), "listen member"},
	} {
		other := filepath.Join(t.TempDir(), "deploy")
		if found := nobody.must(exitUsage, append([]string{"configure", other}, c.members...)...); !strings.Contains(found.err, c.says) {
			t.Errorf("%s: it says %q, want %q", name, found.err, c.says)
		}
		if _, err := os.Stat(other); err == nil {
			t.Errorf("%s: something is written", name)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "cluster.secret"), []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if found := nobody.must(exitFailed, three...); !strings.Contains(found.err, "is empty") {
		t.Errorf("without a secret it says %q", found.err)
	}
}

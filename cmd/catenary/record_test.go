package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"catenary/audit"
	"catenary/chain"
	"catenary/events"
)

// TestRecordFillsItself records commit, build and publication as a pipeline does, with no more than the module's name.
func TestRecordFillsItself(t *testing.T) {
	t.Parallel()
	ci := on(t).with(map[string]string{
		"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": "acme/recorded", "GITHUB_SHA": "0123456789abcdef0123456789abcdef01234567", "GITHUB_REF_NAME": "main",
		"GITHUB_REF_TYPE": "branch", "GITHUB_RUN_ID": "77", "GITHUB_ACTOR": "ann", "RUNNER_NAME": "runner 7",
	})
	ci.module("recorded")
	for range 2 {
		// A step that is repeated does no harm.
		ci.ok("record", "commit", "--author", "ben")
		ci.ok("record", "build", "--module", "recorded", "--made", "recorded=recorded@1.20", "--manifest", `{ "x": 1.20 }`, "--publish", "recorded@1.20")
	}
	commit := read[chain.Commit](ci, "get", "commit", "acme/recorded", "0123456789abcdef0123456789abcdef01234567")
	if commit.Branch != "main" || commit.Author == "" || commit.Author == "ben" {
		t.Errorf("commit is %+v, want it on main with an opaque author", commit)
	}
	if table := ci.ok("get", "commits").out; !strings.Contains(table, "ben") {
		t.Errorf("the table does not name the author:\n%s", table)
	}
	const id = "github/acme/recorded/77.1/recorded"
	build := read[chain.Build](ci, "get", "build", id)
	want := chain.Build{
		ID: id, Repository: "acme/recorded", Ref: "main", Module: "recorded", Commit: commit.Commit, On: "runner 7", Manifest: []byte(`{ "x": 1.20 }`),
		Made:      []events.Made{{Name: "recorded", Reference: "recorded@1.20"}},
		Published: &events.Reference{Package: &events.Package{Name: "recorded", Version: "1.20"}},
	}
	if diff := cmp.Diff(want, build, cmpopts.IgnoreFields(chain.Build{}, "At", "Asked", "Request", "Manifest")); diff != "" {
		t.Errorf("build (-want +found):\n%s", diff)
	}
	if out := ci.ok("get", "build", id, "-o", "json").out; !strings.Contains(out, `"manifest":{ "x": 1.20 }`) {
		t.Errorf("the manifest is not as it was given: %s", out)
	}
	published := read[chain.Published](ci, "get", "publication", "recorded@1.20")
	if published.Build != id || published.Commit != commit.Commit {
		t.Errorf("publication is %+v, want build and commit in it", published)
	}
	if log := read[[]audit.Item](ci, "log", "--aggregate", "commit", "--key", "acme=2Frecorded."+commit.Commit); len(log) != 1 || log[0].OnBehalfOf != "ann" {
		t.Errorf("the commit's events are %+v, want one on behalf of ann", log)
	}
}

func TestRecordFlagsWin(t *testing.T) {
	t.Parallel()
	ci := on(t).with(map[string]string{"GITLAB_CI": "true", "CI_PROJECT_PATH": "acme/flags", "CI_COMMIT_SHA": "aaaa", "CI_COMMIT_BRANCH": "main", "CI_JOB_ID": "5"})
	ci.ok("record", "commit", "--repository", "acme/other", "--commit", "bbbb", "--branch", "side")
	if found := read[chain.Commit](ci, "get", "commit", "acme/other", "bbbb"); found.Branch != "side" {
		t.Errorf("commit is %+v, want what the flags say", found)
	}
	ci.module("flags")
	file := filepath.Join(t.TempDir(), "manifest.json")
	if err := os.WriteFile(file, []byte("{\"a\" :1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ci.ok("record", "build", "--module", "flags", "--build", "flags-1", "--manifest", "@"+file)
	if out := ci.ok("get", "build", "flags-1", "-o", "json").out; !strings.Contains(out, `"manifest":{"a" :1}`) {
		t.Errorf("the manifest is not as the file has it: %s", out)
	}
	ci.ok("record", "build", "--module", "flags", "--build", "flags-2", "--failed", "no disk")
	if found := read[chain.Build](ci, "get", "build", "flags-2"); found.Failed != "no disk" {
		t.Errorf("build is %+v, want it failed", found)
	}
	ci.ok("record", "publication", "--artifact", "sha256:flags", "--build", "flags-1")
	if found := read[[]chain.Published](ci, "get", "published", "sha256:flags"); len(found) != 1 || found[0].Build != "flags-1" {
		t.Errorf("published is %+v, want the artifact of flags-1", found)
	}
}

func TestRecordSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	c := on(t)
	for args, says := range map[string]string{
		"record commit":                "--repository",
		"record commit --repository a": "--commit",
		"record build":                 "--module",
		"record build --module m --repository r --commit c":    "--build",
		"record build --failed x --publish p@1":                "publish",
		"record build --module m --manifest @/no/such/file.js": "--repository",
		"record publication":                                   "NAME@VERSION",
		"record publication p@1 --artifact sha256:1":           "one of them",
	} {
		if found := c.must(exitUsage, strings.Fields(args)...); !strings.Contains(found.err, says) {
			t.Errorf("%s says %q, want a word on %s", args, found.err, says)
		}
	}
	gitlab := c.with(map[string]string{"GITLAB_CI": "true", "CI_PROJECT_PATH": "acme/x"})
	if found := gitlab.must(exitUsage, "record", "commit"); !strings.Contains(found.err, "GitLab CI does not tell") {
		t.Errorf("it says %q, want what the CI system left open", found.err)
	}
}

package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
)

// TestMemories holds both memories to what one is: empty, then what was saved last.
func TestMemories(t *testing.T) {
	t.Parallel()
	for name, m := range map[string]Memory{"dir": Dir(filepath.Join(t.TempDir(), "state")), "volatile": &Volatile{}} {
		if _, ok, err := m.Load(); ok || err != nil {
			t.Errorf("%s: an empty one gives %t, %v", name, ok, err)
		}
		web, api := standing("web", 7, "1.20"), standing("api", 9, "1")
		web.Record, api.Record = json.RawMessage(`{"node":"n1","module":"web"}`), json.RawMessage(`{"node":"n1","module":"api"}`)
		first, second := NewState("n1"), learned(web)
		second.do(t, Done{Driver: &simDriver, Outputs: map[string]string{"port": "80"}})
		second.Learn(Answer{Node: "n1", Known: true, Told: []Instruction{api}})
		next, _ := second.Next(func(string) bool { return false })
		second.Begin(next)
		for _, s := range []State{first, second} {
			if err := m.Save(s); err != nil {
				t.Fatal(err)
			}
		}
		s, ok, err := m.Load()
		if diff := cmp.Diff(second, s); diff != "" || !ok || err != nil {
			t.Errorf("%s: gives %t, %v (-want +got):\n%s", name, ok, err, diff)
		}
	}
}

func TestDirThatCantBeRead(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"cut": `{"form":1,"state":{"no`, "another form": `{"form":9}`, "something else": "[]"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, stateFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := Dir(dir).Load()
		if !errors.Is(err, ErrMemory) || !strings.Contains(err.Error(), dir) || len(errors.GetAllHints(err)) == 0 {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}

// TestCrashWhileSaving leaves a part of the next state behind: the one before counts.
func TestCrashWhileSaving(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := NewState("n1")
	if err := Dir(dir).Save(s); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, stateFile+".new"), []byte(`{"form":1,"st`), 0o600); err != nil {
		t.Fatal(err)
	}
	got, ok, err := Dir(dir).Load()
	if err != nil || !ok || got.Node != "n1" {
		t.Errorf("it gives %+v, %t, %v", got, ok, err)
	}
}

package agent

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/cockroachdb/errors"
)

// ErrMemory means that what an agent remembers can't be read. The message names the file and what to do.
var ErrMemory = errors.New("the agent's state can't be read")

// Memory keeps an agent's state. One agent at a time uses one.
type Memory interface {
	// Load gives the state; not ok when there is none yet. It gives errors marked [ErrMemory], and those of the file system.
	Load() (s State, ok bool, err error)
	// Save replaces the state, whole or not at all. When it returns the new one is durable. It gives errors of the file system.
	Save(s State) error
}

const (
	stateFile    = "state.json"
	stateForm    = 1
	stateMode    = 0o600
	stateDirMode = 0o700
)

// storedState is the file.
type storedState struct {
	// Form is the version of all of this.
	Form  int   `json:"form"`
	State State `json:"state"`
}

// Dir is a memory on disk: a directory of its own.
type Dir string

var _ Memory = Dir("")

func (d Dir) path() string { return filepath.Join(string(d), stateFile) }

// Load implements [Memory].
func (d Dir) Load() (State, bool, error) {
	text, err := os.ReadFile(d.path())
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, false, nil
	}
	if err != nil {
		return State{}, false, errors.Wrap(err, "read the agent's state")
	}
	var s storedState
	err = json.Unmarshal(text, &s)
	if err == nil && s.Form != stateForm {
		err = errors.Newf("it has form %d, and this program knows form %d", s.Form, stateForm)
	}
	if err != nil {
		err = errors.Wrapf(err, "state in %s", d.path())
		err = errors.WithHint(err, "move the file away and start again: the agent then learns anew what the node is told, and applies it once more")
		return State{}, false, errors.Mark(err, ErrMemory)
	}
	s.State.whole()
	return s.State, true, nil
}

// Save implements [Memory].
func (d Dir) Save(s State) error {
	text, err := json.Marshal(storedState{Form: stateForm, State: s.slim()})
	if err == nil {
		err = os.MkdirAll(string(d), stateDirMode)
	}
	if err == nil {
		err = replaceFile(d.path(), text)
	}
	return errors.Wrap(err, "keep the agent's state")
}

// slim gives the state without what stands in it twice: the record of what is applied, or being done, is that of what was told, as long as nothing
// else was told since. Records may be large, and the state is written often.
func (s State) slim() State {
	modules := make(map[string]Module, len(s.Modules))
	for name, m := range s.Modules {
		if a := m.Applied; a != nil && a.Instruction.Source == m.Told.Source {
			applied := *a
			applied.Instruction.Record = nil
			m.Applied = &applied
		}
		modules[name] = m
	}
	if d := s.Doing; d != nil && d.Instruction.Source == s.Modules[d.Instruction.Module].Told.Source {
		doing := *d
		doing.Instruction.Record = nil
		s.Doing = &doing
	}
	s.Modules = modules
	return s
}

// whole puts back what slim has left out.
func (s *State) whole() {
	for _, m := range s.Modules {
		if a := m.Applied; a != nil && a.Instruction.Source == m.Told.Source {
			a.Instruction.Record = m.Told.Record
		}
	}
	if d := s.Doing; d != nil {
		if told := s.Modules[d.Instruction.Module].Told; told.Source == d.Instruction.Source {
			d.Instruction.Record = told.Record
		}
	}
}

// replaceFile replaces a file in one step. A crash leaves the old one or the new one.
func replaceFile(path string, content []byte) error {
	file, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, stateMode)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.CombineErrors(err, file.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.CombineErrors(dir.Sync(), dir.Close())
}

// Volatile is a memory that ends with the process, for simulations. It holds what a file would hold.
type Volatile struct {
	mu   sync.Mutex
	text []byte
}

var _ Memory = (*Volatile)(nil)

// Load implements [Memory].
func (v *Volatile) Load() (State, bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var s State
	if v.text == nil {
		return s, false, nil
	}
	return s, true, errors.Wrap(json.Unmarshal(v.text, &s), "read the agent's state")
}

// Save implements [Memory].
func (v *Volatile) Save(s State) error {
	text, err := json.Marshal(s)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.text = text
	return errors.Wrap(err, "keep the agent's state")
}

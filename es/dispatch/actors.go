package dispatch

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// Who names whoever is behind an opaque actor id.
type Who struct {
	// Name is the user's name as the server knows it, or as an importer gave it.
	Name string `json:"name"`
	// Account is the server account the user belongs to; empty for names that only stand in commands.
	Account string `json:"account,omitempty"`
}

// Directory keeps the names behind actor ids. It is the one record that can be changed: emptying an entry erases a person.
type Directory interface {
	// Load gives every entry that stands.
	Load(ctx context.Context) (map[string]Who, error)
	// Put stores a new entry, durably when it returns. It gives an error marked [ErrDirectoryChanged], and stores nothing,
	// when another process has changed the directory since this one last loaded it or put something in: else two writers
	// could give one name two ids, and a repeat that names the person would not be told for one.
	Put(ctx context.Context, id string, who Who) error
}

// ErrDirectoryChanged means that another process has changed the directory. Load it again.
var ErrDirectoryChanged = errors.New("the actor directory has changed")

// Actors gives opaque ids for names, making one for each name it has not seen. It is safe for many goroutines.
type Actors struct {
	directory Directory
	newID     func() string

	mu  sync.Mutex
	ids map[Who]string
}

// NewActors reads the directory. newID gives random ids, which MUST NOT tell anything of the name.
func NewActors(ctx context.Context, d Directory, newID func() string) (*Actors, error) {
	a := &Actors{directory: d, newID: newID}
	return a, a.load(ctx)
}

func (a *Actors) load(ctx context.Context) error {
	entries, err := a.directory.Load(ctx)
	if err != nil {
		return errors.Wrap(err, "read the actor directory")
	}
	a.ids = make(map[Who]string, len(entries))
	for id, who := range entries {
		if other, ok := a.ids[who]; !ok || id < other {
			a.ids[who] = id
		}
	}
	return nil
}

// ID gives the opaque id for a name. The entry is durable before the id is used. It gives the errors of the directory,
// and those marked es.ErrName for a name that can't be kept.
func (a *Actors) ID(ctx context.Context, who Who) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		if id, ok := a.ids[who]; ok {
			return id, nil
		}
		if err := es.CheckName("actor", who.Name); err != nil {
			return "", err
		}
		id := a.newID()
		err := a.directory.Put(ctx, id, who)
		switch {
		case err == nil:
			a.ids[who] = id
			return id, nil
		case !errors.Is(err, ErrDirectoryChanged):
			return "", errors.Wrap(err, "add to the actor directory")
		}
		if err := a.load(ctx); err != nil {
			return "", err
		}
	}
}

// EncodeWho and DecodeWho are the stored form of a directory's entry.
func EncodeWho(w Who) ([]byte, error) { return json.Marshal(w) }

// DecodeWho reads an entry. An erased entry gives the zero value.
func DecodeWho(data []byte) (Who, error) {
	var w Who
	if len(data) == 0 {
		return w, nil
	}
	return w, errors.Wrap(json.Unmarshal(data, &w), "actor entry")
}

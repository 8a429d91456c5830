package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
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
	// Erase overwrites an entry, wherever it is kept, so that nothing of the name is left. Erasing it again changes nothing. It gives
	// errors marked es.ErrNotFound when there is no such entry.
	Erase(ctx context.Context, id string) error
}

// MaxNamedActors bounds the names that only stand in commands: on whose behalf, who wrote a commit. Whoever may send commands can
// make up as many as he likes, and each is kept in memory and on disk. Users of the bus are not counted: the server bounds those.
const MaxNamedActors = 100_000

// ErrDirectoryFull means that there are [MaxNamedActors] names already, and this would be one more.
var ErrDirectoryFull = errors.New("the actor directory is full")

// ErrDirectoryChanged means that another process has changed the directory. Load it again.
var ErrDirectoryChanged = errors.New("the actor directory has changed")

// Actors gives opaque ids for names, making one for each name it has not seen. It is safe for many goroutines.
type Actors struct {
	directory Directory
	newID     func() string

	mu  sync.Mutex
	ids map[Who]string
	// named counts those without an account, most bounds them.
	named, most int
}

// NewActors reads the directory. newID gives random ids, which MUST NOT tell anything of the name.
func NewActors(ctx context.Context, d Directory, newID func() string) (*Actors, error) {
	a := &Actors{directory: d, newID: newID, most: MaxNamedActors}
	return a, a.load(ctx)
}

func (a *Actors) load(ctx context.Context) error {
	entries, err := a.directory.Load(ctx)
	if err != nil {
		return errors.Wrap(err, "read the actor directory")
	}
	a.ids, a.named = make(map[Who]string, len(entries)), 0
	for id, who := range entries {
		other, ok := a.ids[who]
		if !ok || id < other {
			a.ids[who] = id
		}
		if !ok && who.Account == "" {
			a.named++
		}
	}
	return nil
}

// ID gives the opaque id for a name. The entry is durable before the id is used. It gives the errors of the directory, those
// marked es.ErrName for a name that can't be kept, and [ErrDirectoryFull].
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
		if who.Account == "" && a.named >= a.most {
			return "", errors.Wrapf(ErrDirectoryFull, "%d names that stand in commands are known", a.named)
		}
		id := a.newID()
		err := a.directory.Put(ctx, id, who)
		switch {
		case err == nil:
			a.ids[who] = id
			if who.Account == "" {
				a.named++
			}
			return id, nil
		case !errors.Is(err, ErrDirectoryChanged):
			return "", errors.Wrap(err, "add to the actor directory")
		}
		if err := a.load(ctx); err != nil {
			return "", err
		}
	}
}

// Forget erases the names behind an id. Who acts under one of them again gets a new id. It gives an *es.Refusal when there is no
// such id or the reason names the person, and the errors of the directory.
func (a *Actors) Forget(ctx context.Context, id, reason string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.load(ctx); err != nil {
		return err
	}
	for who, known := range a.ids {
		if known == id && strings.Contains(strings.ToLower(reason), strings.ToLower(who.Name)) {
			return es.Refuse("reason-names-person", "the reason names the person who is to be forgotten, and reasons are kept for ever", "say why without the name")
		}
	}
	err := a.directory.Erase(ctx, id)
	if errors.Is(err, es.ErrNotFound) {
		return es.Refuse("no-such-actor", fmt.Sprintf("the actor directory has no entry %.80q", id), "catenary log -o json shows ids where a name was erased; catenary audit actors lists ids and names")
	}
	if err != nil {
		return err
	}
	a.drop(id)
	return nil
}

// drop leaves out an id. It MUST be called with the lock held.
func (a *Actors) drop(id string) {
	for who, known := range a.ids {
		if known == id {
			delete(a.ids, who)
			if who.Account == "" {
				a.named--
			}
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

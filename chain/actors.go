package chain

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/internal/topology"
)

// Actor is an entry of the actor directory: who is behind an opaque id. An erased entry has neither.
type Actor struct {
	Name string `json:"name,omitempty"`
	// Account is the bus account the actor came from.
	Account string `json:"account,omitempty"`
}

// ActorName gives the name behind an opaque id, for people to read. An id without a name, because it was erased or never had
// one, is given back as it is. A name is kept for a short while, so an erased one is gone by then.
func (r *Reader) ActorName(ctx context.Context, id string) (string, error) {
	if id == "" {
		return "", nil
	}
	if name, ok := r.names.get(id); ok {
		return name, nil
	}
	b, err := r.named(ctx, topology.BucketActors)
	if err != nil {
		return "", err
	}
	e, err := b.Get(ctx, es.EscapeToken(id))
	if err != nil && !errors.Is(err, es.ErrNotFound) {
		return "", errors.Wrapf(err, "name of actor %s", id)
	}
	var a Actor
	if len(e.Value) > 0 {
		if err := json.Unmarshal(e.Value, &a); err != nil {
			return "", errors.Wrapf(err, "name of actor %s: its entry is not one of ours", id)
		}
	}
	name := cmp.Or(a.Name, id)
	r.names.put(id, name)
	return name, nil
}

const (
	// nameAge is how long a name outlives its erasure here: short for a person, long for a list of a thousand events.
	nameAge = 30 * time.Second
	// mostNames bounds the cache. It starts anew rather than choose what to forget.
	mostNames = 10_000
)

// nameCache keeps names for a short while.
type nameCache struct {
	clock func() time.Time
	mu    *sync.Mutex
	names map[string]cachedName
}

type cachedName struct {
	name  string
	until time.Time
}

func newNameCache(clock func() time.Time) nameCache {
	return nameCache{clock: clock, mu: &sync.Mutex{}, names: map[string]cachedName{}}
}

func (c nameCache) get(id string) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.names[id]
	return n.name, ok && c.clock().Before(n.until)
}

func (c nameCache) put(id, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.names) >= mostNames {
		clear(c.names)
	}
	c.names[id] = cachedName{name: name, until: c.clock().Add(nameAge)}
}

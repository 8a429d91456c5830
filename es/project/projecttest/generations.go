package projecttest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/project"
)

// Generations are [project.Generations] in memory, safe for concurrent use. The zero value has none but the first of each
// view, which are empty.
type Generations struct {
	// Fail is asked before each call with its name, and again, with ", done" after the name, before the answer is given: an error
	// is given in the place of the answer. Nil means that all goes well.
	Fail func(call string) error
	// Most bounds the generations of a view; zero is no bound. Names then come again.
	Most int

	mu       sync.Mutex
	pointers map[string]project.Pointer
	buckets  map[string]*Generational
	calls    []string
	told     []project.Entry
	building struct{ view, bucket string }
}

// Generational is the bucket of a generation.
type Generational struct {
	Bucket
	of     *Generations
	name   string
	mu     sync.Mutex
	fenced bool
	tells  bool
}

// Name is the bucket's name.
func (g *Generational) Name() string { return g.name }

// Put refuses everything once the bucket is fenced.
func (g *Generational) Put(ctx context.Context, after uint64, key string, value []byte, meta project.Meta) es.Pending {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fenced {
		p := es.NewPromise()
		p.Resolve(errors.Mark(errors.Newf("bucket %s takes nothing more", g.name), es.ErrFull))
		return p
	}
	p := g.Bucket.Put(ctx, after, key, value, meta)
	if g.tells && p.Err() == nil {
		g.of.mu.Lock()
		defer g.of.mu.Unlock()
		g.of.told = append(g.of.told, project.Entry{Key: key, Value: value, Revision: after + 1, Meta: meta})
	}
	return p
}

// Of gives the bucket of a name, which is made when it is not there.
func (g *Generations) Of(bucket string) *Generational {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.buckets == nil {
		g.buckets = map[string]*Generational{}
	}
	b := g.buckets[bucket]
	if b == nil {
		b = &Generational{of: g, name: bucket}
		g.buckets[bucket] = b
	}
	return b
}

// Told lists what was told of the values that were put, in this order.
func (g *Generations) Told() []project.Entry {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.told)
}

// Calls lists the calls so far.
func (g *Generations) Calls() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.calls)
}

// Read gives the bucket that readers of a view are sent to.
func (g *Generations) Read(view string) *Generational { return g.Of(g.pointer(view).Bucket) }

func (g *Generations) pointer(view string) project.Pointer {
	g.mu.Lock()
	defer g.mu.Unlock()
	p, ok := g.pointers[view]
	if !ok {
		p = project.FirstPointer(view)
	}
	return p
}

func (g *Generations) call(name string, do func() error) error {
	g.mu.Lock()
	g.calls = append(g.calls, name)
	fail := g.Fail
	g.mu.Unlock()
	if fail == nil {
		return do()
	}
	if err := fail(name); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return fail(name + ", done")
}

// Pointer gives a view's pointer.
func (g *Generations) Pointer(ctx context.Context, view string) (p project.Pointer, err error) {
	err = unavailable(ctx)
	return g.pointer(view), err
}

// Point changes a view's pointer.
func (g *Generations) Point(ctx context.Context, view string, p project.Pointer) error {
	return g.call("point", func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if have := g.pointers[view].Revision; have != p.Revision {
			return errors.Mark(errors.Newf("the pointer is at revision %d", have), es.ErrConflict)
		}
		p.Revision++
		if g.pointers == nil {
			g.pointers = map[string]project.Pointer{}
		}
		g.pointers[view] = p
		return unavailable(ctx)
	})
}

func generationName(view string, n int) string {
	if n == 1 {
		return view
	}
	return fmt.Sprintf("%s-g%d", view, n)
}

// Remove forgets the bucket of a generation.
func (g *Generations) Remove(ctx context.Context, s project.Stored) error {
	return g.call("remove", func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.buckets, s.Bucket)
		return unavailable(ctx)
	})
}

// Follow gives the generation with the next number.
func (g *Generations) Follow(_ context.Context, view string, p project.Pointer) (project.Generation, error) {
	number := p.Number + 1
	if p.Next != nil {
		number = p.Next.Number + 1
	}
	if g.Most == 0 {
		return project.Generation{Number: number, Bucket: generationName(view, number)}, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for step := range g.Most {
		n := (p.Number+step)%g.Most + 1
		if g.buckets[generationName(view, n)] == nil {
			return project.Generation{Number: n, Bucket: generationName(view, n)}, nil
		}
	}
	return project.Generation{}, errors.Mark(errors.Newf("view %s: all %d generations are there", view, g.Most), es.ErrFull)
}

// Open gives a generation's bucket, which takes values again.
func (g *Generations) Open(ctx context.Context, n project.Generation) (project.Bucket, error) {
	b := g.Of(n.Bucket)
	return b, g.call("open", func() error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.fenced = false
		return unavailable(ctx)
	})
}

// Serve gives the bucket of the generation that is read, which takes values and tells of them.
func (g *Generations) Serve(ctx context.Context, n project.Generation) (project.Bucket, error) {
	b := g.Of(n.Bucket)
	return b, g.call("serve", func() error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.fenced, b.tells = false, true
		return unavailable(ctx)
	})
}

// Reserve gives the room to one view at a time.
func (g *Generations) Reserve(ctx context.Context, view string, n project.Generation) error {
	return g.call("reserve", func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if b := g.building; b.view != view && b.view != "" {
			if p := g.pointers[b.view]; p.Next != nil && p.Next.Bucket == b.bucket {
				return errors.Mark(errors.Newf("%s is being built", b.bucket), project.ErrNoRoom)
			}
		}
		g.building.view, g.building.bucket = view, n.Bucket
		return unavailable(ctx)
	})
}

// List gives the generations of a view whose buckets were asked for.
func (g *Generations) List(ctx context.Context, view string) ([]project.Stored, error) {
	g.mu.Lock()
	buckets := maps.Clone(g.buckets)
	g.mu.Unlock()
	var all []project.Stored
	for _, name := range slices.Sorted(maps.Keys(buckets)) {
		number := 1
		if text, ok := strings.CutPrefix(name, view+"-g"); ok {
			if n, err := strconv.Atoi(text); err == nil {
				number = n
			}
		} else if name != view {
			continue
		}
		state, err := buckets[name].State(ctx)
		if err != nil {
			return nil, err
		}
		s := project.Stored{Generation: project.Generation{Number: number, Bucket: name}, Values: state.Last}
		if last, err := buckets[name].Tail(ctx); err == nil {
			s.Changed = last.Stored
		}
		all = append(all, s)
	}
	return all, nil
}

// Copied returns at once: there are no copies.
func (g *Generations) Copied(ctx context.Context, _ project.Generation, _ uint64) error {
	return g.call("copied", func() error { return unavailable(ctx) })
}

// Fence lets a generation's bucket take nothing more.
func (g *Generations) Fence(ctx context.Context, n project.Generation) error {
	b := g.Of(n.Bucket)
	return g.call("fence", func() error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.fenced, b.tells = true, false
		return unavailable(ctx)
	})
}

// Retire does nothing: no room is kept.
func (g *Generations) Retire(ctx context.Context, _ project.Generation) error {
	return g.call("retire", func() error { return unavailable(ctx) })
}

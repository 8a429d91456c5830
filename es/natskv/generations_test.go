package natskv_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/natskv"
	"catenary/es/project"
	"catenary/internal/topology"
)

func openGenerations(t *testing.T, nc *nats.Conn, o topology.Options) *natskv.Generations {
	t.Helper()
	g, err := natskv.OpenGenerations(bounded(t), nc, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestPointers(t *testing.T) {
	t.Parallel()
	const view = topology.BucketNodes
	ctx := bounded(t)
	g := openGenerations(t, estest.Server(t, false).Connect(t), topology.Options{BucketBytes: 64 << 20})
	first, err := g.Pointer(ctx, view)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(project.FirstPointer(view), first); diff != "" {
		t.Errorf("at first (-want +have):\n%s", diff)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	next := project.Pointer{
		Generation: project.Generation{Number: 2, Bucket: "chain-nodes-g2", Reason: "damage", Since: at},
		Next:       &project.Generation{Number: 3, Bucket: "chain-nodes-g3"},
		Former:     []project.Generation{{Number: 1, Bucket: "chain-nodes", Until: at}},
		Revision:   first.Revision,
	}
	if err := g.Point(ctx, view, next); err != nil {
		t.Fatal(err)
	}
	if err := g.Point(ctx, view, next); !errors.Is(err, es.ErrConflict) {
		t.Errorf("changed again from what was read before: %v, want a conflict", err)
	}
	found, err := g.Pointer(ctx, view)
	if err != nil {
		t.Fatal(err)
	}
	next.Revision = found.Revision
	if diff := cmp.Diff(next, found); diff != "" || found.Revision == 0 {
		t.Errorf("pointer (-want +have):\n%s", diff)
	}
	if other, err := g.Pointer(ctx, topology.BucketBuilds); err != nil || other.Bucket != topology.BucketBuilds {
		t.Errorf("another view's pointer is %+v, %v", other, err)
	}
	for _, value := range []string{"{}", "[", `{"generation":2}`, `{"generation":1,"bucket":"x","next":{}}`} {
		if p, err := project.ParsePointer(view, []byte(value), 1); err == nil {
			t.Errorf("%s was read as %+v", value, p)
		}
	}
}

// TestGenerationsFollow takes the numbers in turn, and again when a bucket was removed.
func TestGenerationsFollow(t *testing.T) {
	t.Parallel()
	const view = topology.BucketNodes
	ctx := bounded(t)
	nc := estest.Server(t, false).Connect(t)
	g := openGenerations(t, nc, topology.Options{BucketBytes: 1 << 20})
	p := project.FirstPointer(view)
	for n := 1; n <= topology.MaxGenerations; n++ {
		if _, err := g.Open(ctx, p.Generation); err != nil {
			t.Fatal(err)
		}
		next, err := g.Follow(ctx, view, p)
		if n == topology.MaxGenerations {
			if err == nil || !errors.Is(err, es.ErrFull) {
				t.Errorf("after the last generation: %+v, %v", next, err)
			}
			break
		}
		if err != nil || next.Number != n+1 || next.Bucket != topology.Generation(view, n+1) {
			t.Fatalf("after generation %d: %+v, %v", n, next, err)
		}
		p.Generation = next
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(ctx, topology.BucketStream(topology.Generation(view, 4))); err != nil {
		t.Fatal(err)
	}
	if next, err := g.Follow(ctx, view, p); err != nil || next.Number != 4 {
		t.Errorf("after one was removed: %+v, %v", next, err)
	}
}

// TestFence closes a bucket while values are put into it as fast as it takes them, and opens it again.
func TestFence(t *testing.T) {
	t.Parallel()
	fence(t, estest.Server(t, false).Connect(t), 1)
}

func fence(t *testing.T, nc *nats.Conn, replicas int) {
	t.Helper()
	ctx := bounded(t)
	g := openGenerations(t, nc, topology.Options{BucketBytes: 64 << 20, Replicas: replicas})
	generation := project.FirstPointer(topology.BucketNodes).Generation
	opened, err := g.Open(ctx, generation)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, opened.(*natskv.Bucket), 10, "n1")
	begun, refused := make(chan struct{}), make(chan error, 1)
	go func() {
		for revision := uint64(10); ; revision++ {
			if revision == 30 {
				close(begun)
			}
			if err := es.Wait(ctx, opened.Put(ctx, revision, "n1", []byte(`{"node":"n1"}`), metaOf(revision+1))); err != nil {
				refused <- err
				return
			}
		}
	}()
	<-begun
	if err := g.Fence(ctx, generation); err != nil {
		t.Fatal(err)
	}
	// What was on its way when the limit was set has come by now, and nothing comes any more.
	closed, err := opened.State(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-refused; !errors.Is(err, es.ErrFull) {
		t.Errorf("the put that was refused says %v, want that the bucket is full", err)
	}
	put := func() error {
		return es.Wait(ctx, opened.Put(ctx, closed.Last, "n2", []byte(`{}`), metaOf(closed.Last+1)))
	}
	if err := put(); !errors.Is(err, es.ErrFull) {
		t.Errorf("a put into a closed bucket: %v", err)
	}
	if err := g.Fence(ctx, generation); err != nil {
		t.Errorf("closed again: %v", err)
	}
	if now, err := opened.State(ctx); err != nil || now != closed || now.Deleted != 0 {
		t.Errorf("closed it has %+v, %v, and had %+v", now, err, closed)
	}
	if _, err := g.Open(ctx, generation); err != nil {
		t.Fatal(err)
	}
	if err := put(); err != nil {
		t.Errorf("a put into a bucket that was opened again: %v", err)
	}
}

// copies notes what is asked of it.
type copies struct{ asked []string }

func (c *copies) Follow(_ context.Context, bucket string, revision uint64) error {
	c.asked = append(c.asked, bucket)
	if revision == 99 {
		return errors.New("the copy is gone")
	}
	return nil
}

func (c *copies) Retire(_ context.Context, bucket string) error {
	c.asked = append(c.asked, "-"+bucket)
	return nil
}

func (c *copies) Remove(_ context.Context, bucket string) error {
	c.asked = append(c.asked, "x"+bucket)
	return nil
}

// TestRemove removes the very bucket that was listed, its copy first, and not one of the same name that was made since.
func TestRemove(t *testing.T) {
	t.Parallel()
	const view = topology.BucketNodes
	ctx := bounded(t)
	nc := estest.Server(t, false).Connect(t)
	kept := &copies{}
	g, err := natskv.OpenGenerations(ctx, nc, topology.Options{BucketBytes: 1 << 20}, kept)
	if err != nil {
		t.Fatal(err)
	}
	list := func() []project.Stored {
		t.Helper()
		found, err := g.List(ctx, view)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	next := project.Generation{Number: 2, Bucket: topology.Generation(view, 2)}
	if _, err := g.Open(ctx, next); err != nil {
		t.Fatal(err)
	}
	first := list()[0]
	for range 2 { // the second time there is nothing left to do
		if err := g.Remove(ctx, first); err != nil {
			t.Fatal(err)
		}
	}
	if found := list(); len(found) != 0 {
		t.Errorf("after that there are %+v", found)
	}
	if _, err := g.Open(ctx, next); err != nil {
		t.Fatal(err)
	}
	if err := g.Remove(ctx, first); !errors.Is(err, es.ErrConflict) || len(list()) != 1 {
		t.Errorf("one that was made since: %v", err)
	}
	if diff := cmp.Diff([]string{"x" + next.Bucket, "x" + next.Bucket}, kept.asked); diff != "" {
		t.Errorf("copies (-want +have):\n%s", diff)
	}
}

func TestCopiesAreAsked(t *testing.T) {
	t.Parallel()
	ctx := bounded(t)
	nc := estest.Server(t, false).Connect(t)
	kept := &copies{}
	g, err := natskv.OpenGenerations(ctx, nc, topology.Options{}, kept)
	if err != nil {
		t.Fatal(err)
	}
	one := project.Generation{Number: 2, Bucket: "chain-nodes-g2"}
	if err := errors.CombineErrors(g.Copied(ctx, one, 1), g.Retire(ctx, one)); err != nil {
		t.Error(err)
	}
	if err := g.Copied(ctx, one, 99); err == nil || !strings.Contains(err.Error(), "chain-nodes-g2") {
		t.Errorf("error %v, want one that names the bucket", err)
	}
	if diff := cmp.Diff([]string{"chain-nodes-g2", "-chain-nodes-g2", "chain-nodes-g2"}, kept.asked); diff != "" {
		t.Errorf("asked (-want +have):\n%s", diff)
	}
	none := openGenerations(t, nc, topology.Options{})
	if err := errors.CombineErrors(none.Copied(ctx, one, 99), none.Retire(ctx, one)); err != nil {
		t.Errorf("where nobody keeps copies: %v", err)
	}
}

// TestReserve: the room goes to one generation, and to the next when readers were sent there or it was given up.
func TestReserve(t *testing.T) {
	t.Parallel()
	ctx := bounded(t)
	nc := estest.Server(t, false).Connect(t)
	one, other := openGenerations(t, nc, topology.Options{BucketBytes: 1 << 20}), openGenerations(t, nc, topology.Options{BucketBytes: 1 << 20})
	point := func(view string, next *project.Generation) {
		t.Helper()
		p, err := one.Pointer(ctx, view)
		if err != nil {
			t.Fatal(err)
		}
		p.Next = next
		if err := one.Point(ctx, view, p); err != nil {
			t.Fatal(err)
		}
	}
	nodes := project.Generation{Number: 2, Bucket: "chain-nodes-g2"}
	builds := project.Generation{Number: 2, Bucket: "chain-builds-g2"}
	point(topology.BucketNodes, &nodes)
	point(topology.BucketBuilds, &builds)
	for range 2 {
		if err := one.Reserve(ctx, topology.BucketNodes, nodes); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.Reserve(ctx, topology.BucketNodes, nodes); err != nil {
		t.Errorf("another projector that builds the same is refused: %v", err)
	}
	if err := other.Reserve(ctx, topology.BucketBuilds, builds); !errors.Is(err, project.ErrNoRoom) || !strings.Contains(err.Error(), nodes.Bucket) {
		t.Errorf("a second one gives %v", err)
	}
	point(topology.BucketNodes, nil)
	if err := other.Reserve(ctx, topology.BucketBuilds, builds); err != nil {
		t.Errorf("after the first was built: %v", err)
	}
	if err := one.Reserve(ctx, topology.BucketNodes, nodes); !errors.Is(err, project.ErrNoRoom) {
		t.Errorf("while the second is built: %v", err)
	}
}

// TestList gives the buckets that are there, and how far they are.
func TestList(t *testing.T) {
	t.Parallel()
	const view = topology.BucketNodes
	ctx := bounded(t)
	nc := estest.Server(t, false).Connect(t)
	g := openGenerations(t, nc, topology.Options{BucketBytes: 1 << 20})
	for _, n := range []int{1, 4} {
		b, err := g.Open(ctx, project.Generation{Number: n, Bucket: topology.Generation(view, n)})
		if err != nil {
			t.Fatal(err)
		}
		fill(t, b.(*natskv.Bucket), n, "n1")
	}
	found, err := g.List(ctx, view)
	if err != nil || len(found) != 2 || found[0].Bucket != "chain-nodes" || found[0].Values != 1 || found[1].Number != 4 || found[1].Bucket != "chain-nodes-g4" || found[1].Values != 4 || found[1].Changed.IsZero() {
		t.Errorf("list %+v, %v", found, err)
	}
}

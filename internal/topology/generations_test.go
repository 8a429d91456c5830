package topology

import "testing"

func TestGenerationNames(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "chain-nodes", 2: "chain-nodes-g2", 9: "chain-nodes-g9"} {
		if got := Generation(BucketNodes, n); got != want {
			t.Errorf("generation %d is %s, want %s", n, got, want)
		}
		if view, number, ok := GenerationOf(want); view != BucketNodes || number != n || !ok {
			t.Errorf("%s is generation %d of %q, %v", want, number, view, ok)
		}
	}
	for _, bucket := range []string{"", "chain-nodes-g", "chain-nodes-g1", "chain-nodes-g10", "chain-nodes-g02", "chain-nodes-gx", "chain-views", "catenary-actors", "chain-nodesx"} {
		if view, n, ok := GenerationOf(bucket); ok {
			t.Errorf("%s is generation %d of %s, want none", bucket, n, view)
		}
	}
}

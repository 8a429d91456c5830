package perkey_test

import (
	"strings"
	"testing"

	"github.com/cockroachdb/errors"

	"catenary/chain"
	"catenary/es"
	"catenary/projections/perkey"
)

type seen interface{ isSeen() }
type greeted struct{ name string }

func (greeted) isSeen() {}

func newView() *perkey.View[chain.Node, seen] {
	return perkey.New(chain.Nodes, 3, func(before *chain.Node, e es.Event, data seen) (chain.Node, error) {
		switch data := data.(type) {
		case greeted:
			n := chain.Node{Node: data.name}
			if before != nil {
				n.Labels = map[string]string{"again": before.Node}
			}
			return n, nil
		}
		return chain.Node{}, perkey.Unknown(e)
	})
}

func event(key string, data any) es.Event {
	return es.Event{Sequence: 7, Type: "node.greeted.v1", Ref: es.Ref{Aggregate: "node", Key: key}, Data: data}
}

func TestView(t *testing.T) {
	t.Parallel()
	v := newView()
	if v.Name() != "chain-nodes" || v.Version() != 3 || strings.Join(v.Aggregates(), " ") != "node" {
		t.Errorf("it is %s version %d of %v", v.Name(), v.Version(), v.Aggregates())
	}
	if err := v.Load("n1", []byte(`{"node":"n1"}`)); err != nil {
		t.Fatal(err)
	}
	values, err := v.Fold(event("n1", greeted{"n1"}))
	if err != nil || len(values) != 1 || values[0].Key != "n1" || string(values[0].Data) != `{"node":"n1","labels":{"again":"n1"}}` {
		t.Errorf("values are %s with error %v", values, err)
	}
}

func TestLoadKeepsACopy(t *testing.T) {
	t.Parallel()
	v := newView()
	buffer := []byte(`{"node":"n1"}`)
	if err := v.Load("n1", buffer); err != nil {
		t.Fatal(err)
	}
	copy(buffer, `{"node":"n9"}`)
	values, err := v.Fold(event("n1", greeted{"n1"}))
	if err != nil || string(values[0].Data) != `{"node":"n1","labels":{"again":"n1"}}` {
		t.Errorf("values are %s with error %v", values, err)
	}
}

func TestLoadRefusesWhatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ key, value, says string }{
		"not JSON":          {"n1", `{"node":`, "value of key n1"},
		"of another record": {"n1", `{"node":"n2"}`, "a record of n2 stands under key n1"},
		"of another kind":   {"web", `{"name":"web"}`, "stands under key web"},
	} {
		if err := newView().Load(c.key, []byte(c.value)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error is %v, want one that says %q", name, err, c.says)
		}
	}
}

// TestAFailedFoldLeavesTheStateAlone: a view that stops at an event may be asked for the same event again.
func TestAFailedFoldLeavesTheStateAlone(t *testing.T) {
	t.Parallel()
	v := newView()
	if err := v.Load("n1", []byte(`{"node":"n1"}`)); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]any{"of another record": greeted{"n2"}, "not text": greeted{"\xff"}, "unknown": "?", "nothing": nil} {
		values, err := v.Fold(event("n1", data))
		if err == nil || values != nil {
			t.Errorf("%s: gave %v", name, values)
		}
		if _, known := data.(seen); !known && !errors.Is(err, es.ErrUnknownType) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
	values, err := v.Fold(event("n1", greeted{"n1"}))
	if err != nil || string(values[0].Data) != `{"node":"n1","labels":{"again":"n1"}}` {
		t.Errorf("after the failures values are %s with error %v", values, err)
	}
}

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"catenary/chain"
	"catenary/es"
	"catenary/es/dispatch"
)

// sendAll sends commands at the same time, each from a goroutine of its own, and gives the answers.
func sendAll(t *testing.T, requests []dispatch.Request) []es.Answer {
	t.Helper()
	client := dispatch.NewClient(connect(t, shared.url))
	answers := make([]es.Answer, len(requests))
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	var callers sync.WaitGroup
	for i, r := range requests {
		callers.Go(func() {
			var err error
			if answers[i], err = client.Send(ctx, r); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	return answers
}

func assign(node, module, version string, o dispatch.Options) dispatch.Request {
	body := fmt.Appendf(nil, `{"node":%q,"module":%q,"package":{"name":%[2]q,"version":%q}}`, node, module, version)
	return dispatch.Request{Aggregate: "assignment", Verb: "assign", Body: body, Options: o}
}

// TestB01 is case B01: 64 callers assign different versions to one key with the same expected version.
func TestB01(t *testing.T) {
	t.Parallel()
	c := on(t, shared)
	c.node("b01")
	c.module("b01")
	c.must(0, "assign", "b01", "b01", "--package", "b01@0")
	expected := uint64(1)
	var requests []dispatch.Request
	for i := range 64 {
		requests = append(requests, assign("b01", "b01", fmt.Sprint(i+1), dispatch.Options{Expected: &expected}))
	}
	count := map[es.Status]int{}
	var winner uint64
	for _, a := range sendAll(t, requests) {
		count[a.Status]++
		switch {
		case a.Status == es.StatusAccepted:
			winner = a.Sequence
		case a.Error == nil || a.Error.Current == nil || *a.Error.Current != 2:
			t.Errorf("a conflict says %+v, want the present version 2", a.Error)
		}
	}
	if count[es.StatusAccepted] != 1 || count[es.StatusConflict] != 63 {
		t.Errorf("answers: %v, want 1 accepted and 63 conflicts", count)
	}
	c.must(6, "assign", "b01", "b01", "--package", "b01@x", "--expect-version", "1")
	c.must(0, "unassign", "b01", "b01") // waits until all can be read
	if h := read[[]change](c, "history", "assignment", "b01", "b01"); len(h) != 3 || h[1].Sequence != winner {
		t.Errorf("history: %+v, want the first, event %d, and the end", h, winner)
	}
}

// TestB06 is case B06: the same command id with another body.
func TestB06(t *testing.T) {
	t.Parallel()
	const id = "0198c0de-0000-8000-8000-00000000b060"
	c := on(t, shared)
	c.node("b06")
	c.module("b06")
	first := c.must(0, "assign", "b06", "b06", "--package", "b06@1", "--id", id).out
	if again := c.must(0, "assign", "b06", "b06", "--package", "b06@1", "--id", id).out; again != first {
		t.Errorf("the repeat is answered with %s, the first was %s", again, first)
	}
	refused := c.must(5, "assign", "b06", "b06", "--package", "b06@2", "--id", id)
	if !strings.Contains(refused.out, "id-reused") || !strings.Contains(refused.err, id) {
		t.Errorf("another body: %s%s, want it refused for the id", refused.out, refused.err)
	}
	if h := read[[]change](c, "history", "assignment", "b06", "b06"); len(h) != 1 || h[0].Value.Package.Version != "1" {
		t.Errorf("history: %+v, want the first alone", h)
	}
}

// TestB11 is case B11: ten callers end and assign the same key in a loop.
func TestB11(t *testing.T) {
	t.Parallel()
	c := on(t, shared)
	c.node("b11")
	c.module("b11")
	var requests []dispatch.Request
	for range 20 {
		for caller := range 10 {
			requests = append(requests, assign("b11", "b11", fmt.Sprint(caller), dispatch.Options{}),
				dispatch.Request{Aggregate: "assignment", Verb: "unassign", Body: []byte(`{"node":"b11","module":"b11"}`)})
		}
	}
	// Something stands before the race, so that no caller ends what was never there.
	c.must(0, "assign", "b11", "b11", "--package", "b11@first")
	accepted := 1
	for _, a := range sendAll(t, requests) {
		switch a.Status {
		case es.StatusAccepted:
			accepted++
		case es.StatusUnchanged:
		default:
			t.Errorf("answered %s: %+v", a.Status, a.Error)
		}
	}
	// The tool waits until what it recorded, and so all before it, can be read.
	c.must(0, "assign", "b11", "b11", "--package", "b11@last")
	accepted++
	history := read[[]change](c, "history", "assignment", "b11", "b11")
	if len(history) != accepted {
		t.Errorf("%d values of history for %d accepted commands", len(history), accepted)
	}
	for i := 1; i < len(history); i++ {
		if !history[i].Value.Stands() && !history[i-1].Value.Stands() {
			t.Errorf("event %d ends what event %d has ended", history[i].Sequence, history[i-1].Sequence)
		}
	}
	if got := read[chain.Assignment](c, "get", "assignment", "b11", "b11"); !got.Stands() || got.Package.Version != "last" {
		t.Errorf("it reads %+v, want what was assigned last", got)
	}
}

// TestC06 is case C06: 70 assignments to one key.
func TestC06(t *testing.T) {
	t.Parallel()
	c := on(t, shared)
	c.node("c06")
	c.module("c06")
	client := dispatch.NewClient(connect(t, shared.url))
	for i := range 69 {
		if a, err := client.Send(t.Context(), assign("c06", "c06", fmt.Sprint(i), dispatch.Options{})); err != nil || a.Status != es.StatusAccepted {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	c.must(0, "assign", "c06", "c06", "--package", "c06@69") // waits until it can be read
	history := versionsOf(read[[]change](c, "history", "assignment", "c06", "c06"))
	if len(history) != 70 {
		t.Fatalf("%d values of history, want 70", len(history))
	}
	for i, v := range history {
		if v != fmt.Sprint(i) {
			t.Errorf("value %d has version %s", i, v)
		}
	}
}

// TestF09 is case F09: each field of each command in turn is null, 1, "x", [], {}.
func TestF09(t *testing.T) {
	t.Parallel()
	c := on(t, shared)
	nc := connect(t, shared.url)
	tried := 0
	for _, v := range knownVerbs() {
		for _, f := range v.Fields {
			for _, value := range []string{"null", "1", `"x"`, "[]", "{}"} {
				body := fmt.Sprintf(`{%q:%s}`, f.Name, value)
				m, err := nc.Request(dispatch.CommandPrefix+"."+v.Aggregate+"."+v.Verb, []byte(body), waitLimit)
				if err != nil {
					t.Fatalf("%s %s %s: %v", v.Aggregate, v.Verb, body, err)
				}
				var a es.Answer
				if err := json.Unmarshal(m.Data, &a); err != nil {
					t.Fatalf("%s %s %s: %s: %v", v.Aggregate, v.Verb, body, m.Data, err)
				}
				tried++
				// A text may be "x"; then what the command needs besides is missing, or it is a rule's turn.
				if a.Status != es.StatusInvalid && value != `"x"` {
					t.Errorf("%s %s %s: %s %+v, want invalid", v.Aggregate, v.Verb, body, a.Status, a.Error)
				}
				if a.Status == es.StatusInvalid && (a.Error == nil || a.Error.Code == "internal" || a.Error.Message == "") {
					t.Errorf("%s %s %s: %+v says too little", v.Aggregate, v.Verb, body, a.Error)
				}
			}
		}
	}
	if tried < 300 {
		t.Errorf("only %d bodies were tried", tried)
	}
	c.must(0, "get", "nodes") // the process lives
}

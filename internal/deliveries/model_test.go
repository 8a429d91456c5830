package deliveries

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/events"
)

// model is a writer as an import sees one: versions, effective times, first answers, and the rules that matter here. It
// can be busy, lose answers before and after the deed, and be killed.
type model struct {
	mu   sync.Mutex
	keys map[es.Ref]*modelKey
	ids  map[string]es.Answer
	// order lists what was recorded, as "key: what".
	order    []string
	sequence uint64
	requests int
	// now is the latest time it takes; zero means any.
	now time.Time
}

type modelKey struct {
	version uint64
	latest  time.Time
	what    string
	history []string
}

func newModel() *model { return &model{keys: map[es.Ref]*modelKey{}, ids: map[string]es.Answer{}} }

func (m *model) do(r dispatch.Request) es.Answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests++
	var b struct {
		Node, Module, Name string
		Package            *events.Package
	}
	if err := json.Unmarshal(r.Body, &b); err != nil {
		panic(err)
	}
	ref := es.Ref{Aggregate: r.Aggregate, Key: es.Key(b.Node)}
	switch r.Aggregate {
	case events.AggregateAssignment:
		ref.Key = es.Key(b.Node, b.Module)
	case events.AggregateModule:
		ref.Key = es.Key(b.Module)
	case events.AggregateFreeze:
		ref.Key = es.Key(b.Name)
	}
	k := m.keys[ref]
	if k == nil {
		k = &modelKey{}
		m.keys[ref] = k
	}
	refuse := func(s es.Status, code string) es.Answer {
		return es.Answer{Status: s, Version: k.version, Error: &es.AnswerError{Code: code, Message: code}}
	}
	id := fmt.Sprint(ref, r.ID)
	if a, ok := m.ids[id]; ok {
		a.Repeated = true
		return a
	}
	if r.Expected != nil && *r.Expected != k.version {
		return refuse(es.StatusConflict, "version")
	}
	if !m.now.IsZero() && r.Effective.After(m.now) {
		return refuse(es.StatusInvalid, "effective-ahead")
	}
	if r.Effective.Before(k.latest) {
		return refuse(es.StatusRejected, "effective-behind")
	}
	what := r.Verb
	if b.Package != nil {
		what = b.Package.Version
	}
	switch {
	case r.Aggregate == events.AggregateAssignment && m.keys[es.Ref{Aggregate: events.AggregateNode, Key: es.Key(b.Node)}] == nil:
		return refuse(es.StatusRejected, "unknown-node")
	case r.Aggregate == events.AggregateAssignment && m.keys[es.Ref{Aggregate: events.AggregateModule, Key: es.Key(b.Module)}] == nil:
		return refuse(es.StatusRejected, "unknown-module")
	case what == "forbidden":
		return refuse(es.StatusRejected, "forbidden")
	case what == "unassign" && k.version == 0:
		return refuse(es.StatusRejected, "not-assigned")
	case what == "lift" && k.version == 0:
		return refuse(es.StatusRejected, "unknown-freeze")
	case what == "declare" && k.what == what:
		return refuse(es.StatusRejected, "declared")
	case what == k.what:
		return es.Answer{Status: es.StatusUnchanged, Version: k.version}
	}
	k.version++
	k.latest, k.what = r.Effective, what
	k.history = append(k.history, what)
	m.sequence++
	m.order = append(m.order, fmt.Sprintf("%s %s: %s", ref.Aggregate, ref.Key, what))
	a := es.Answer{Status: es.StatusAccepted, Version: k.version, Sequence: m.sequence}
	m.ids[id] = a
	return a
}

// history is what was recorded of an assignment.
func (m *model) history(environment, app string) []string {
	if k := m.keys[es.Ref{Aggregate: events.AggregateAssignment, Key: es.Key(environment, app)}]; k != nil {
		return k.history
	}
	return nil
}

// bus is a Poster over a model. It takes commands in order and answers in any order.
type bus struct {
	model *model
	// trouble gives what happens to the n-th command; nil means nothing.
	trouble func(n int) trouble
	// killAt ends the import with the n-th command; what was posted may have been done. 0 means never.
	killAt int
	kill   context.CancelFunc
	n      int
	// flying and most count the commands without an answer.
	mu           sync.Mutex
	flying, most int
	random       *rand.Rand
	held         []func()
}

type trouble int

const (
	none    trouble = iota
	busy            // not done, and says so
	lost            // not done, no answer
	mute            // done, no answer
	unclear         // done, but says it is unknown
)

func (b *bus) Post(r dispatch.Request, done func(es.Answer, error)) {
	n := b.n
	b.n++
	if b.killAt > 0 && n == b.killAt {
		b.kill()
	}
	what := none
	if b.trouble != nil {
		what = b.trouble(n)
	}
	var a es.Answer
	var err error
	switch what {
	case busy:
		a = es.Answer{Status: es.StatusBusy, Error: &es.AnswerError{Code: "queue-full", Message: "queue full"}}
	case lost:
		err = errors.Mark(errors.New("lost"), dispatch.ErrTimeout)
	default:
		a = b.model.do(r)
		if what == mute {
			a, err = es.Answer{}, errors.Mark(errors.New("mute"), dispatch.ErrTimeout)
		} else if what == unclear {
			a = es.Answer{Status: es.StatusUnknown, Error: &es.AnswerError{Code: "unclear", Message: "unclear"}}
		}
	}
	b.mu.Lock()
	b.flying++
	b.most = max(b.most, b.flying)
	b.held = append(b.held, func() { done(a, err) })
	b.mu.Unlock()
}

// answer gives the answers back, in random order, until the context ends.
func (b *bus) answer(ctx context.Context) {
	for ctx.Err() == nil {
		b.mu.Lock()
		var next func()
		if n := len(b.held); n > 0 {
			i := b.random.IntN(n)
			next = b.held[i]
			b.held = append(b.held[:i], b.held[i+1:]...)
			b.flying--
		}
		b.mu.Unlock()
		if next != nil {
			next()
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Microsecond):
		}
	}
}

package dispatch_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/estest"
	"catenary/es/memstore"
	"catenary/es/natsstore"
	"catenary/internal/topology"
)

var historySeed = flag.Uint64("history-seed", 0, "seed of the histories; 0 takes a new one")

// Patience of the writers and the clients of a history: short, so that there is much that is not known.
const (
	writerPatience = 100 * time.Millisecond
	clientPatience = 150 * time.Millisecond
	// busyPause is how long a client waits that is told busy, callLimit when it gives up in any case.
	busyPause = 3 * time.Millisecond
	callLimit = 3 * time.Second
	// playLimit ends a history that does not get on, such as over a store that lies.
	playLimit = 3 * time.Second
)

// theatre is where a history happens: several writers at work at once over one store, and what clients were told.
type theatre struct {
	t *testing.T
	// open gives the store to one process, and what ends that.
	open func() (es.Store, func())
	// broken says that the store is a liar: writers may end by what they find, and nothing else needs to go wrong.
	broken bool
	seed   uint64
	start  time.Time

	// truth is the store without faults.
	truth es.Store

	mu      sync.Mutex
	lives   []*life
	history []porcupine.Operation
	answers []es.Answer
	// unknown are the calls whose senders do not know whether they are done.
	unknown map[string]porcupine.Operation
}

// life is one writer from its start to its end.
type life struct {
	process *process
	writer  *dispatch.Writer
	end     func()
}

// raise starts a writer in a place.
func (th *theatre) raise(place int, random *rand.Rand) {
	store, closeStore := th.open()
	l := &life{process: &process{Store: store, calm: th.broken, random: rand.New(rand.NewPCG(random.Uint64(), 1))}}
	w, err := dispatch.NewWriter(dispatch.Config{
		Store: l.process, Registry: ledgerRegistry(), NewModel: newLedger, Start: begin{}, Now: time.Now, NewID: newID, Actor: "a-writer",
		Patience: writerPatience,
	})
	if err != nil {
		th.t.Error(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	l.writer = w
	l.end = func() {
		cancel()
		if err := <-ended; err != nil && !th.broken {
			th.t.Errorf("seed %d: a writer ended: %v", th.seed, err)
		}
		l.process.waiting.Wait()
		closeStore()
	}
	th.mu.Lock()
	defer th.mu.Unlock()
	th.lives[place] = l
}

// kill ends a writer as a crash does: it is told nothing more, and nothing it says is heard.
func (th *theatre) kill(place int) {
	l := th.life(place)
	l.process.dead.Store(true)
	l.end()
}

func (th *theatre) life(place int) *life {
	th.mu.Lock()
	defer th.mu.Unlock()
	return th.lives[place]
}

func (th *theatre) now() int64 { return int64(time.Since(th.start)) }

// try sends a command to one writer. It gives false when no answer came.
func (th *theatre) try(l *life, c es.Command) (es.Answer, bool) {
	answers := make(chan es.Answer, 1)
	l.writer.Submit(c, func(a es.Answer) {
		if !l.process.dead.Load() {
			answers <- a
		}
	})
	select {
	case a := <-answers:
		return a, true
	case <-time.After(clientPatience):
		return es.Answer{}, false
	}
}

// client makes calls one after another, each again and again with the same id until it is told what became of it. Now and
// then it gives up.
func (th *theatre) client(id, calls int, twoAccounts bool) {
	random := rand.New(rand.NewPCG(th.seed, uint64(id)+100))
	version := 0
	for n := 0; n < calls && th.now() < int64(playLimit); n++ {
		c := call{from: random.IntN(accounts), to: -1, amount: random.IntN(4), expected: -1}
		switch random.IntN(6) {
		case 0:
			c.to, c.amount = (c.from+1)%accounts, 1_000_000_000
		case 1:
			c.expected = version
		case 2, 3:
			if twoAccounts {
				c.to, c.amount = (c.from+1+random.IntN(accounts-1))%accounts, 1+random.IntN(6)
			}
		}
		p := pay{Account: name(c.from), Amount: c.amount}
		if c.to >= 0 {
			p.To = name(c.to)
		}
		command := command(p, func(cmd *es.Command) {
			cmd.Actor = name(id)
			if c.expected >= 0 {
				cmd.Expected = at(uint64(c.expected))
			}
		})
		version = th.perform(id, c, command, random)
	}
}

// perform makes one call and records what came of it. It gives the version that was told.
func (th *theatre) perform(id int, c call, command es.Command, random *rand.Rand) int {
	begun, open := th.now(), false // open: some try may still be done
	for {
		tried := th.now()
		a, ok := th.try(th.life(random.IntN(len(th.lives))), command)
		done := th.now()
		switch {
		case ok && a.Status == es.StatusBusy && done-begun < int64(callLimit) && done < int64(playLimit):
			<-time.After(busyPause)
			continue
		case !ok || a.Status == es.StatusUnknown || a.Status == es.StatusBusy:
			if open = true; random.IntN(10) > 0 && done-begun < int64(callLimit) && done < int64(playLimit) {
				continue
			}
		}
		th.mu.Lock()
		defer th.mu.Unlock()
		o := porcupine.Operation{ClientId: id, Input: c, Call: begun, Return: done}
		if ok && a.Status == es.StatusAccepted {
			// Whichever try did it: it is done once, at some time since the first.
			o.Output = told{status: a.Status, version: int(a.Version)}
			th.history, th.answers = append(th.history, o), append(th.answers, a)
			return int(a.Version)
		}
		if open {
			th.unknown[command.ID] = o
			th.answers = append(th.answers, es.Answer{Status: es.StatusUnknown, Command: command.ID})
		}
		if !ok || a.Status == es.StatusUnknown || a.Status == es.StatusBusy {
			return 0
		}
		// This try did nothing. An earlier one, which nobody has heard of, may do it yet.
		o.Call, o.Output = tried, told{status: a.Status, version: int(a.Version), message: message(a)}
		th.history = append(th.history, o)
		return int(a.Version)
	}
}

func message(a es.Answer) string {
	if a.Error == nil {
		return ""
	}
	return a.Error.Message
}

// settle asks the stream what the senders do not know. A writer's start comes first: it shuts out all that may be on its way.
func (th *theatre) settle() {
	start(th.t, th.truth)
	done := map[string]es.Event{}
	for _, e := range history(th.t, th.truth) {
		if _, ok := done[e.Command.ID]; !ok {
			done[e.Command.ID] = e
		}
	}
	for id, o := range th.unknown {
		// One that left no event was not done, and nobody was told anything: it is no part of the history.
		if e, ok := done[id]; ok {
			o.Output, o.Return = told{status: es.StatusAccepted, version: int(e.Version)}, forever
			th.history = append(th.history, o)
		}
	}
}

// story tells a history for people: the shortest time each call may have taken effect in, and what the stream holds.
func (th *theatre) story() string {
	var b strings.Builder
	slices.SortFunc(th.history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	for _, o := range th.history {
		fmt.Fprintf(&b, "%12d %20d client %d %+v → %+v\n", o.Call, o.Return, o.ClientId, o.Input, o.Output)
	}
	for _, e := range history(th.t, th.truth) {
		fmt.Fprintf(&b, "event %d: %s version %d %+v by %s\n", e.Sequence, e.Ref, e.Version, e.Data, e.Command.ID)
	}
	return b.String()
}

// play lets clients call while writers are killed, and gives the verdict of the checker.
func (th *theatre) play(clients, calls int, twoAccounts bool) porcupine.CheckResult {
	const writers = 3
	th.start, th.lives, th.unknown = time.Now(), make([]*life, writers), map[string]porcupine.Operation{}
	random := rand.New(rand.NewPCG(th.seed, 7))
	for place := range writers {
		th.raise(place, random)
	}
	var calling, killing sync.WaitGroup
	stop, kills := make(chan struct{}), atomic.Int64{}
	killing.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(5+random.IntN(40)) * time.Millisecond):
			}
			place := random.IntN(writers)
			th.kill(place)
			th.raise(place, random)
			kills.Add(1)
		}
	})
	for id := range clients {
		calling.Go(func() { th.client(id, calls, twoAccounts) })
	}
	calling.Wait()
	close(stop)
	killing.Wait()
	for _, l := range th.lives {
		l.end()
	}
	th.settle()
	th.t.Logf("seed %d: %d calls, %d of them not known, %d kills, %v", th.seed, len(th.history), len(th.unknown), kills.Load(), time.Since(th.start).Round(time.Millisecond))
	return porcupine.CheckOperationsTimeout(model(!twoAccounts), th.history, checkLimit)
}

// newSeed takes the flag's seed or a new one.
func newSeed() uint64 {
	if *historySeed != 0 {
		return *historySeed
	}
	return uint64(time.Now().UnixNano())
}

// TestHistories: whatever happens to three writers that are all at work at once, what clients are told can be put into one
// order that agrees with the clock, and the stream says the same.
func TestHistories(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct {
		name           string
		clients, calls int
		twoAccounts    bool
	}{
		{"commands over one account", 8, 50, false},
		{"commands over two accounts", 5, 40, true},
	} {
		for _, where := range []string{"in memory", "on a server"} {
			t.Run(kind.name+", "+where, func(t *testing.T) {
				t.Parallel()
				th := &theatre{t: t, seed: newSeed()}
				if where == "in memory" {
					th.truth = memory(t)
					th.open = func() (es.Store, func()) { return th.truth, func() {} }
				} else {
					th.truth, th.open = onServer(t)
				}
				if got := th.play(kind.clients, kind.calls, kind.twoAccounts); got != porcupine.Ok {
					t.Errorf("the history is %s; to repeat the faults: -history-seed %d\n%s", got, th.seed, th.story())
				}
				checkAnswers(t, history(t, th.truth), th.answers)
			})
		}
	}
}

// onServer gives a store on a real server, and what opens it once more for each process.
func onServer(t *testing.T) (es.Store, func() (es.Store, func())) {
	t.Helper()
	nc := estest.Server(t, false).Connect(t)
	if err := natsstore.Ensure(t.Context(), nc, topology.Options{EventStoreBytes: 100 << 20}); err != nil {
		t.Fatal(err)
	}
	open := func() (es.Store, func()) {
		s, err := natsstore.Open(context.Background(), nc, natsstore.Config{})
		if err != nil {
			t.Error(err)
			return memory(t), func() {}
		}
		return s, s.Close
	}
	truth, closeTruth := open()
	t.Cleanup(closeTruth)
	return truth, open
}

// TestHistoriesFindFaults: over a store that lies the checker finds it.
func TestHistoriesFindFaults(t *testing.T) {
	t.Parallel()
	for _, fault := range []struct {
		name string
		lie  func(l *liar, ctx context.Context, after es.Head, batch []es.Message) es.Pending
		old  uint64
		odds int
	}{
		{"what is acknowledged is not stored", ackUnstored, 0, 30},
		{"acknowledged before it is stored", ackEarly, 0, 15},
		{"the tail is read from a copy that lags", nil, 3, 2},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			var verdicts []porcupine.CheckResult
			for range 12 {
				store := memstore.New(memstore.Config{})
				th := &theatre{t: t, seed: newSeed(), broken: true, truth: store}
				th.open = func() (es.Store, func()) {
					return &liar{Store: store, lie: fault.lie, old: fault.old, odds: fault.odds, random: rand.New(rand.NewPCG(th.seed, 3))}, func() {}
				}
				verdicts = append(verdicts, th.play(6, 30, false))
				if slices.Contains(verdicts, porcupine.Illegal) {
					return
				}
			}
			t.Errorf("the checker says %v of histories over a store that lies", verdicts)
		})
	}
}

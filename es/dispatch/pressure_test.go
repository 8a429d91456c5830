package dispatch_test

import (
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/estest"
)

// answerLimit bounds the wait for an answer. It is reached only when something is broken.
const answerLimit = 30 * time.Second

// held is a store whose appends wait for a release, as those of a server that stands still do.
func held(t *testing.T) (*estest.Faulty, func()) {
	t.Helper()
	release := make(chan struct{})
	f := estest.NewFaulty(memory(t))
	// The writer's start passes.
	f.Script(estest.Pass, estest.HoldAck(release))
	return f, sync.OnceFunc(func() { close(release) })
}

// A writer that stands still lets nobody wait without an answer: who is in its hands is told unknown, who is still in the queue
// is told busy and is never done.
func TestNobodyWaitsInSilence(t *testing.T) {
	t.Parallel()
	store, release := held(t)
	b := start(t, store, func(c *dispatch.Config) { c.Patience = 80 * time.Millisecond; c.QueueLimit = 16 })
	defer release()
	store.BreakReads()
	answers := make(chan es.Answer, 3000)
	const senders, each = 5, 500
	var pending sync.WaitGroup
	for s := range senders {
		for range each {
			pending.Add(1)
			c := command(pay{Account: name(s), Amount: 1}, func(c *es.Command) { c.Actor = name(s) })
			b.writer.Submit(c, func(a es.Answer) { answers <- a; pending.Done() })
		}
	}
	done := make(chan struct{})
	go func() { pending.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(answerLimit):
		t.Fatalf("%d of %d were answered", len(answers), senders*each)
	}
	store.MendReads()
	release()
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	close(answers)
	var all []es.Answer
	for a := range answers {
		switch {
		case a.Status == es.StatusAccepted, a.Status == es.StatusUnknown:
		case a.Status != es.StatusBusy || a.Error.RetryAfterMillis == 0:
			t.Errorf("got %+v, %+v", a, a.Error)
		}
		all = append(all, a)
	}
	checkAnswers(t, history(t, b.store), all)
}

// A flood from one sender does not keep another from being served: the quiet one is never told busy, and waits for a few
// appends, not for the flood.
func TestNoisySenderDoesNotStarveOthers(t *testing.T) {
	t.Parallel()
	b := start(t, memory(t), func(c *dispatch.Config) { c.QueueLimit = 256 })
	var noisy sync.WaitGroup
	var busy, accepted atomic.Int64
	stop := make(chan struct{})
	noisy.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				noisy.Add(1)
				b.writer.Submit(command(pay{Account: "noisy", Amount: 1}, func(c *es.Command) { c.Actor = "noisy" }), func(a es.Answer) {
					if a.Status == es.StatusBusy {
						busy.Add(1)
					} else {
						accepted.Add(1)
					}
					noisy.Done()
				})
			}
		}
	})
	// It goes on until the flood has come, which may take its time on a busy machine.
	deadline := time.Now().Add(20 * time.Second)
	for i := 0; i < 50 || (busy.Load() == 0 || accepted.Load() == 0) && time.Now().Before(deadline); i++ {
		if a := b.send(command(pay{Account: "quiet", Amount: 1}, func(c *es.Command) { c.Actor = "quiet" })); a.Status != es.StatusAccepted || a.Version != uint64(i+1) {
			t.Errorf("the quiet sender got %+v, %+v", a, a.Error)
		}
	}
	close(stop)
	noisy.Wait()
	if busy.Load() == 0 || accepted.Load() == 0 {
		t.Errorf("the noisy sender got %d busy and %d accepted: that was no flood", busy.Load(), accepted.Load())
	}
}

// A command whose deadline passes while it waits is not done.
func TestDeadlinePassesInTheQueue(t *testing.T) {
	t.Parallel()
	c := &clock{now: time.Now()}
	store, release := held(t)
	b := start(t, store, func(cfg *dispatch.Config) { cfg.Now = c.Now })
	defer release()
	first := b.submit(command(pay{Account: "shop", Amount: 1}))
	// More events than one append takes: the writer takes in nothing new while the first append is on its way.
	var others []<-chan es.Answer
	for range es.MaxAppendMessages + 50 {
		others = append(others, b.submit(command(pay{Account: "shop", Amount: 1})))
	}
	late := b.submit(command(pay{Account: "late", Amount: 1}, func(cmd *es.Command) { cmd.Deadline = c.Now().Add(time.Second) }))
	c.Add(2 * time.Second)
	release()
	for _, p := range append(others, first) {
		if a := <-p; a.Status != es.StatusAccepted {
			t.Errorf("without a deadline: %+v", a)
		}
	}
	if a := <-late; a.Status != es.StatusExpired || a.Error.Code != "deadline-passed" {
		t.Errorf("with a passed deadline: %+v", a)
	}
}

func TestStoppedWriterAnswers(t *testing.T) {
	t.Parallel()
	b := start(t, memory(t))
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	if a := b.send(command(pay{Account: "shop", Amount: 1})); a.Status != es.StatusBusy || a.Error.Code != "stopping" {
		t.Errorf("got %+v, %+v", a, a.Error)
	}
}

// TestFlood sends 50,000 commands at once over the bus: every one gets an answer, and the stream holds exactly what was
// accepted.
func TestFlood(t *testing.T) {
	t.Parallel()
	c := serve(t)
	const flood = 50_000
	pipeline, err := dispatch.NewPipeline(c.conn, answerLimit)
	if err != nil {
		t.Fatal(err)
	}
	defer pipeline.Close()
	var mu sync.Mutex
	count := map[es.Status]int{}
	var answers []es.Answer
	var pending sync.WaitGroup
	for i := range flood {
		body, err := json.Marshal(pay{Account: name(i % 100), Amount: 1})
		if err != nil {
			t.Fatal(err)
		}
		pending.Add(1)
		pipeline.Post(dispatch.Request{Aggregate: "account", Verb: "pay", Body: body, Options: dispatch.Options{ID: newID()}}, func(a es.Answer, err error) {
			defer pending.Done()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("no answer: %v", err)
				return
			}
			count[a.Status]++
			answers = append(answers, a)
		})
	}
	pending.Wait()
	t.Logf("%v", count)
	if count[es.StatusAccepted] == 0 || count[es.StatusAccepted]+count[es.StatusBusy] != flood {
		t.Errorf("answers: %v", count)
	}
	if err := c.bench.stop(); err != nil {
		t.Fatal(err)
	}
	checkAnswers(t, history(t, c.bench.store), answers)
}

package dispatch_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"catenary/es"
	"catenary/es/dispatch"
)

func TestWriterAnswers(t *testing.T) {
	b := start(t, memory(t))
	tests := []struct {
		name    string
		command es.Command
		status  es.Status
		code    string
		version uint64
	}{
		{"a first event", command(pay{Account: "shop", Amount: 5}), es.StatusAccepted, "", 1},
		{"a second", command(pay{Account: "shop", Amount: 5}), es.StatusAccepted, "", 2},
		{"nothing to do", command(pay{Account: "shop"}), es.StatusUnchanged, "", 2},
		{"over two aggregates", command(pay{Account: "shop", To: "pay", Amount: 3}), es.StatusAccepted, "", 3},
		{"a rule refuses", command(pay{Account: "shop", To: "pay", Amount: 300}), es.StatusRejected, "overdrawn", 3},
		{"the expected version", command(pay{Account: "shop", Amount: 1}, func(c *es.Command) { c.Expected = at(3) }), es.StatusAccepted, "", 4},
		{"another version", command(pay{Account: "shop", Amount: 1}, func(c *es.Command) { c.Expected = at(3) }), es.StatusConflict, "version", 4},
		{"expected never to have been", command(pay{Account: "new", Amount: 1}, func(c *es.Command) { c.Expected = at(0) }), es.StatusAccepted, "", 1},
		{"a passed deadline", command(pay{Account: "shop", Amount: 1}, func(c *es.Command) { c.Deadline = time.Now().Add(-time.Second) }), es.StatusExpired, "deadline-passed", 0},
		{"a lost lease", command(pay{Account: "shop", Amount: 1}, func(c *es.Command) { c.Fence = 13 }), es.StatusFenced, "fenced", 4},
		{"a panic while deciding", command(pay{Account: "shop", Amount: 666}), es.StatusRejected, "internal", 0},
		{"an event nobody registered", command(pay{Account: "shop", Amount: 999}), es.StatusRejected, "internal", 0},
		{"an id that is none", command(pay{Account: "shop", Amount: 1}, func(c *es.Command) { c.ID = "7" }), es.StatusInvalid, "bad-id", 0},
		{"the nil id", command(pay{Account: "shop", Amount: 1}, func(c *es.Command) { c.ID = "00000000-0000-0000-0000-000000000000" }), es.StatusInvalid, "bad-id", 0},
		{"an id in capitals", command(pay{Account: "shop", Amount: 1}, func(c *es.Command) { c.ID = "0199A0C0-0000-7000-8000-000000000001" }), es.StatusInvalid, "bad-id", 0},
		{"an id of last year", command(pay{Account: "shop", Amount: 1}, func(c *es.Command) { c.ID = "01941f29-7c00-7000-8000-000000000001" }), es.StatusExpired, "id-expired", 0},
		{"an id of next century", command(pay{Account: "shop", Amount: 1}, func(c *es.Command) { c.ID = "03bb2cc3-d800-7000-8000-000000000001" }), es.StatusInvalid, "id-ahead", 0},
		{"and it goes on", command(pay{Account: "shop", Amount: 1}), es.StatusAccepted, "", 5},
	}
	var answers []es.Answer
	for _, tt := range tests {
		a := b.send(tt.command)
		answers = append(answers, a)
		code := ""
		if a.Error != nil {
			code = a.Error.Code
		}
		if a.Status != tt.status || code != tt.code || a.Version != tt.version {
			t.Errorf("%s: got %s %q version %d, want %s %q version %d (%+v)", tt.name, a.Status, code, a.Version, tt.status, tt.code, tt.version, a.Error)
		}
	}
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	checkAnswers(t, history(t, b.store), answers)
}

// Case B06, and the first half of exactly once: the same command again gets its first answer, also from another writer.
func TestRepeatGetsFirstAnswer(t *testing.T) {
	store := memory(t)
	b := start(t, store)
	for _, id := range []string{newID(), uuid.NewString(), "6ba7b810-9dad-81d1-80b4-00c04fd430c8"} {
		b.send(command(pay{Account: "shop", Amount: 10}))
		transfer := command(pay{Account: "shop", To: "pay", Amount: 3}, func(c *es.Command) { c.ID = id })
		first := b.send(transfer)
		if first.Status != es.StatusAccepted || first.Repeated || len(first.Events) != 2 {
			t.Fatalf("first answer: %+v", first)
		}
		b.send(command(pay{Account: "shop", Amount: 1}))

		other := transfer
		other.Digest = es.Digest([]byte("something else"))
		elsewhere := command(pay{Account: "else", Amount: 1}, func(c *es.Command) { c.ID = id })
		for _, restart := range []bool{false, true} {
			if restart {
				if err := b.stop(); err != nil {
					t.Fatal(err)
				}
				b = start(t, store)
			}
			again := b.send(transfer)
			if !again.Repeated {
				t.Error("the repeat is not marked")
			}
			again.Repeated = false
			if diff := cmp.Diff(first, again); diff != "" {
				t.Errorf("after restart %v the repeat got another answer (-first +repeat):\n%s", restart, diff)
			}
			if a := b.send(other); a.Status != es.StatusRejected || a.Error.Code != "id-reused" {
				t.Errorf("other body, same id: %+v", a)
			}
		}
		if a := b.send(elsewhere); a.Status != es.StatusAccepted {
			t.Errorf("the same id for another instance is another command: %+v", a)
		}
	}
}

func TestIDsAreForgottenOnlyPastTheirHorizon(t *testing.T) {
	c := &clock{now: time.Now()}
	b := start(t, memory(t), func(cfg *dispatch.Config) { cfg.Now = c.Now; cfg.Patience = 40 * time.Millisecond })
	timed := command(pay{Account: "shop", Amount: 1})
	timeless := command(pay{Account: "shop", Amount: 1}, func(c *es.Command) { c.ID = uuid.NewString() })
	b.send(timed)
	b.send(timeless)
	c.Add(29 * 24 * time.Hour)
	if a := b.send(timed); !a.Repeated {
		t.Errorf("after 29 days: %+v", a)
	}
	c.Add(2 * 24 * time.Hour)
	if a := b.send(timed); a.Status != es.StatusExpired {
		t.Errorf("after 31 days: %+v", a)
	}
	c.Add(365 * 24 * time.Hour)
	if a := b.send(timeless); !a.Repeated {
		t.Errorf("an id without a time, after a year: %+v", a)
	}
}

// Case B01: of 64 that expect the same version one is accepted.
func TestOneOfManyWithTheSameExpectedVersion(t *testing.T) {
	b := start(t, memory(t))
	b.send(command(pay{Account: "shop", Amount: 1}))
	var pending []<-chan es.Answer
	for range 64 {
		pending = append(pending, b.submit(command(pay{Account: "shop", Amount: 1}, func(c *es.Command) { c.Expected = at(1) })))
	}
	count := map[es.Status]int{}
	for _, p := range pending {
		a := <-p
		count[a.Status]++
		if a.Status == es.StatusConflict && (*a.Error.Expected != 1 || *a.Error.Current != 2) {
			t.Errorf("conflict: %+v", a.Error)
		}
	}
	if count[es.StatusAccepted] != 1 || count[es.StatusConflict] != 63 {
		t.Errorf("got %v", count)
	}
}

// Case B14, and writers made active by mistake: whatever they do to each other, nothing is lost, doubled or out of order.
func TestWritersAtOnce(t *testing.T) {
	store := memory(t)
	writers := []*bench{start(t, store), start(t, store), start(t, store)}
	var mu sync.Mutex
	var answers []es.Answer
	var group sync.WaitGroup
	for g := range 12 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(g)))
			for range 60 {
				p := pay{Account: name(random.IntN(4)), Amount: 1 + random.IntN(9)}
				if random.IntN(2) == 0 {
					p.To = name(4 + random.IntN(4))
				}
				c := command(p)
				a := writers[random.IntN(len(writers))].send(c)
				if random.IntN(4) == 0 { // a repeat, wherever it goes, changes nothing
					again := writers[random.IntN(len(writers))].send(c)
					if a.Status == es.StatusAccepted && (!again.Repeated || again.Sequence != a.Sequence) {
						t.Errorf("repeat of %+v got %+v", a, again)
					}
					if a.Status != es.StatusAccepted {
						a = again
					}
				}
				mu.Lock()
				answers = append(answers, a)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	checkAnswers(t, history(t, store), answers)
}

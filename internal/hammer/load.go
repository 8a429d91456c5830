package hammer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// Load says how commands are sent. It is bounded by Commands, by For, or by both.
type Load struct {
	// Callers send at the same time. Zero means 1.
	Callers int
	// InFlight is how many commands of one caller wait for their answer. Zero means 1: each caller waits for its answer before it
	// sends the next command.
	InFlight int
	// Commands is how many are sent in all. Zero means no limit.
	Commands int
	// For is how long new ones are sent. Zero means no limit.
	For time.Duration
	// Rate is how many are sent a second, by all callers together and at even distances. Zero means as fast as they are answered.
	Rate float64
	// Next gives a command. It is called by all callers at once.
	Next func() es.Payload
}

// Result is what came of a load.
type Result struct {
	// Answers counts by status.
	Answers map[es.Status]int
	// Failed counts the commands that got no answer; Failure is why the first of them did not.
	Failed  int
	Failure error
	// Refusal is why the first command that was answered, but not accepted, was not.
	Refusal *es.AnswerError
	// Took is the time from the first command to the last answer.
	Took time.Duration
	// Waited has the time each command waited for its answer.
	Waited *Latency
}

// Accepted is how many commands were accepted.
func (r Result) Accepted() int { return r.Answers[es.StatusAccepted] }

// Rate is how many commands were accepted a second.
func (r Result) Rate() float64 {
	if r.Took <= 0 {
		return 0
	}
	return float64(r.Accepted()) / r.Took.Seconds()
}

// Err gives an error when any command was not accepted.
func (r Result) Err() error {
	if r.Failed > 0 {
		return errors.Wrapf(r.Failure, "%d commands got no answer", r.Failed)
	}
	for status, n := range r.Answers {
		if status != es.StatusAccepted {
			why := "no reason given"
			if r.Refusal != nil {
				why = r.Refusal.Code + ": " + r.Refusal.Message
			}
			return errors.Newf("%d commands were answered %s (%s)", n, status, why)
		}
	}
	return nil
}

// Run sends commands until a bound of the load is reached or the context ends, and waits for all their answers. It gives an
// error for a load without bounds or commands, before anything is sent.
func Run(ctx context.Context, s Sender, l Load) (Result, error) {
	if l.Next == nil || l.Commands <= 0 && l.For <= 0 {
		return Result{}, errors.New("load: say what is sent, and how many commands or for how long")
	}
	if l.For > 0 {
		bounded, cancel := context.WithTimeout(ctx, l.For)
		defer cancel()
		ctx = bounded
	}
	r := &running{load: l, sender: s, begun: time.Now(), result: Result{Answers: map[es.Status]int{}, Waited: &Latency{}}}
	var callers sync.WaitGroup
	for range max(l.Callers, 1) {
		callers.Go(func() { r.call(ctx) })
	}
	callers.Wait()
	r.result.Took = time.Since(r.begun)
	return r.result, nil
}

// running is a load under way.
type running struct {
	load   Load
	sender Sender
	begun  time.Time
	sent   atomic.Int64

	mu     sync.Mutex
	result Result
}

// call is one caller: it sends while it has room, and returns when it has all its answers.
func (r *running) call(ctx context.Context) {
	inFlight := max(r.load.InFlight, 1)
	room := make(chan struct{}, inFlight)
	for {
		room <- struct{}{}
		// Asked only with room, so that no command is counted that waits behind another caller's.
		if ctx.Err() != nil || !r.more(ctx) {
			break
		}
		begun := time.Now()
		r.sender.Send(r.load.Next(), func(a es.Answer, err error) {
			r.answered(time.Since(begun), a, err)
			<-room
		})
	}
	for range inFlight - 1 {
		room <- struct{}{}
	}
}

// more says whether one more command is to be sent, when it is due.
func (r *running) more(ctx context.Context) bool {
	n := r.sent.Add(1)
	if r.load.Commands > 0 && n > int64(r.load.Commands) {
		return false
	}
	if r.load.Rate <= 0 {
		return true
	}
	due := time.NewTimer(time.Until(r.begun.Add(time.Duration(float64(n-1) / r.load.Rate * float64(time.Second)))))
	defer due.Stop()
	select {
	case <-due.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *running) answered(waited time.Duration, a es.Answer, err error) {
	r.result.Waited.Add(waited)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if r.result.Failed++; r.result.Failure == nil {
			r.result.Failure = err
		}
		return
	}
	r.result.Answers[a.Status]++
	if a.Status != es.StatusAccepted && r.result.Refusal == nil {
		r.result.Refusal = a.Error
	}
}

package dispatch

import (
	"context"
	"time"

	"catenary/es"
)

// Submit queues a command that is complete, in the share of the one who sent it; see [Writer.Offer].
func (w *Writer) Submit(c es.Command, answer func(es.Answer)) {
	w.Offer(Submission{Command: c, Sender: c.Actor, Answer: answer})
}

// Offer queues a command and returns at once; its answer is called exactly once, maybe before Offer returns. A command that
// finds the queue full, its sender's share used up or the writer stopped is answered [es.StatusBusy] at once, and so is one
// that has waited in the queue for as long as [Config.Patience]: it was not done, and it will not be.
func (w *Writer) Offer(s Submission) {
	if r := w.waitingRoom.push(s, time.Now()); r != nil {
		s.Answer(refusal(s.Command, r))
	}
}

// Waiting counts the commands that wait to be taken in.
func (w *Writer) Waiting() int { return w.waitingRoom.waiting() }

// feed hands what waits in the queue to the writer, one after another. It reads each command first, beside the writer's own
// work. Nothing gathers between the queue and the writer: what is not taken yet is still in its sender's turn.
func (w *Writer) feed(ctx context.Context) {
	patience := time.NewTimer(w.cfg.Patience)
	defer patience.Stop()
	for {
		item, ok := w.waitingRoom.next(ctx)
		if !ok {
			return
		}
		c := item.Command
		if item.Read != nil {
			var err error
			if c, err = item.Read(); err != nil {
				item.Answer(refusedAs(c, err, w.cfg.Logger))
				continue
			}
		}
		j := &job{command: c, answer: item.Answer}
		select {
		case w.queue <- j:
			continue
		default:
		}
		patience.Reset(time.Until(item.since.Add(w.cfg.Patience)))
		select {
		case w.queue <- j:
		case <-patience.C:
			j.reply(refusal(c, tooSlow(w.cfg.Patience)))
		case <-ctx.Done():
			j.reply(refusal(c, stopping()))
		}
	}
}

// sweep answers those whose patience ends while they wait in the queue, also while the writer itself is held up.
func (w *Writer) sweep(ctx context.Context) {
	tick := time.NewTicker(w.cfg.Patience / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			for _, item := range w.waitingRoom.overdue(now.Add(-w.cfg.Patience)) {
				item.Answer(refusal(item.Command, tooSlow(w.cfg.Patience)))
			}
		}
	}
}

func tooSlow(patience time.Duration) *es.Refusal {
	return busy("queue-slow", "the command waited for "+patience.String()+" and was not begun; it was not done", min(patience, maxRetryAfter))
}

func stopping() *es.Refusal {
	return busy("stopping", "the writer is stopping; the command was not done", minRetryAfter)
}

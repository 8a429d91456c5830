package natsstore

import (
	"context"
	"slices"
	"sync"

	"catenary/es"
)

const (
	// relayRecent is how many of the newest messages a relay remembers: who is no further behind than that goes on with it.
	relayRecent = 512
	// relayAhead is how many messages a follower of a relay may be behind it. One that is slower reads on its own again.
	relayAhead = 2 * relayRecent
)

// relay gives what is new in the stream to all that follow it, and reads it once. Without it each follower has a consumer of its own: the
// server sends each event to each, and the client reads its headers as often.
//
// It runs while two or more follow the stream's end. A follower of it waits for no other: one that takes too little loses its place,
// reads on its own, and comes back when it has caught up.
type relay struct {
	store *Store

	mu        sync.Mutex
	following int // who follows the stream, with the relay or on their own
	running   *relaying
}

// relaying is a relay while it runs. The relay's lock guards it.
type relaying struct {
	places []chan es.Message // each is closed when its follower has to go on alone
	recent []es.Message      // the newest messages, the last one last
	after  uint64            // the message before the first of the recent ones
	end    context.CancelFunc
	ended  chan struct{}
}

// begin notes a further follower.
func (l *relay) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.following++
}

// finish notes that a follower has ended.
func (l *relay) finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.following--
}

// join gives a place at the relay to a follower that has everything up to a message, and nil when it has to read on its own: when the relay is
// further. A relay that does not run is started when that is asked for, and there is another follower to share it with.
func (l *relay) join(last uint64, start bool) chan es.Message {
	l.mu.Lock()
	defer l.mu.Unlock()
	run := l.running
	if run == nil {
		if !start || l.following < 2 {
			return nil
		}
		ctx, end := context.WithCancel(context.Background())
		run = &relaying{after: last, end: end, ended: make(chan struct{})}
		l.running = run
		go l.run(ctx, run)
	}
	if last < run.after {
		return nil
	}
	place := make(chan es.Message, relayAhead)
	for _, m := range run.recent {
		if m.Sequence > last {
			place <- m
		}
	}
	run.places = append(run.places, place)
	return place
}

// leave ends a place, if it was not lost before. Nothing of the relay is left after the last one.
func (l *relay) leave(place chan es.Message) {
	l.mu.Lock()
	run := l.running
	if run != nil {
		run.drop(place)
	}
	if run == nil || len(run.places) > 0 {
		l.mu.Unlock()
		return
	}
	l.running = nil
	l.mu.Unlock()
	run.end()
	<-run.ended
}

// drop takes a place away.
func (r *relaying) drop(place chan es.Message) {
	if at := slices.Index(r.places, place); at >= 0 {
		r.places = slices.Delete(r.places, at, at+1)
		close(place)
	}
}

// run reads, until the relay is ended or the connection closed for good: every follower learns the reason by reading on its own.
func (l *relay) run(ctx context.Context, run *relaying) {
	defer close(run.ended)
	r := l.store.newReader(ctx, "", run.after, 0)
	defer r.close()
	for {
		m, err := r.next()
		if err != nil {
			break
		}
		l.hand(run, m)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == run {
		l.running = nil
	}
	for len(run.places) > 0 {
		run.drop(run.places[0])
	}
}

// hand gives a message to all that have a place.
func (l *relay) hand(run *relaying, m es.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(run.recent) == 2*relayRecent {
		run.after = run.recent[relayRecent-1].Sequence
		run.recent = append(make([]es.Message, 0, 2*relayRecent), run.recent[relayRecent:]...)
	}
	run.recent = append(run.recent, m)
	for _, place := range slices.Backward(run.places) { // backwards, since one may go
		select {
		case place <- m:
		default:
			run.drop(place)
		}
	}
}

package dispatch

import "catenary/es"

// Durability says what an acknowledged append has survived.
type Durability struct {
	// Fsync is set when the server syncs every write to disk before it answers.
	Fsync bool
	// Replicas is the number of servers that hold the stream; 0 means 1.
	Replicas int
}

// pipelines says whether the store takes the next append while one is in flight: only one server compares the last event
// by itself (see [es.Store]).
func (d Durability) pipelines() bool { return d.Replicas <= 1 }

// mode is how decided commands go to the store.
type mode int

const (
	// hold waits: for an append in flight, or for commands that can share the next one.
	hold mode = iota
	// single sends one command's events as an append of their own.
	single
	// batch sends as many commands as fit as one atomic append.
	batch
)

// maxInFlight bounds the messages in flight: enough to keep one server busy over a network, and few enough to be decided
// again in a moment when one of them fails.
const maxInFlight = 1024

// load is what waits and what is on its way.
type load struct {
	commands int  // decided, not handed over
	messages int  // their events
	several  bool // one of the commands has several events: only a batch keeps them together
	queued   int  // commands not decided yet
	inFlight int  // messages handed over, not answered
	// expected is how many messages are likely to come in a moment, besides those that are there: their senders have just
	// got their last answer.
	expected int
	// pipelines is set when the store takes single messages while others are in flight.
	pipelines bool
}

// choose picks the cheapest append for a load. What comes in next will meet the choice again, so it looks at all that
// could share an append, were each of them to wait: singles go out at once and in a pipeline where they cost less than one
// batch for all would; else all wait for what is in flight, and then share a batch.
func choose(p prices, l load) mode {
	alone := func(messages int) bool { return !l.several && p.singles(messages) <= p.batched(messages) }
	switch {
	case l.commands == 0, l.inFlight >= maxInFlight:
		return hold
	case (l.inFlight == 0 || l.pipelines) && alone(max(l.messages+l.queued+l.inFlight, l.expected)):
		return single
	case l.inFlight > 0:
		return hold
	case l.messages < es.MaxAppendMessages && (l.queued > 0 || l.messages < l.expected):
		return hold
	case l.commands == 1, alone(l.messages):
		return single
	}
	return batch
}

// fits says how many of the decided commands go into one atomic append.
func fits(jobs []*job) int {
	n, messages := 0, 0
	for _, j := range jobs {
		if messages += len(j.messages); n > 0 && (messages > es.MaxAppendMessages || j.apart) {
			break
		}
		n++
	}
	return n
}

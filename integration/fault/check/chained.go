package check

import "catenary/es"

// Chained judges I3, as far as the stream itself tells. What checkpoints say of it is judged by who reads them.
func Chained(ev Evidence) []Violation {
	f := &findings{invariant: "I3"}
	var head es.Head
	for _, m := range ev.Messages {
		next, err := head.Verify(m)
		if err != nil {
			f.say("after event %d: %v", head.Sequence, err)
			break
		}
		head = next
	}
	return f.list
}

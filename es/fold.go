package es

import "iter"

// Fold applies events to a state in order.
func Fold[S, E any](state S, evolve func(S, E) S, events ...E) S {
	for _, e := range events {
		state = evolve(state, e)
	}
	return state
}

// VerifyChain passes messages through and checks that they follow the head without a hole, a change or a swap. It ends
// with an error marked [ErrBrokenChain] at the first message that does not. The head is moved as the messages pass.
func VerifyChain(head *Head, messages iter.Seq2[Message, error]) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for m, err := range messages {
			if err == nil {
				var next Head
				if next, err = head.Verify(m); err == nil {
					*head = next
				}
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// Package pull takes the messages that a JetStream consumer gives, one after another.
//
// It owns the questions for more, which go out before the messages at hand have run out, the bounds on what is under way, and the
// notice that the consumer is gone, silent, or has lost a message on the way. It leaves to others which consumer that is, what to
// do when it is lost, and what is in a message.
//
// It is what [jetstream.Consumer] gives, at a third of the cost for each message: that one makes a timer for each, reads the headers
// for what no consumer of ours has, and describes each delivery in ten fields of which two are asked for.
//
// Invariants:
//   - Messages come in the order of the consumer's count, without a gap, or an error ends them.
//   - What is asked for and not taken is bounded, in messages and in bytes.
//   - Nothing is left behind after Stop: no subscription, no goroutine, no timer.
package pull

// Package streams makes JetStream streams, and tells whether one that exists keeps what it must.
//
// It owns how often the server is asked, the rules that every stream of ours is held to, and what may be changed in one that exists: it is
// given more room, and nothing is taken from it. What a stream looks like is left to internal/topology, the one list of them, and what
// kind of error it is when the server refuses to whoever makes it.
package streams

// Package streams makes JetStream streams.
//
// It owns how often the server is asked. What a stream looks like, and whether one that exists is safe to use, is left to
// whoever makes it: see internal/topology for the one list.
package streams

// Package parts answers requests on the bus in as many parts as an answer needs, and asks for such answers.
//
// It owns the micro service with its bound on the requests at work, the signs of life while one takes long, and the client that reads
// parts until the last one. It leaves what is asked, and which errors travel under which codes, to its users.
//
// Invariants: every request that is answered at all gets just one last part. After the last part nothing comes. A client never waits for
// an answer that was lost with its connection.
package parts

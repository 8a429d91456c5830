// Package serving is what services on the bus have in common that answer questions beside taking them in.
//
// It owns how many are answered at once, that those under way are waited for at the end, and how an answer is sent when its request was
// handed back long ago. It leaves what is asked and answered, its form and its errors to the services.
//
// # Invariants
//
//   - A micro service hands over one request at a time, so none is answered on the subscription's own goroutine.
//   - What has begun ends before [Group.Wait] returns; nothing begins after [Group.Close].
package serving

package dispatch

import "github.com/cockroachdb/errors"

// Why no answer came.
var (
	// ErrNoWriter means that nobody listens for commands. Nothing was done.
	ErrNoWriter = errors.New("no writer listens")
	// ErrTimeout means that no answer came in time. The command may have been done; send it again with the same id.
	ErrTimeout = errors.New("no answer in time")
	// ErrDenied means that the connection may not send this command. Nothing was done.
	ErrDenied = errors.New("not allowed")
	// ErrTooLarge means that the body is over the bus's limit, which the error names. Nothing was done.
	ErrTooLarge = errors.New("command too large")
)

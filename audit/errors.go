package audit

import "github.com/cockroachdb/errors"

// Why a question has no answer.
var (
	// ErrNoService means that nobody answers queries: no projector is running, or the one that was asked stops.
	ErrNoService = errors.New("no projector answers queries")
	// ErrTimeout means that the answer, or a part of it, did not come in time. Ask again.
	ErrTimeout = errors.New("no answer to the query in time")
	// ErrIncomplete means that a part of the answer was lost on the way. Ask again.
	ErrIncomplete = errors.New("a part of the answer was lost")
	// ErrInvalid means that the question is malformed; the message names the field.
	ErrInvalid = errors.New("malformed query")
	// ErrBusy means that the service answers as many questions as it can. Ask again later.
	ErrBusy = errors.New("the query service is busy")
	// ErrFailed means that the service could not find the answer; the message is the service's.
	ErrFailed = errors.New("the query failed")
)

// Codes of the error header of micro services.
const (
	codeInvalid = "400"
	codeBusy    = "429"
	codeFailed  = "500"
	codeStops   = "503"
)

// codeOf gives the code an error travels under.
func codeOf(err error) string {
	switch {
	case errors.Is(err, ErrInvalid):
		return codeInvalid
	case errors.Is(err, ErrBusy):
		return codeBusy
	case errors.Is(err, ErrNoService):
		return codeStops
	default:
		return codeFailed
	}
}

// errorOf gives the error that travelled under a code.
func errorOf(code, description string) error {
	kind := ErrFailed
	switch code {
	case codeInvalid:
		kind = ErrInvalid
	case codeBusy:
		kind = ErrBusy
	case codeStops:
		kind = ErrNoService
	}
	return errors.Mark(errors.Newf("%s", description), kind)
}

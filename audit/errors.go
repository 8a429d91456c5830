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
	// ErrNotFound means that nothing is known of what was asked for.
	ErrNotFound = errors.New("nothing is known of it")
	// ErrNoStore means that the projector keeps no audit store, so that questions about the past have no answer there.
	ErrNoStore = errors.New("the projector keeps no audit store")
	// ErrStoreBehind means that the audit store is being built and has not caught up. Ask again later.
	ErrStoreBehind = errors.New("the audit store has not caught up")
	// ErrStoreStopped means that the audit store has stopped, and that there is no file of it to ask. The message says why; asking again
	// does not help.
	ErrStoreStopped = errors.New("the audit store has stopped")
	// ErrTooLong means that a statement took longer than it may.
	ErrTooLong = errors.New("the statement takes too long")
	// ErrFailed means that the service could not find the answer; the message is the service's.
	ErrFailed = errors.New("the query failed")
)

// Codes of the error header of micro services.
const (
	codeInvalid = "400"
	codeUnknown = "404"
	codeTooLong = "408"
	codeStopped = "424"
	codeBehind  = "425"
	codeBusy    = "429"
	codeFailed  = "500"
	codeNoStore = "501"
	codeStops   = "503"
)

// kinds pairs the reasons with the codes they travel under. It is never changed.
var kinds = []struct {
	code string
	kind error
}{
	{codeInvalid, ErrInvalid}, {codeUnknown, ErrNotFound}, {codeTooLong, ErrTooLong}, {codeStopped, ErrStoreStopped}, {codeBehind, ErrStoreBehind},
	{codeBusy, ErrBusy}, {codeNoStore, ErrNoStore}, {codeStops, ErrNoService}, {codeFailed, ErrFailed},
}

// codeOf gives the code an error travels under.
func codeOf(err error) string {
	for _, k := range kinds {
		if errors.Is(err, k.kind) {
			return k.code
		}
	}
	return codeFailed
}

// errorOf gives the error that travelled under a code, with its hints.
func errorOf(code, description string, hints []string) error {
	err := errors.Newf("%s", description)
	for _, hint := range hints {
		err = errors.WithHint(err, hint)
	}
	for _, k := range kinds {
		if k.code == code {
			return errors.Mark(err, k.kind)
		}
	}
	return errors.Mark(err, ErrFailed)
}

func markIncomplete(err error, name string) error {
	if err == nil {
		return nil
	}
	return errors.Mark(errors.Wrapf(err, "query %s: the answer can't be read", name), ErrIncomplete)
}

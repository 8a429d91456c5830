package deliveries

import (
	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/events"
)

// Codes of answers that mean something special to an import.
const (
	codeEffectiveBehind = "effective-behind"
	codeRegistered      = "registered"
	codeNotAssigned     = "not-assigned"
	codeUnknownFreeze   = "unknown-freeze"
	codeDeclared        = "declared"
	// codeOvertaken is the import's own.
	codeOvertaken = "overtaken"
)

// judge says what an answer, or the want of one, means for a step that was sent, or only asked after. It gives an error when going on makes no sense.
func judge(s step, asking bool, a es.Answer, err error) (outcome, es.AnswerError, error) {
	switch {
	case errors.Is(err, dispatch.ErrDenied):
		return open, es.AnswerError{}, err
	case errors.Is(err, dispatch.ErrTooLarge):
		return refused, es.AnswerError{Code: "too-large", Message: err.Error()}, nil
	case err != nil:
		return again, es.AnswerError{Message: err.Error()}, nil
	}
	var why es.AnswerError
	if a.Error != nil {
		why = *a.Error
	}
	switch a.Status {
	case es.StatusAccepted:
		if a.Repeated {
			return repeated, why, nil
		}
		return accepted, why, nil
	case es.StatusUnchanged:
		return unchanged, why, nil
	case es.StatusBusy, es.StatusUnknown:
		return again, why, nil
	case es.StatusConflict:
		if asking {
			return absent, why, nil
		}
		return again, why, nil
	case es.StatusDenied:
		return open, why, errors.Mark(errors.Newf("the writer denies %s %s: %s", s.ref.Aggregate, s.payload.Verb(), why.Message), dispatch.ErrDenied)
	}
	switch {
	case s.origin == fromName && (why.Code == codeRegistered || why.Code == codeEffectiveBehind):
		// It is known already, from elsewhere.
		return unchanged, why, nil
	case why.Code == codeEffectiveBehind:
		return behind, why, nil
	case s.ref.Aggregate == events.AggregateAssignment && why.Code == codeNotAssigned,
		s.ref.Aggregate == events.AggregateFreeze && why.Code == codeUnknownFreeze:
		// There is nothing to end.
		return unchanged, why, nil
	case s.ref.Aggregate == events.AggregateFreeze && why.Code == codeDeclared:
		// It holds already, for another reason.
		return unchanged, why, nil
	}
	return refused, why, nil
}

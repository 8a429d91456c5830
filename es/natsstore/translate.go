package natsstore

// This file lends the translation of NATS errors to es/natskv, so that there is one of it.

// AnswerError translates the answer to a message that was sent, or its absence. It gives errors marked [es.ErrConflict],
// [es.ErrTooLarge], [es.ErrFull], [es.ErrUnavailable] or, when the message may be stored, [es.ErrUnclear].
func AnswerError(err error) error { return answerError(err) }

// SendError translates the failure to hand a message to the connection. It gives errors marked [es.ErrTooLarge],
// [es.ErrUnavailable] or [es.ErrUnclear].
func SendError(err error) error { return sendError(err) }

// ReadError translates the failure of a read. It gives errors marked [es.ErrNotFound] or [es.ErrUnavailable].
func ReadError(err error) error { return readError(err) }

// EnsureError translates the failure to make a bucket or to change its limits. It gives errors marked [es.ErrFull], when the server has
// no room for them, or [es.ErrUnavailable].
func EnsureError(err error) error { return ensureError(err) }

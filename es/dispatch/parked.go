package dispatch

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/uuid"

	"catenary/es"
)

// Reasons why a command is parked, besides the codes of refusals.
const (
	// CodeUnproven means that it was sent without a reply, over an account's border: such a message may be a service's answer that
	// was led to the inbox, so it is done in nobody's name. Who retries it does it in their own.
	CodeUnproven = "sender-unproven"
	// CodeUnreadable means that what the inbox holds can't be read by this program.
	CodeUnreadable = "unreadable"
	// CodeGaveUp means that it was begun again and again by processes that died before there was an outcome.
	CodeGaveUp = "gave-up"
)

// Parked is a command that could not be read or decided. It stays until somebody retries or discards it.
type Parked struct {
	// ID is what it is retried and discarded by.
	ID string `json:"id"`
	// Error says why it is parked, with a code that is stable.
	Error es.AnswerError `json:"error"`
	// Parked is when it was parked, Stored when it came in.
	Parked time.Time `json:"parked"`
	Stored time.Time `json:"stored,omitzero"`
	// Inbox is the sequence it had in the inbox. It is zero for what was never taken in: that stands as its sender wrote it.
	Inbox uint64 `json:"inbox,omitempty"`
	// Actor is the opaque id of who sent it; empty when that can't be told.
	Actor     string `json:"actor,omitempty"`
	Command   string `json:"command,omitempty"`
	Aggregate string `json:"aggregate"`
	Key       string `json:"key,omitempty"`
	Verb      string `json:"verb"`
	// Headers are the command's own, as they travelled.
	Headers     map[string]string `json:"headers,omitempty"`
	ContentType string            `json:"content-type,omitempty"`
	// Body is the command's body. What is over the limit of a body is cut off: it could not be done anyway.
	Body []byte `json:"body,omitempty"`
	// Data is the body as JSON, for people, when it can be shown so.
	Data json.RawMessage `json:"data,omitempty"`
}

// ref is the instance the command is addressed to, as far as it is known.
func (p Parked) ref() es.Ref { return es.Ref{Aggregate: p.Aggregate, Key: p.Key} }

// parkedID gives the same id whenever the same message of the inbox is parked, so that it is parked once.
func parkedID(seed string) string {
	const digits = 12
	return es.Digest([]byte(seed))[:digits]
}

func parkedIDOf(e entry) string {
	return parkedID(strconv.FormatUint(e.sequence, 10) + " " + e.stored.UTC().Format(time.RFC3339Nano))
}

// checkParkedID makes sure that an id is one, so that it is a single token of a subject.
func checkParkedID(id string) error {
	if _, err := hex.DecodeString(id); err != nil || id == "" {
		return invalid("bad-id", strconv.Quote(id)+" is not the id of a parked command", "they are listed by catenary parked ls")
	}
	return nil
}

// show adds the body in a form that people can read.
func (p Parked) show() Parked {
	switch {
	case p.ContentType == ContentTypeMsgpack:
		var v any
		if err := (es.Msgpack{}).Unmarshal(p.Body, &v); err == nil {
			if data, err := json.Marshal(v); err == nil {
				p.Data = data
			}
		}
	case json.Valid(p.Body):
		p.Data = p.Body
	}
	return p
}

// parkedAnswer is the answer to a command that is parked.
func parkedAnswer(p Parked) es.Answer {
	why := p.Error
	return es.Answer{Status: es.StatusParked, Command: p.Command, Aggregate: p.Aggregate, Key: p.Key, Error: &why}
}

// canonicalID says whether an id can be one of a command, so that it can stand in a subject.
func canonicalID(id string) bool {
	u, err := uuid.Parse(id)
	return err == nil && u.String() == id
}

// answerError is a refusal as it is shown.
func answerError(r *es.Refusal) es.AnswerError {
	return es.AnswerError{Code: r.Code, Message: r.Message, Hint: r.Hint}
}

// asRefusal gives the refusal an error is, or one that says what the error says.
func asRefusal(err error, code string) *es.Refusal {
	var r *es.Refusal
	if errors.As(err, &r) {
		return r
	}
	return &es.Refusal{Status: es.StatusInvalid, Code: code, Message: err.Error()}
}

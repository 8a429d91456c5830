package dispatch

import (
	"strings"
	"time"

	"catenary/es"
)

// Receipt is what became of a command that came through the inbox. Its status is the answer's; [es.StatusStored] while a
// parked command waits again, [es.StatusParked] or [es.StatusDiscarded].
type Receipt struct {
	es.Answer
	// Inbox is the command's sequence in the inbox.
	Inbox uint64 `json:"inbox,omitempty"`
	// Actor is the opaque id of who sent the command.
	Actor string `json:"actor,omitempty"`
	// Stored is when the inbox took the command in, Settled when it got this status.
	Stored  time.Time `json:"stored,omitzero"`
	Settled time.Time `json:"settled,omitzero"`
	// Begun is how often the command was begun by a process that has not told what came of it, as far as that was noted.
	Begun int `json:"begun,omitempty"`
	// Parked is the id under which the command is parked, or was.
	Parked string `json:"parked,omitempty"`
	// By is the opaque id of who discarded a parked command, Reason why.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Final says that nothing more will become of the command, unless somebody sends it again.
func (r Receipt) Final() bool { return r.Status != es.StatusStored && r.Status != es.StatusParked }

// receiptKey is where a receipt is kept. Two instances may have commands with the same id: each has a receipt of its own.
func receiptKey(id string, ref es.Ref) string {
	return strings.TrimRight(id+"."+ref.Aggregate+"."+ref.Key, ".")
}

// verdict is what the inbox makes of an answer.
type verdict int

const (
	// settle keeps the answer as the command's receipt.
	settle verdict = iota
	// again sends the command once more, a little later.
	again
	// park puts the command aside for a person to look at.
	park
)

// judge says what an answer means for a command of the inbox. Nobody waits for it, so what is only so at the moment (the
// writer is busy, the store full, an append unclear) is no outcome.
func judge(a es.Answer) verdict {
	code := ""
	if a.Error != nil {
		code = a.Error.Code
	}
	switch a.Status {
	case es.StatusBusy, es.StatusUnknown:
		return again
	case es.StatusRejected:
		switch code {
		case codeInternal:
			return park
		case codeStoreFull:
			return again
		}
		return settle
	case es.StatusExpired:
		if code == codeIDExpired {
			// It can't be told whether the command was done: that is for a person to find out.
			return park
		}
		return settle
	case es.StatusAccepted, es.StatusUnchanged, es.StatusConflict, es.StatusInvalid, es.StatusDenied, es.StatusFenced:
		return settle
	}
	return park
}

// Codes of refusals that mean something else to the inbox than to a sender who waits.
const (
	codeInternal  = "internal"
	codeStoreFull = "store-full"
	codeIDExpired = "id-expired"
)

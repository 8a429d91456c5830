package commands

import "catenary/es"

// Conflict is the refusal of a command that was decided on another version than the one that stands.
type Conflict struct {
	*es.Refusal
	// Expected is the version the sender decided on, Current the one that stands.
	Expected, Current uint64
}

// Unwrap gives the refusal.
func (c *Conflict) Unwrap() error { return c.Refusal }

// AsRefusal gives the error that an answer is: nil for a command that is done, was so already, or is stored; else an error in
// which errors.As finds an *[es.Refusal], with the stable code, and for a conflict of versions a *[Conflict] too.
//
// A refusal with the status unknown means that the command may be done: only sending it again with the same id tells.
func AsRefusal(a es.Answer) error {
	switch a.Status {
	case es.StatusAccepted, es.StatusUnchanged, es.StatusStored:
		return nil
	}
	r := &es.Refusal{Status: a.Status, Message: "there is no reason in the answer"}
	if a.Error != nil {
		r.Code, r.Message, r.Hint = a.Error.Code, a.Error.Message, a.Error.Hint
	}
	if a.Status != es.StatusConflict || a.Error == nil || a.Error.Expected == nil || a.Error.Current == nil {
		return r
	}
	return &Conflict{Refusal: r, Expected: *a.Error.Expected, Current: *a.Error.Current}
}

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"catenary/agent"
	"catenary/agent/artifacts"
	"catenary/audit"
	"catenary/audit/proof"
	"catenary/chain"
	"catenary/embedded"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/internal/backup"
	"catenary/internal/lineage"
	"catenary/internal/natsconn"
	"catenary/internal/parts"
	"catenary/rollout/plan"
)

// Exit codes. They are a contract with scripts.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitDenied      = 3
	exitNotFound    = 4
	exitRefused     = 5
	exitConflict    = 6
	exitStale       = 7
	exitNotYet      = 8
	exitTimedOut    = 9
	exitUnreachable = 10
	exitNotCompared = 11
	exitWarned      = 12

	// exitDiffers is what diff ends with when it has found a difference.
	exitDiffers = 1
)

const exitCodesHelp = `Exit codes:

   0  ok: it is done, or was so already; with --durable: it is stored
   1  failed: see the message; of a receipt: the command is parked or was discarded; of diff: the two differ; of rollout
      wait and watch: it has not ended well; of doctor: something fails
   2  usage: an argument, a flag or a field of the data is wrong; nothing was sent or recorded
   3  denied: the bus does not let this user do it
   4  not found: there is no such record
   5  refused by a rule of the chain, or sent too late to be done (rejected, expired, fenced); nothing was recorded
   6  conflict: the record has another version than --expect-version says; nothing was recorded
   7  shown, or not found, but perhaps out of date: a view or the audit store has stopped or is behind, or nobody says how far it is;
      the message names it, and how far it is (also of diff, whatever it has found)
   8  the audit store can't answer: there is none, it is being built, or it has stopped; the message says which, how far it is, and what
      to do. Of what is built, ask again later
   9  timed out: no answer came, or a statement of sql took too long; a command may have been recorded. Send it again with the same --id to learn.
      Of rollout wait and watch: it is not final yet
  10  the bus, or the service on it that would answer, can't be reached; nothing was recorded
  11  diff could not compare, for whatever reason but wrong usage
  12  doctor has found warnings, and nothing that fails

Check ends with the codes of monitoring plugins instead: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.
`

// errUsage marks what the person at the keyboard got wrong.
var errUsage = errors.New("usage")

// errRefused marks what was refused by a rule before anything was sent.
var errRefused = errors.New("refused")

func usagef(format string, args ...any) error {
	return errors.Mark(errors.Newf(format, args...), errUsage)
}

// notDone is the answer to a command that was not done.
type notDone struct {
	what   string
	answer es.Answer
}

// Error names what was asked and why it was not done.
func (e *notDone) Error() string {
	s := e.what + ": " + string(e.answer.Status)
	if e.answer.Error == nil {
		return s
	}
	return s + " (" + e.answer.Error.Code + "): " + e.answer.Error.Message
}

// exitCode tells scripts what kind of end it was.
func exitCode(err error) int {
	var answered *notDone
	var refused *es.Refusal
	var monitored *checked
	is := func(kinds ...error) bool { return errors.IsAny(err, kinds...) }
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &monitored):
		return monitored.code
	case is(errWarned):
		return exitWarned
	case is(errStatesDiffer):
		return exitDiffers
	case is(errNotCompared) && !is(errUsage):
		return exitNotCompared
	case errors.As(err, &answered):
		return statusCode(answered.answer.Status)
	case errors.As(err, &refused):
		return statusCode(refused.Status)
	case is(errStale):
		return exitStale
	case is(errUsage, es.ErrName, natsconn.ErrConfig, embedded.ErrConfig, audit.ErrInvalid, dispatch.ErrTooLarge, proof.ErrMalformed, lineage.ErrNoLineage, artifacts.ErrDigest, parts.ErrRequest, es.ErrTooLarge):
		return exitUsage
	case is(errRefused, backup.ErrTaken, backup.ErrNotEmpty, plan.ErrNothingBuilt, plan.ErrNothingChanged):
		return exitRefused
	case is(natsconn.ErrDenied, dispatch.ErrDenied):
		return exitDenied
	case is(es.ErrNotFound, audit.ErrNotFound, artifacts.ErrNotFound, backup.ErrNoBackup):
		return exitNotFound
	case is(errNotStanding):
		return exitRefused
	case is(natsconn.ErrUnreachable, dispatch.ErrNoWriter, audit.ErrNoService, agent.ErrNoDesk, proof.ErrNoService, es.ErrUnavailable, artifacts.ErrUnavailable, nats.ErrConnectionClosed):
		return exitUnreachable
	case is(audit.ErrNoStore, audit.ErrStoreBehind, audit.ErrStoreStopped):
		return exitNotYet
	case is(dispatch.ErrTimeout, audit.ErrTimeout, audit.ErrTooLong, chain.ErrBehind, context.DeadlineExceeded):
		return exitTimedOut
	default:
		return exitFailed
	}
}

func statusCode(s es.Status) int {
	switch s {
	case es.StatusAccepted, es.StatusUnchanged, es.StatusStored:
		return exitOK
	case es.StatusInvalid:
		return exitUsage
	case es.StatusDenied:
		return exitDenied
	case es.StatusRejected, es.StatusExpired, es.StatusFenced:
		return exitRefused
	case es.StatusConflict:
		return exitConflict
	case es.StatusUnknown:
		return exitTimedOut
	case es.StatusBusy, es.StatusParked, es.StatusDiscarded:
		return exitFailed
	default:
		return exitFailed
	}
}

// shown says of an error that it only sets the exit code: what it is about was shown.
func shown(err error) bool {
	var monitored *checked
	return errors.IsAny(err, errStatesDiffer, errFound, errWarned) || errors.As(err, &monitored)
}

// explain tells a person what went wrong and what to do.
func (a *app) explain(cmd *cobra.Command, err error) {
	var answered *notDone
	var refused *es.Refusal
	message, hints := err.Error(), errors.GetAllHints(err)
	switch {
	case errors.As(err, &answered):
		if answered.answer.Error != nil && answered.answer.Error.Hint != "" {
			hints = append(hints, answered.answer.Error.Hint)
		}
		if answered.answer.Status == es.StatusUnknown {
			hints = append(hints, "it may have been recorded; send it again with --id "+answered.answer.Command+" to learn")
		}
	case errors.As(err, &refused):
		message = strings.TrimSuffix(message, " — "+refused.Hint)
		if refused.Hint != "" {
			hints = append(hints, refused.Hint)
		}
	case !a.ran || errors.Is(err, errUsage):
		hints = append(hints, "see "+cmd.CommandPath()+" --help")
	case errors.Is(err, context.Canceled):
		message = "interrupted: " + message
	}
	a.sayf("%s %s", a.paint(red, "catenary:"), printable(message))
	for _, h := range hints {
		a.sayf("  %s %s", a.paint(bold, "hint:"), printable(h))
	}
}

// sayf writes a line of talk. Nothing can be done when even that fails.
func (a *app) sayf(format string, args ...any) {
	_, _ = fmt.Fprintf(a.Stderr, format+"\n", args...)
}

package dispatch

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// Refused is a command that was not done, as it is kept: who sent it, and why not. Of what was sent it has the digest alone. It
// stands in a stream of its own, never among the events.
type Refused struct {
	// Sequence is its place in the stream of refused commands.
	Sequence    uint64    `json:"sequence,omitempty"`
	Recorded    time.Time `json:"recorded"`
	Actor       string    `json:"actor,omitempty"`
	OnBehalfOf  string    `json:"on-behalf-of,omitempty"`
	Command     string    `json:"command,omitempty"`
	Aggregate   string    `json:"aggregate,omitempty"`
	Key         string    `json:"key,omitempty"`
	Verb        string    `json:"verb,omitempty"`
	Digest      string    `json:"digest,omitempty"`
	Causation   string    `json:"causation,omitempty"`
	Correlation string    `json:"correlation,omitempty"`
	Status      es.Status `json:"status"`
	Code        string    `json:"code"`
	// Message says why, and Hint what to do. Of a malformed command both are left out: they quote what was sent, and nobody has
	// looked whether there is a name or a secret in it.
	Message string `json:"message,omitempty"`
	Hint    string `json:"hint,omitempty"`
	// Dropped counts refused commands before this one that could not be kept, since more came than the stream takes.
	Dropped uint64 `json:"dropped,omitempty"`
}

const (
	// maxRefusedWaiting bounds the refused commands that wait to be kept: a second's worth. Past it they are counted and dropped:
	// whoever sends nonsense must not fill the memory.
	maxRefusedWaiting = 4096
	// maxRefusedText bounds a message: those of our rules are shorter.
	maxRefusedText = 512
	// CodeDropped is the code of a record that only counts what was dropped.
	CodeDropped = "dropped"
)

// refusedKeeper keeps refused commands durably.
type refusedKeeper interface {
	keepRefused(ctx context.Context, r Refused) error
}

// RefusedLog writes refused commands down, beside the work of answering them. It is safe for many goroutines.
type RefusedLog struct {
	keeper  refusedKeeper
	actors  *Actors
	now     func() time.Time
	log     *slog.Logger
	waiting chan waitingRefused
	dropped atomic.Uint64
}

type waitingRefused struct {
	Refused
	who Who // of a command that was refused before its actor was looked up
}

// NewRefusedLog returns a log that keeps what it is told in a store once it runs.
func NewRefusedLog(store *RefusedStore, actors *Actors, now func() time.Time, log *slog.Logger) *RefusedLog {
	return newRefusedLog(store, actors, now, log, maxRefusedWaiting)
}

func newRefusedLog(keeper refusedKeeper, actors *Actors, now func() time.Time, log *slog.Logger, waiting int) *RefusedLog {
	return &RefusedLog{keeper: keeper, actors: actors, now: now, log: log, waiting: make(chan waitingRefused, waiting)}
}

// Note takes note of a command's answer when it is a refusal, and returns at once. Busy and unknown are none: such a command may be
// sent again as it is. A nil log notes nothing.
func (l *RefusedLog) Note(who Who, c es.Command, a es.Answer) {
	if l == nil || !isRefused(a.Status) {
		return
	}
	r := Refused{
		Recorded: l.now().UTC(), Actor: c.Actor, OnBehalfOf: c.OnBehalfOf, Command: c.ID, Aggregate: c.Ref.Aggregate, Key: c.Ref.Key, Verb: c.Verb,
		Digest: c.Digest, Causation: c.Causation, Correlation: c.Correlation, Status: a.Status,
	}
	if a.Error != nil {
		r.Code = a.Error.Code
		if a.Status != es.StatusInvalid {
			r.Message, r.Hint = shortened(a.Error.Message), shortened(a.Error.Hint)
		}
	}
	if a.Status == es.StatusInvalid {
		// What was not read is not repeated either: an id or a key may be anything.
		r.Causation, r.Correlation = "", ""
		if !canonicalID(r.Command) {
			r.Command = ""
		}
	}
	select {
	case l.waiting <- waitingRefused{Refused: r, who: who}:
	default:
		l.dropped.Add(1)
	}
}

// isRefused says whether an answer is final, and the command not done.
func isRefused(s es.Status) bool {
	switch s {
	case es.StatusRejected, es.StatusConflict, es.StatusExpired, es.StatusInvalid, es.StatusDenied, es.StatusFenced:
		return true
	case es.StatusAccepted, es.StatusUnchanged, es.StatusBusy, es.StatusUnknown, es.StatusStored, es.StatusParked, es.StatusDiscarded:
		return false
	}
	return false
}

// shortened cuts a text at the limit, between two characters.
func shortened(s string) string {
	if len(s) <= maxRefusedText {
		return s
	}
	cut := maxRefusedText
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// Dropped counts the refused commands that were not kept and of which no record tells yet.
func (l *RefusedLog) Dropped() uint64 { return l.dropped.Load() }

// Run keeps what is noted until the context ends, and then what still waits, within a second. It returns nil.
func (l *RefusedLog) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			l.drain(ctx)
			return nil
		case r := <-l.waiting:
			l.keep(context.WithoutCancel(ctx), r) // what was taken is kept also when the context ends now
		}
	}
}

func (l *RefusedLog) drain(ctx context.Context) {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	for last.Err() == nil {
		select {
		case r := <-l.waiting:
			l.keep(last, r)
		default:
			return
		}
	}
}

// keep keeps one, with the number of those that were dropped before it. What can't be kept counts as dropped.
func (l *RefusedLog) keep(ctx context.Context, w waitingRefused) {
	r := w.Refused
	if r.Actor == "" {
		id, err := l.actors.ID(ctx, w.who)
		if err != nil && !errors.IsAny(err, es.ErrName, ErrDirectoryFull) {
			l.log.Warn("who sent a refused command can't be told", "error", err)
		}
		r.Actor = id
	}
	r.Dropped = l.dropped.Swap(0)
	if err := l.keeper.keepRefused(ctx, r); err != nil {
		l.dropped.Add(r.Dropped + 1)
		l.log.Warn("a refused command could not be kept", "command", r.Command, "aggregate", r.Aggregate, "code", r.Code, "not kept so far", l.dropped.Load(), "error", err)
	}
}

// refusedToken makes a token of a subject of what a sender may have chosen.
func refusedToken(s string) string {
	if s == "" || len(s) > maxRefusedToken {
		return "unknown"
	}
	return es.EscapeToken(strings.ToValidUTF8(s, "?"))
}

// maxRefusedToken bounds a token. Aggregates and opaque ids are shorter.
const maxRefusedToken = 64

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"catenary/audit/when"
	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
)

// defaultWait is how long a command waits until what it recorded can be read.
const defaultWait = 5 * time.Second

// writeFlags are what every command that changes something takes.
type writeFlags struct {
	options  dispatch.Options
	expected uint64
	wait     time.Duration
	// durable sends through the inbox: there is nothing to wait for then.
	durable bool
	output  *format
}

func (a *app) writeFlags(cmd *cobra.Command) *writeFlags {
	w := &writeFlags{output: formatFlag(cmd, formatJSON)}
	flags := cmd.Flags()
	flags.StringVar(&w.options.ID, "id", "", "the command's `UUID`: sent again with the same one, it is done once (default a new one)")
	flags.Var(version(&w.expected), "expect-version", "only if the record has this `version`; 0 if there shall be none yet")
	a.timeVar(flags, &w.options.Effective, "effective", "`time` since when it is so (default now): "+when.Notation)
	flags.BoolVar(&w.options.Backfill, "backfill", false, "only add to history, at the --effective time; what stands stays")
	flags.StringVar(&w.options.OnBehalfOf, "on-behalf-of", "", "`name` of the person or system you act for")
	addWait(flags, &w.wait, defaultWait, "`span` of time to wait until it can be read, such as 10s; false for none")
	return w
}

// complete fills in what flags leave open.
func (w *writeFlags) complete(cmd *cobra.Command) error {
	if cmd.Flags().Changed("expect-version") {
		w.options.Expected = &w.expected
	}
	if w.options.Backfill && w.options.Effective.IsZero() {
		return usagef("--backfill needs --effective: since when was it so?")
	}
	return nil
}

// waitFlag is a span of time, or true for the usual one, or false for none. It takes a value always: with an optional one
// "--wait 10s" would be a flag and an argument.
type waitFlag struct {
	value *time.Duration
	usual time.Duration
}

var _ pflag.Value = waitFlag{}

// addWait adds the flag, with the usual span as its default.
func addWait(flags *pflag.FlagSet, value *time.Duration, usual time.Duration, usage string) {
	*value = usual
	flags.Var(waitFlag{value, usual}, "wait", usage)
}

// String gives the span.
func (f waitFlag) String() string {
	if f.value == nil {
		return ""
	}
	return f.value.String()
}

// Set reads true, false or a span.
func (f waitFlag) Set(text string) error {
	if yes, err := strconv.ParseBool(text); err == nil {
		*f.value = map[bool]time.Duration{true: f.usual}[yes]
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return usagef("it is true, false or a span of time such as 10s")
	}
	*f.value = d
	return nil
}

// Type is shown in the help.
func (f waitFlag) Type() string { return "span" }

// write sends a payload and shows the answer.
func (a *app) write(cmd *cobra.Command, w *writeFlags, what string, p es.Payload) error {
	if err := w.complete(cmd); err != nil {
		return err
	}
	r, err := commands.Request(p, w.options)
	if err != nil {
		return errors.Wrap(err, what)
	}
	return a.sendAll(cmd.Context(), w, []sending{{what, r}})
}

// sending is a request and how to speak of it.
type sending struct {
	what    string
	request dispatch.Request
}

// sendAll sends requests one after another, each after the one before was done, shows each answer, and waits until what was
// recorded can be read.
func (a *app) sendAll(ctx context.Context, w *writeFlags, list []sending) error {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	return a.withBus(ctx, slog.New(slog.DiscardHandler), func(ctx context.Context, s *session) error {
		var last uint64
		for _, l := range list {
			answer, err := a.send(ctx, s, w, l)
			if err != nil {
				return err
			}
			if !w.durable {
				last = max(last, answer.Sequence)
			}
		}
		a.awaitShown(ctx, s, last, w.wait)
		return nil
	})
}

// send sends one request and shows the answer, whatever it is. It gives a [notDone] for what was not done.
func (a *app) send(ctx context.Context, s *session, w *writeFlags, l sending) (es.Answer, error) {
	if l.request.ID == "" {
		// The id is made here, so that it can be told when no answer comes.
		id, err := uuid.NewV7()
		if err != nil {
			return es.Answer{}, errors.Wrap(err, "make a command id")
		}
		l.request.ID = id.String()
	}
	bus := s.bus
	if w.durable {
		bus = s.inbox
	}
	answer, err := bus.Send(ctx, l.request)
	if errors.Is(err, dispatch.ErrTimeout) {
		return answer, errors.WithHintf(errors.Wrap(err, l.what), "it may have been recorded; send it again with --id %s to learn", l.request.ID)
	}
	if err != nil {
		return answer, errors.Wrap(err, l.what)
	}
	if err := a.showAnswer(*w.output, answer); err != nil {
		return answer, err
	}
	if statusCode(answer.Status) != exitOK {
		return answer, &notDone{what: l.what, answer: s.named(answer)}
	}
	if isTerminal(a.Stderr) {
		a.sayf("%s: %s", printable(l.what), a.paint(green, printable(summary(answer))))
	}
	return answer, nil
}

func (a *app) showAnswer(f format, answer es.Answer) error {
	body, err := json.Marshal(answer)
	if err != nil {
		return errors.Wrap(err, "encode the answer")
	}
	code := ""
	if answer.Error != nil {
		code = answer.Error.Code
	}
	return a.printOne(f, []string{"STATUS", "AGGREGATE", "KEY", "VERSION", "SEQUENCE", "CODE"}, line{
		name: answer.Key, json: body, cells: func() []string {
			return []string{
				string(answer.Status), answer.Aggregate, showKey(answer.Key), number(answer.Version), number(answer.Sequence), code,
			}
		},
	})
}

// named puts people's names in the place of the opaque ids in an answer's message.
func (s *session) named(answer es.Answer) es.Answer {
	if answer.Error == nil {
		return answer
	}
	told := *answer.Error
	told.Message = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllStringFunc(told.Message, s.names)
	answer.Error = &told
	return answer
}

// summary says in a line what became of a command.
func summary(answer es.Answer) string {
	s := string(answer.Status)
	switch {
	case answer.Repeated:
		s += " before, as this same command"
	case answer.Error != nil:
		s += ": " + answer.Error.Message
	case answer.Status == es.StatusStored:
		s += fmt.Sprintf(" in the inbox at %d; ask for its outcome with: catenary receipt %s --wait", answer.Sequence, answer.Command)
	case len(answer.Events) > 1:
		s += fmt.Sprintf(", %d events up to %d", len(answer.Events), answer.Sequence)
	case answer.Sequence > 0:
		s += fmt.Sprintf(", event %d", answer.Sequence)
	}
	return s
}

func number(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

// awaitShown waits until the people's copies of the buckets show an event. That is a courtesy: what was recorded stays
// recorded, so when it can't be told a note says so, and no error is given.
func (a *app) awaitShown(ctx context.Context, s *session, sequence uint64, wait time.Duration) {
	if wait == 0 || sequence == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if err := s.shown(ctx, sequence, wait); err != nil {
		a.sayf("recorded as event %d, but not to be read yet: %s", sequence, printable(err.Error()))
	}
}

// shown waits, for no longer than a span of time, until everything that an event led to can be read here. It gives the errors of
// [chain.Reader.WaitFor].
func (s *session) shown(ctx context.Context, sequence uint64, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return s.reader.WaitFor(ctx, sequence)
}

package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/es"
	"catenary/es/dispatch"
)

const receiptHelp = `Receipt shows what became of a command that was sent with --durable.

The exit code is that of the command's outcome: 0 when it is done, 5 when a rule refused it. While there is no receipt it
is 4: the command waits in the inbox, or never came through it. With --wait it waits for the outcome, as long as --timeout
says.`

func (a *app) receiptCommand() *cobra.Command {
	var wait bool
	cmd := &cobra.Command{
		Use: "receipt ID", Short: "Show what became of a durable command", Long: receiptHelp, GroupID: groupRead, Args: takes("ID"),
		Example: "  catenary receipt 0199a0c0-0000-7000-8000-000000000001 --wait --timeout 1m",
	}
	output := formatFlag(cmd, formatJSON)
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until there is an outcome")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.read(cmd.Context(), func(ctx context.Context, s *session) error {
			look := s.inbox.Receipt
			if wait {
				look = s.inbox.Await
			}
			r, err := look(ctx, dispatch.ReceiptQuestion{ID: args[0]})
			if err != nil {
				return errors.Wrapf(err, "receipt %s", args[0])
			}
			return a.showReceipt(s, *output, r)
		})
	}
	return cmd
}

// showReceipt shows a receipt, with names in the place of opaque ids. It gives a [notDone] for what was not done.
func (a *app) showReceipt(s *session, f format, r dispatch.Receipt) error {
	if r.Actor != "" {
		r.Actor = s.names(r.Actor)
	}
	if r.By != "" {
		r.By = s.names(r.By)
	}
	body, err := json.Marshal(r)
	if err != nil {
		return errors.Wrap(err, "encode the receipt")
	}
	code := ""
	if r.Error != nil {
		code = r.Error.Code
	}
	err = a.printOne(f, []string{"STATUS", "OF", "VERSION", "SEQUENCE", "CODE", "BY", "STORED", "SETTLED", "PARKED"}, line{
		name: r.Command, json: body, cells: func() []string {
			return []string{
				string(r.Status), r.Aggregate + " " + showKey(r.Key), number(r.Version), number(r.Sequence), code, r.Actor,
				showTime(r.Stored, s.zone), showTime(r.Settled, s.zone), r.Parked,
			}
		},
	})
	if err != nil || statusCode(r.Status) == exitOK {
		return err
	}
	not := &notDone{what: "receipt " + r.Command, answer: s.named(r.Answer)}
	if r.Status == es.StatusParked {
		return errors.WithHintf(not, "see catenary parked show %s; then retry or discard it", r.Parked)
	}
	return not
}

const parkedHelp = `Parked shows the durable commands that could not be read or decided, and deals with them.

They wait for a person, and keep no other command waiting. Find out from the reason why each is there; when that is mended,
retry it, or discard it if nobody wants it any more. Discarding leaves a receipt that says who did it and why.`

func (a *app) parkedCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "parked", Short: "Deal with durable commands that could not be done", Long: parkedHelp, GroupID: groupWrite,
		Example: `  catenary parked ls
  catenary parked show 3f9a02c41b7e
  catenary parked retry 3f9a02c41b7e
  catenary parked discard 3f9a02c41b7e --reason "sent by mistake"`,
	}, a.parkedListCommand(), a.parkedShowCommand(), a.parkedRetryCommand(), a.parkedDiscardCommand())
}

func parkedColumns() []string {
	return []string{"ID", "PARKED", "COMMAND", "OF", "BY", "CODE", "REASON"}
}

func (a *app) parkedLine(s *session, p dispatch.Parked) (line, error) {
	if p.Actor != "" {
		p.Actor = s.names(p.Actor)
	}
	body, err := json.Marshal(p)
	if err != nil {
		return line{}, errors.Wrapf(err, "encode parked command %s", p.ID)
	}
	return line{name: p.ID, json: body, cells: func() []string {
		return []string{p.ID, showTime(p.Parked, s.zone), p.Aggregate + " " + p.Verb, showKey(p.Key), p.Actor, p.Error.Code, p.Error.Message}
	}}, nil
}

func (a *app) parkedListCommand() *cobra.Command {
	var limit int
	var cursor string
	cmd := &cobra.Command{Use: "ls", Short: "List parked commands, oldest first", Args: cobra.NoArgs}
	output := formatFlag(cmd, formatTable)
	cmd.Flags().IntVar(&limit, "limit", 0, "show at most this `number`")
	cmd.Flags().StringVar(&cursor, "cursor", "", "go on where a list has ended")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if limit < 0 {
			return usagef("--limit is %d: give a number above zero", limit)
		}
		log := slog.New(slog.DiscardHandler)
		// No bound on the whole: each page has one of its own.
		return a.withBus(cmd.Context(), log, func(ctx context.Context, s *session) error {
			return a.listParked(ctx, s, a.newPrinter(*output, parkedColumns()...), limit, cursor)
		})
	}
	return cmd
}

func (a *app) listParked(ctx context.Context, s *session, p *printer, limit int, cursor string) error {
	for {
		page, err := s.inbox.ParkedPage(ctx, cursor, max(limit-p.count, 0))
		if err != nil {
			return err
		}
		for _, item := range page.Items {
			l, err := a.parkedLine(s, item)
			if err == nil {
				err = p.add(l)
			}
			if err != nil {
				return err
			}
		}
		cursor = page.Next
		if cursor == "" || limit > 0 && p.count >= limit {
			break
		}
	}
	if err := p.end(); err != nil {
		return err
	}
	switch {
	case cursor != "":
		a.sayf("there are more; go on with --cursor %s", cursor)
	case p.count == 0 && p.format == formatTable:
		a.sayf("no commands are parked")
	}
	return nil
}

func (a *app) parkedShowCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "show ID", Short: "Show a parked command whole", Args: takes("ID")}
	output := formatFlag(cmd, formatYAML)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.read(cmd.Context(), func(ctx context.Context, s *session) error {
			p, err := s.inbox.Parked(ctx, args[0])
			if err != nil {
				return err
			}
			l, err := a.parkedLine(s, p)
			if err != nil {
				return err
			}
			return a.printOne(*output, parkedColumns(), l)
		})
	}
	return cmd
}

func (a *app) parkedRetryCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "retry ID", Short: "Put a parked command into the inbox again", Args: takes("ID")}
	output := formatFlag(cmd, formatJSON)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.read(cmd.Context(), func(ctx context.Context, s *session) error {
			answer, err := s.inbox.Retry(ctx, args[0])
			if err != nil {
				return errors.Wrapf(err, "retry %s", strconv.Quote(args[0]))
			}
			if err := a.showAnswer(*output, answer); err != nil {
				return err
			}
			if isTerminal(a.Stderr) {
				a.sayf("%s", printable(summary(answer)))
			}
			return nil
		})
	}
	return cmd
}

func (a *app) parkedDiscardCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{Use: "discard ID --reason TEXT", Short: "Forget a parked command, for a reason", Args: takes("ID")}
	output := formatFlag(cmd, formatJSON)
	cmd.Flags().StringVar(&reason, "reason", "", "`why` nobody will do what it asks")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if reason == "" {
			return usagef("--reason is missing: say why nobody will do what %s asks", args[0])
		}
		return a.read(cmd.Context(), func(ctx context.Context, s *session) error {
			r, err := s.inbox.Discard(ctx, args[0], reason)
			if err != nil {
				return errors.Wrapf(err, "discard %s", strconv.Quote(args[0]))
			}
			err = a.showReceipt(s, *output, r)
			var discarded *notDone
			if errors.As(err, &discarded) {
				return nil // that is what was asked for
			}
			return err
		})
	}
	return cmd
}

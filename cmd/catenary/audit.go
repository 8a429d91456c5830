package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/audit/proof"
	"catenary/chain"
	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/internal/topology"
)

const auditHelp = `Audit makes the record tamper-evident for people who hold nothing but a few lines of text.

Keep the public key and a checkpoint now and then, away from the chain. With them anybody finds out later whether what stood then
still stands, and whether a single event is the one that was recorded; without a server, if need be. Nothing keeps somebody with
all rights from changing the record. But they can't do it unseen.

  catenary audit key                          the public key of the chain
  catenary audit checkpoint -o then.txt       what stands now, signed
  catenary audit verify --checkpoint then.txt     does it still stand?
  catenary audit prove 41 -o 41.json          the proof of one event
  catenary audit verify-proof 41.json --key KEY   checked without the chain`

func (a *app) auditCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "audit", Short: "Prove that the record is what it was; erase a person", Long: auditHelp, GroupID: groupRead,
	}, a.auditKeyCommand(), a.auditCheckpointCommand(), a.auditProveCommand(), a.auditVerifyProofCommand(), a.auditVerifyCommand(),
		a.auditRefusedCommand(), a.auditActorsCommand(), a.auditForgetCommand())
}

const auditKeyHelp = `Key prints the public keys that the chain signs its checkpoints with, one a line.

Hand them out once, by a way that you trust, and keep them: a key that comes together with what it has signed proves nothing.

To replace a key, add one with --add in the store of the chain; from its next start both sign. When everybody has the new one, take
the first line out of the file and start the chain again. A key that is lost is replaced by a start with --new-checkpoint-key REASON, which
is put on record.`

func (a *app) auditKeyCommand() *cobra.Command {
	var store string
	var add bool
	cmd := &cobra.Command{
		Use: "key", Short: "Print the chain's public key", Long: auditKeyHelp, Args: cobra.NoArgs,
		Example: "  catenary audit key\n  catenary audit key --add --store catenary-data",
	}
	cmd.Flags().BoolVar(&add, "add", false, "add a key to the file in --store, and print its public half")
	cmd.Flags().StringVar(&store, "store", "", "the `directory` of a chain, whose key file is read instead of asking the chain")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case add && store == "":
			return usagef("--add needs --store: the directory that the chain was given")
		case add:
			key, err := proof.AddKey(filepath.Join(store, checkpointKeyFile), rand.Reader)
			if err != nil {
				return err
			}
			return a.printLines(key)
		case store != "":
			f, err := proof.ReadKeyFile(filepath.Join(store, checkpointKeyFile))
			if err != nil {
				return err
			}
			return a.printLines(f.Public...)
		}
		return a.read(cmd.Context(), func(ctx context.Context, s *session) error {
			latest, err := s.proofs.Checkpoint(ctx)
			if err != nil {
				return err
			}
			if len(latest.Keys) == 0 {
				return errors.WithHint(errors.New("the projector that answers has no key"), "start it with --checkpoint-key")
			}
			return a.printLines(latest.Keys...)
		})
	}
	return cmd
}

// printLines writes lines of text.
func (a *app) printLines(lines ...string) error {
	_, err := fmt.Fprintln(a.Stdout, strings.Join(lines, "\n"))
	return errors.Wrap(err, "write the output")
}

const auditRefusedHelp = `Refused lists commands that were not done, newest first: who sent them, and why not.

They are kept apart from the events, for 31 days and as long as there is room. Of what was sent there is the digest alone; of a
malformed command not even the message, since that quotes it.`

func (a *app) auditRefusedCommand() *cobra.Command {
	var q dispatch.RefusedQuestion
	var actor string
	var limit int
	cmd := &cobra.Command{
		Use: "refused", Short: "List refused commands, newest first", Long: auditRefusedHelp, Args: cobra.NoArgs,
		Example: "  catenary audit refused --limit 20\n  catenary audit refused --actor ann --aggregate assignment",
	}
	output := formatFlag(cmd, formatTable)
	cmd.Flags().StringVar(&q.Aggregate, "aggregate", "", "only about this `aggregate`, such as assignment")
	cmd.Flags().StringVar(&actor, "actor", "", "only by this `actor`, or on their behalf: a name or an opaque id")
	cmd.Flags().Var(amount(&limit, 1), "limit", "at most so many (default all)")
	cmd.Flags().Var(version(&q.Before), "cursor", "go on after a page; the page before tells its `cursor`")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.read(cmd.Context(), func(ctx context.Context, s *session) error {
			var err error
			if q.Actors, err = s.actorIDs(ctx, actor); err != nil {
				return err
			}
			return a.listRefused(ctx, s, a.newPrinter(*output, "RECORDED", "STATUS", "CODE", "COMMAND", "OF", "BY", "ON BEHALF OF", "REASON"), q, limit)
		})
	}
	return cmd
}

func (a *app) listRefused(ctx context.Context, s *session, p *printer, q dispatch.RefusedQuestion, limit int) error {
	for more := true; more; {
		q.Limit = max(limit-p.count, 0)
		page, err := s.inbox.RefusedPage(ctx, q)
		if err != nil {
			return err
		}
		for _, r := range page.Items {
			l, err := a.refusedLine(ctx, s, r)
			if err == nil {
				err = p.add(l)
			}
			if err != nil {
				return err
			}
		}
		q.Before = page.Next
		more = page.Next > 0 && (limit == 0 || p.count < limit)
	}
	if err := p.end(); err != nil {
		return err
	}
	switch {
	case q.Before > 0:
		a.sayf("there may be more; go on with --cursor %d", q.Before)
	case p.count == 0 && p.format == formatTable:
		a.sayf("no refused commands")
	}
	return nil
}

func (a *app) refusedLine(ctx context.Context, s *session, r dispatch.Refused) (line, error) {
	var err error
	if r.Actor, err = s.reader.ActorName(ctx, r.Actor); err != nil {
		return line{}, err
	}
	if r.OnBehalfOf, err = s.reader.ActorName(ctx, r.OnBehalfOf); err != nil {
		return line{}, err
	}
	body, err := json.Marshal(r)
	if err != nil {
		return line{}, errors.Wrapf(err, "encode refused command %d", r.Sequence)
	}
	return line{name: r.Command, json: body, cells: func() []string {
		reason := r.Message
		if r.Dropped > 0 {
			reason = strings.TrimSpace(fmt.Sprintf("%s (%d refused before it were not kept)", reason, r.Dropped))
		}
		return []string{showTime(r.Recorded, s.zone), string(r.Status), r.Code, r.Aggregate + " " + r.Verb, showKey(r.Key), r.Actor, r.OnBehalfOf, reason}
	}}, nil
}

func (a *app) auditActorsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "actors", Short: "List opaque ids and the names behind them", Args: cobra.NoArgs,
		Long: `Actors lists the actor directory: each opaque id with the name behind it, and the bus account of a user. Names without an account
were said in commands: on whose behalf, or who wrote a commit. Where the name is empty, it was erased.`,
	}
	output := formatFlag(cmd, formatTable)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.read(cmd.Context(), func(ctx context.Context, s *session) error {
			bucket, err := s.open(ctx, topology.BucketActors)
			if err != nil {
				return err
			}
			p := a.newPrinter(*output, "ID", "NAME", "ACCOUNT")
			for e, err := range bucket.Entries(ctx, ">") {
				if err != nil {
					return errors.Wrap(err, "read the actor directory")
				}
				l, err := actorLine(e.Key, e.Value)
				if err == nil {
					err = p.add(l)
				}
				if err != nil {
					return err
				}
			}
			return p.end()
		})
	}
	return cmd
}

func actorLine(key string, value []byte) (line, error) {
	id, err := es.UnescapeToken(key)
	if err != nil {
		return line{}, errors.Wrapf(err, "entry %s of the actor directory", key)
	}
	shown := struct {
		ID string `json:"id"`
		chain.Actor
	}{ID: id}
	if len(value) > 0 {
		if err := json.Unmarshal(value, &shown.Actor); err != nil {
			return line{}, errors.Wrapf(err, "entry %s of the actor directory", key)
		}
	}
	body, err := json.Marshal(shown)
	return line{name: id, json: body, cells: func() []string { return []string{id, shown.Name, shown.Account} }}, errors.Wrapf(err, "encode actor %s", id)
}

const auditForgetHelp = `Forget-actor erases the name behind an opaque id.

The entry of the actor directory is overwritten, in its copies too, and so is whatever the person had refused. What they did stays on
record under the opaque id, every hash and every proof still verifies, and an event says that the id was forgotten. Who acts under
the name again gets a new id.

Free text is outside of this: a reason, a label or a commit's message that names the person stays.`

func (a *app) auditForgetCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "forget-actor ID --reason TEXT", Short: "Erase the name behind an opaque id", Long: auditForgetHelp, Args: takes("ID"),
		Example: `  catenary audit actors
  catenary audit forget-actor 7f3c2a10-5f1e-4c62-9a53-0f5a4f6f2b11 --reason "request 12 of May"`,
	}
	w := a.writeFlags(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "`why`, without the name: it is kept for ever")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if reason == "" {
			return usagef("--reason is missing: say why the person is forgotten, without the name")
		}
		return a.write(cmd, w, "forget actor "+args[0], commands.ForgetActor{Actor: args[0], Reason: reason})
	}
	return cmd
}

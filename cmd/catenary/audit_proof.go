package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/audit/export"
	"catenary/audit/proof"
	"catenary/events"
)

// keyVariable names the public key in the environment.
const keyVariable = "CATENARY_CHECKPOINT_KEY"

// maxProofBytes bounds a file that is handed in: an event is 256 KiB at most, four times as long in JSON.
const maxProofBytes = 2 << 20

func (a *app) auditCheckpointCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "checkpoint [-o FILE]", Short: "Print a signed checkpoint over all events there are", Args: cobra.NoArgs,
		Long: `Checkpoint prints what stands now, signed: the chain's name, the number of events, the root of the Merkle tree over them, the last
event's hash and the time. It is a C2SP signed note, so other tools read it too. Keep it away from the chain.`,
		Example: "  catenary audit checkpoint\n  catenary audit checkpoint -o 2026-05-01.checkpoint",
	}
	cmd.Flags().StringVarP(&out, "output-file", "o", "", "write it to this `file`")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return a.read(cmd.Context(), func(ctx context.Context, s *session) error {
			latest, err := s.proofs.Checkpoint(ctx)
			if err != nil {
				return err
			}
			return a.writeOut(out, []byte(latest.Checkpoint))
		})
	}
	return cmd
}

// writeOut writes to a file, whole or not at all, or to standard output.
func (a *app) writeOut(path string, text []byte) (err error) {
	if path == "" || path == "-" {
		_, err := a.Stdout.Write(text)
		return errors.Wrap(err, "write the output")
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return errors.Wrapf(err, "write %s", path)
	}
	defer func() {
		if err != nil {
			err = errors.CombineErrors(err, os.Remove(file.Name()))
		}
	}()
	_, err = file.Write(text)
	if err == nil {
		err = file.Chmod(0o644)
	}
	if err = errors.CombineErrors(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	return errors.Wrapf(err, "write %s", path)
}

func (a *app) auditProveCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "prove EVENT [-o FILE]", Short: "Print the proof of an event", Args: takes("EVENT"),
		Long: `Prove prints the proof of an event, by the sequence that "catenary log" shows: the event as stored with all that its hash covers, the
hashes that lead from it to the root of a checkpoint, and the checkpoint. Whoever has the chain's public key checks it with
"catenary audit verify-proof", without the chain.`,
		Example: "  catenary audit prove 41 -o 41.json",
	}
	cmd.Flags().StringVarP(&out, "output-file", "o", "", "write it to this `file`")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		event, err := strconv.ParseUint(args[0], 10, 64)
		if err != nil || event == 0 {
			return usagef("%q is no event: give the sequence that catenary log shows, such as 41", args[0])
		}
		return a.read(cmd.Context(), func(ctx context.Context, s *session) error {
			p, err := s.proofs.Prove(ctx, event)
			if err != nil {
				return err
			}
			text, err := json.MarshalIndent(p, "", "  ")
			if err != nil {
				return errors.Wrap(err, "encode the proof")
			}
			return a.writeOut(out, append(text, '\n'))
		})
	}
	return cmd
}

func (a *app) auditVerifyProofCommand() *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use: "verify-proof FILE [--key KEY]", Short: "Check the proof of an event, without the chain", Args: takes("FILE"),
		Long: `Verify-proof checks what "catenary audit prove" has written; - reads it from standard input. It needs no chain and no network. It ends with
exit code 1 and says what does not hold.

Give the key that you have kept. Without one the key in the proof itself is taken, which only shows that the proof is whole.`,
		Example: "  catenary audit verify-proof 41.json --key \"$(cat chain.key)\"",
	}
	cmd.Flags().StringVar(&key, "key", "", "the chain's public `key` (default "+keyVariable+")")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		text, err := a.readFile(args[0])
		if err != nil {
			return err
		}
		p, err := proof.ReadInclusion(text)
		if err != nil {
			return err
		}
		keys, kept, err := a.keys(key, p.Keys)
		if err != nil {
			return err
		}
		c, err := p.Verify(keys)
		if err != nil {
			return errors.Wrapf(err, "the proof does not hold")
		}
		a.sayKeyOfTheFile(kept, p.Keys)
		return a.printLines(
			"event      "+strconv.FormatUint(p.Event.Sequence, 10)+" on "+printable(p.Event.Subject),
			"hash       "+p.Event.Hash.String(),
			"stands in  the first "+strconv.FormatUint(c.Size, 10)+" events of "+printable(c.Origin)+", signed at "+c.Time.UTC().Format(time.RFC3339),
		)
	}
	return cmd
}

// keys gives the keys to check with: those given, or else those that the thing itself names, which kept says.
func (a *app) keys(given string, named []string) (keys proof.Keys, kept bool, err error) {
	if given = cmp.Or(given, a.Env(keyVariable)); given != "" {
		keys, err = proof.ParseKeys(given)
		return keys, true, err
	}
	if len(named) == 0 {
		return nil, false, usagef("there is no key to check with: give the one that you have kept with --key, or in %s", keyVariable)
	}
	keys, err = proof.ParseKeys(strings.Join(named, "\n"))
	return keys, false, err
}

// sayKeyOfTheFile says what a check with a key that nobody has kept is worth.
func (a *app) sayKeyOfTheFile(kept bool, named []string) {
	if !kept {
		a.sayf("checked with the key that came along: compare it with the one you have kept, or give that with --key\n  %s", printable(strings.Join(named, "\n  ")))
	}
}

// readFile reads a file that was handed in; - is standard input.
func (a *app) readFile(path string) ([]byte, error) {
	var from io.Reader = a.Stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, errors.Mark(err, errUsage)
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, maxProofBytes+1))
	if err != nil {
		return nil, errors.Wrapf(err, "read %s", path)
	}
	if len(text) > maxProofBytes {
		return nil, usagef("%s has more than %d bytes, which no proof and no checkpoint has", path, maxProofBytes)
	}
	return text, nil
}

const auditVerifyHelp = `Verify checks the whole record against signed checkpoints.

It has all events read, checks that none is missing, changed or swapped, computes the Merkle roots anew, and compares them with every
checkpoint that the chain keeps. With --checkpoint it also compares those that you have kept, which is what tells a record that was cut
short, forked, or restored from yesterday's copy with all its checkpoints.

With --offline it reads an export ("catenary export events --format ndjson", all of it) instead of asking the chain, and needs no network. Each
line's "stored" is checked by its hash, and what the line shows to people beside it must be what is stored.

The record is tamper-evident: a change can't be prevented, but it shows here. Exit code 1 means that something does not hold; the
message names it.`

func (a *app) auditVerifyCommand() *cobra.Command {
	var files []string
	var exported, key string
	cmd := &cobra.Command{
		Use: "verify [--checkpoint FILE] [--offline EXPORT]", Short: "Check the whole record against signed checkpoints", Long: auditVerifyHelp, Args: cobra.NoArgs,
		Example: "  catenary audit verify\n  catenary audit verify --checkpoint 2026-05-01.checkpoint\n  catenary audit verify --offline events.ndjson --checkpoint then.txt --key \"$(cat chain.key)\"",
	}
	output := formatFlag(cmd, formatTable)
	cmd.Flags().StringArrayVar(&files, "checkpoint", nil, "a checkpoint that you have kept, in this `file`; may be given again")
	cmd.Flags().StringVar(&exported, "offline", "", "check this `file` of exported events instead of the chain")
	cmd.Flags().StringVar(&key, "key", "", "the chain's public `key`, or several with spaces between when it was replaced (default "+keyVariable+")")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var handed [][]byte
		for _, path := range files {
			text, err := a.readFile(path)
			if err != nil {
				return err
			}
			if _, err := proof.Peek(text); err != nil {
				return errors.Wrap(err, path)
			}
			handed = append(handed, text)
		}
		if cmd.Flags().Changed("offline") {
			return a.verifyExport(*output, exported, handed, key)
		}
		return a.withBus(cmd.Context(), slog.New(slog.DiscardHandler), func(ctx context.Context, s *session) error {
			return a.verifyAgainst(ctx, s, *output, handed, key)
		})
	}
	return cmd
}

func (a *app) verifyExport(f format, path string, handed [][]byte, key string) error {
	if len(handed) == 0 {
		return usagef("--offline needs --checkpoint: an export alone is whole in itself, also after all of it was rewritten")
	}
	keys, _, err := a.keys(key, nil)
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return errors.Mark(err, errUsage)
	}
	defer func() { _ = file.Close() }()
	found, err := proof.VerifyExport(proof.ReadExport(file, export.CheckShown(events.Registry())), handed, keys)
	if err != nil {
		return errors.Wrap(err, "the export does not hold")
	}
	return a.showChecked(f, found)
}

func (a *app) verifyAgainst(ctx context.Context, s *session, f format, handed [][]byte, key string) error {
	latest, err := s.proofs.Checkpoint(ctx)
	if err != nil {
		return err
	}
	keys, kept, err := a.keys(key, latest.Keys)
	if err != nil {
		return err
	}
	var progress func(uint64)
	if isTerminal(a.Stderr) {
		progress = func(events uint64) { a.sayf("%s", a.paint(dim, strconv.FormatUint(events, 10)+" events read")) }
	}
	for _, text := range handed {
		if err := s.grownSince(ctx, text, keys); err != nil {
			return errors.Wrap(err, "the record does not hold")
		}
	}
	found, err := s.proofs.VerifyChain(ctx, handed, keys, progress)
	if errors.Is(err, proof.ErrKey) {
		err = errors.WithHint(err, "if the chain's key was replaced, give the keys of before too: --key \"OLD NEW\"")
	}
	if err != nil {
		return errors.Wrap(err, "the record does not hold")
	}
	a.sayKeyOfTheFile(kept, latest.Keys)
	return a.showChecked(f, found)
}

// grownSince has it proved that a checkpoint that somebody has kept still holds: that proof is checked here, and takes nobody's word.
func (s *session) grownSince(ctx context.Context, text []byte, keys proof.Keys) error {
	earlier, err := proof.Open(text, keys)
	if err != nil {
		return err
	}
	growth, err := s.proofs.Growth(ctx, earlier.Size)
	if err != nil {
		return err
	}
	now, err := proof.Open([]byte(growth.Checkpoint), keys)
	if err != nil {
		return err
	}
	return now.Follows(earlier, growth.Path)
}

func (a *app) showChecked(f format, found proof.Checked) error {
	body, err := json.Marshal(found)
	if err != nil {
		return errors.Wrap(err, "encode what was found")
	}
	err = a.printOne(f, []string{"EVENTS", "CHECKPOINTS", "NEWEST CHECKPOINT"}, line{name: "holds", json: bytes.TrimSpace(body), cells: func() []string {
		return []string{strconv.FormatUint(found.Events, 10), strconv.Itoa(found.Checkpoints), strconv.FormatUint(found.Newest, 10)}
	}})
	if err == nil {
		a.sayf("the record holds: %d events agree with %d signed checkpoints", found.Events, found.Checkpoints)
	}
	for _, k := range found.NewKeys {
		a.sayf("from the checkpoint of %d events on, signed at %s, a new key signs: %s (%s)", k.Events, k.Time.UTC().Format(time.RFC3339), printable(k.Keys), printable(k.Reason))
	}
	if err == nil && found.Lost > 0 {
		a.sayf("%d earlier checkpoints were signed over a record whose loss was accepted; see catenary log --aggregate writer", found.Lost)
	}
	return err
}

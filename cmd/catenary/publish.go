package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"os"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"catenary/agent/artifacts"
	"catenary/agent/depot"
	"catenary/chain"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

const publishHelp = `Publish stores a file under its SHA-256, where agents get it, and records the publication.

An upload that was cut short goes on when it is published again. To publish the same again changes nothing. With --build it is what
that build published. With --name and --version the artifact gets the name of a package as well: then nodes can be told the package, and
agents that unpack artifacts find it by that name.`

// publishFlags are what publish is told besides the file.
type publishFlags struct {
	module, build, commit string
	name, version         string
}

func (a *app) publishCommand() *cobra.Command {
	var p publishFlags
	cmd := &cobra.Command{
		Use: "publish FILE --module MODULE", Short: "Store a file where agents get it, and record it", Long: publishHelp, GroupID: groupWrite, Args: takes("FILE"),
		Example: `  catenary publish web.tar.gz --module web
  catenary publish web.tar.gz --module web --build acme/web/512
  catenary publish web.tar.gz --module web --name web --version 1.20`,
	}
	w := a.writeFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&p.module, "module", "", "the `module` it is")
	flags.StringVar(&p.build, "build", "", "the build it comes from, by `id`")
	flags.StringVar(&p.commit, "commit", "", "the `commit` it was made of")
	flags.StringVar(&p.name, "name", "", "the `name` of the package that it is, too")
	flags.StringVar(&p.version, "version", "", "the package's `version`")
	cmd.MarkFlagsRequiredTogether("name", "version")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		pipe := detectPipeline(a.Env)
		fill(&p.commit, pipe.commit)
		fill(&w.options.OnBehalfOf, pipe.person)
		if err := w.complete(cmd); err != nil {
			return err
		}
		if p.module == "" {
			return usagef("--module is missing: whose artifact is it?")
		}
		file, err := os.Open(args[0])
		if err != nil {
			return errors.Mark(err, errUsage)
		}
		defer func() { _ = file.Close() }() // it is only read
		return a.publish(cmd.Context(), w, p, file)
	}
	return cmd
}

func (a *app) publish(ctx context.Context, w *writeFlags, p publishFlags, file *os.File) error {
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = usagef("%s is no file: pack a directory first, as with tar", file.Name())
	}
	if err == nil {
		// Reading all of it for its digest may take minutes.
		err = depot.CheckSize(file.Name(), info.Size())
	}
	if err != nil {
		return err
	}
	digest, err := digestOf(file)
	if err != nil {
		return errors.Wrapf(err, "read %s", file.Name())
	}
	// No bound on the whole: an upload takes its time, and each of its pieces has a bound of its own.
	err = a.withBus(ctx, slog.New(slog.DiscardHandler), func(ctx context.Context, s *session) error {
		if err := p.unnamed(ctx, s, digest); err != nil {
			return err
		}
		bar := a.newUploadBar(info.Size())
		defer bar.end()
		done, err := s.depot.Publish(ctx, file, digest, info.Size(), file.Name(), bar.show)
		bar.end()
		if errors.Is(err, artifacts.ErrUnavailable) {
			err = errors.WithHint(err, "publish it again: the upload goes on where it was")
		}
		if err == nil && isTerminal(a.Stderr) {
			a.sayf("%s %s", digest, map[bool]string{true: "was there already", false: "is stored"}[done.Again])
		}
		return errors.Wrapf(err, "publish %s", file.Name())
	})
	if err != nil {
		return err
	}
	list, err := p.commands(w, digest)
	if err != nil {
		return err
	}
	return a.sendAll(ctx, w, list)
}

// unnamed refuses a name that another artifact has: nodes that were told the name keep to the first one.
func (p publishFlags) unnamed(ctx context.Context, s *session, digest string) error {
	if p.name == "" {
		return nil
	}
	ref := events.Reference{Package: &events.Package{Name: p.name, Version: p.version}}
	e, err := chain.Get(ctx, s.reader, chain.Publications, chain.ReferenceNames(ref)...)
	if err != nil && !errors.Is(err, es.ErrNotFound) {
		return errors.Wrapf(err, "look for %s", ref)
	}
	if before := e.Value.Content(); err == nil && before != "" && before != digest {
		err := errors.Newf("%s is artifact %s already, and the file is %s", ref, before, digest)
		return errors.WithHint(errors.Mark(err, errRefused), "a name means the same for ever: publish the file under another version")
	}
	return nil
}

// commands are what records the publication.
func (p publishFlags) commands(w *writeFlags, digest string) ([]sending, error) {
	type said struct {
		what    string
		payload es.Payload
	}
	artifact := events.Reference{Artifact: digest}
	list := []said{{"record publication " + digest, commands.RecordPublication{Reference: artifact, Build: p.build, Commit: p.commit, Module: p.module}}}
	if p.name != "" {
		named := events.Reference{Package: &events.Package{Name: p.name, Version: p.version}}
		list = append(list,
			said{"record publication " + named.String(), commands.RecordPublication{Reference: named, Commit: p.commit, Module: p.module}},
			said{"record what " + named.String() + " is", commands.AttestPublication{
				Reference: named, Attestation: events.Attestation{Kind: chain.AttestedArtifact, Reference: digest},
			}})
	}
	var sendings []sending
	for i, l := range list {
		options := w.options
		if i > 0 {
			// Each further command has an identity and a version of its own.
			options.ID, options.Expected = "", nil
		}
		r, err := commands.Request(l.payload, options)
		if err != nil {
			return nil, errors.Wrap(err, l.what)
		}
		sendings = append(sendings, sending{l.what, r})
	}
	return sendings, nil
}

func digestOf(file io.Reader) (string, error) {
	sum := sha256.New()
	_, err := io.Copy(sum, file)
	return artifacts.Algorithm + hex.EncodeToString(sum.Sum(nil)), err
}

// uploadBar shows how far an upload is, on a terminal only.
type uploadBar struct {
	progress *mpb.Progress
	bar      *mpb.Bar
}

func (a *app) newUploadBar(bytes int64) *uploadBar {
	if !isTerminal(a.Stderr) || a.Env("TERM") == "dumb" {
		return &uploadBar{}
	}
	p := mpb.New(mpb.WithOutput(a.Stderr))
	return &uploadBar{progress: p, bar: p.AddBar(bytes,
		mpb.PrependDecorators(decor.CountersKibiByte("% .1f of % .1f")),
		mpb.AppendDecorators(decor.AverageSpeed(decor.SizeB1024(0), "% .1f"), decor.AverageETA(decor.ET_STYLE_GO, decor.WC{W: 8})),
	)}
}

func (b *uploadBar) show(done int64) {
	if b.progress != nil {
		b.bar.SetCurrent(done)
	}
}

// end leaves the bar as it stands.
func (b *uploadBar) end() {
	if b.progress != nil {
		b.bar.Abort(false)
		b.progress.Wait()
		b.progress = nil
	}
}

package main

import (
	"os"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

const recordHelp = `Record tells the chain what a pipeline has made.

In GitHub Actions, GitLab CI and Jenkins it fills itself from the environment: repository, commit, branch, the build's id, the
runner, and on whose behalf it runs. Flags win. To record the same again changes nothing, so a repeated step does no harm.`

func (a *app) recordCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "record", Short: "Tell the chain what a pipeline has made", Long: recordHelp, GroupID: groupWrite,
		Example: `  catenary record commit
  catenary record build --module web --publish web@1.20
  catenary record publication web@1.20 --build acme/web/512`,
	}
	return group(cmd, a.recordCommitCommand(), a.recordBuildCommand(), a.recordPublicationCommand())
}

// fill takes over what the flags leave open.
func fill(field *string, found string) {
	if *field == "" {
		*field = found
	}
}

// need gives a usage error for what neither a flag nor the environment says.
func need(value, flag string, p pipeline) error {
	if value != "" {
		return nil
	}
	if p.system == "" {
		return usagef("--%s is missing (this is not GitHub Actions, GitLab CI or Jenkins, where it may fill itself)", flag)
	}
	return usagef("--%s is missing: %s does not tell it here", flag, p.system)
}

func (a *app) recordCommitCommand() *cobra.Command {
	var c commands.RecordCommit
	cmd := &cobra.Command{Use: "commit", Short: "Record a commit", Args: cobra.NoArgs}
	w := a.writeFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&c.Repository, "repository", "", "the repository's `name`, as in acme/shop")
	flags.StringVar(&c.Commit, "commit", "", "the commit's `hash`")
	flags.StringVar(&c.Branch, "branch", "", "the `branch` it stands on")
	flags.StringVar(&c.Author, "author", "", "who wrote it, by `name`")
	a.timeVar(flags, &c.Merged, "merged", "`time` it came onto the branch")
	a.timeVar(flags, &c.Heard, "heard", "`time` you were told")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		p := detectPipeline(a.Env)
		fill(&c.Repository, p.repository)
		fill(&c.Commit, p.commit)
		fill(&c.Branch, p.branch)
		fill(&c.Author, p.author)
		fill(&w.options.OnBehalfOf, p.person)
		if err := errors.CombineErrors(need(c.Repository, "repository", p), need(c.Commit, "commit", p)); err != nil {
			return err
		}
		return a.write(cmd, w, "record commit "+shortCommit(c.Commit)+" of "+c.Repository, c)
	}
	return cmd
}

func (a *app) recordBuildCommand() *cobra.Command {
	var b commands.RecordedBuild
	var id, failed, manifest, publish string
	var made []string
	cmd := &cobra.Command{
		Use: "build", Short: "Record a build and what became of it", Args: cobra.NoArgs,
		Long: `Build records that a build was made, or with --failed that it could not be made, also when it was never asked through the
chain. With --publish it records what the build published, too, by a second command: an answer is printed for each.`,
	}
	w := a.writeFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&id, "build", "", "the build's `id` (default made of the pipeline's run and the module)")
	flags.StringVar(&b.Module, "module", "", "the `module` that was built")
	flags.StringVar(&b.Repository, "repository", "", "the repository's `name`, as in acme/shop")
	flags.StringVar(&b.Commit, "commit", "", "the commit's `hash`")
	flags.StringVar(&b.Ref, "ref", "", "the branch or tag that was built")
	flags.StringVar(&b.Path, "path", "", "the `place` in the repository")
	flags.StringVar(&b.Seat, "seat", "", "the repository's logical `name`")
	flags.StringVar(&b.On, "on", "", "the `machine` or service that built")
	flags.StringVar(&b.For, "for", "", "what it was for: merge, plan, build or assign")
	flags.StringVar(&b.ReuseKey, "reuse-key", "", "`text` that is the same for builds with the same result")
	flags.StringVar(&failed, "failed", "", "why it failed, in a `sentence`; without it, it succeeded")
	flags.StringArrayVar(&made, "made", nil, "a thing it made, as `NAME[=REFERENCE]`; may be given again")
	flags.StringVar(&manifest, "manifest", "", "`JSON` about the build, or @FILE; kept byte for byte")
	flags.StringVar(&publish, "publish", "", "what it published: `NAME@VERSION` or a digest")
	cmd.MarkFlagsMutuallyExclusive("failed", "publish")
	cmd.MarkFlagsMutuallyExclusive("failed", "made")
	cmd.MarkFlagsMutuallyExclusive("failed", "manifest")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		p := detectPipeline(a.Env)
		fill(&b.Repository, p.repository)
		fill(&b.Commit, p.commit)
		fill(&b.Ref, p.ref)
		fill(&b.On, p.runner)
		fill(&w.options.OnBehalfOf, p.person)
		if p.run != "" && b.Module != "" {
			fill(&id, p.run+"/"+b.Module)
		}
		if err := w.complete(cmd); err != nil {
			return err
		}
		err := errors.CombineErrors(need(b.Module, "module", p), need(b.Repository, "repository", p))
		err = errors.CombineErrors(err, errors.CombineErrors(need(b.Commit, "commit", p), need(id, "build", p)))
		if err != nil {
			return err
		}
		payloads, err := a.buildPayloads(id, b, failed, manifest, publish, made)
		if err != nil {
			return err
		}
		list := make([]sending, len(payloads))
		for i, payload := range payloads {
			options := w.options
			if i > 0 {
				// The second command has an identity and a version of its own.
				options.ID, options.Expected = "", nil
			}
			what := []string{"record build " + id, "record what build " + id + " published"}[i]
			r, err := commands.Request(payload, options)
			if err != nil {
				return errors.Wrap(err, what)
			}
			list[i] = sending{what, r}
		}
		return a.sendAll(cmd.Context(), w, list)
	}
	return cmd
}

// buildPayloads makes the commands that record a build.
func (a *app) buildPayloads(id string, b commands.RecordedBuild, failed, manifest, publish string, made []string) ([]es.Payload, error) {
	if failed != "" {
		return []es.Payload{commands.FailBuild{ID: id, Failed: failed, Request: &b}}, nil
	}
	succeed := commands.SucceedBuild{ID: id, Request: &b}
	for _, m := range made {
		name, reference, _ := strings.Cut(m, "=")
		succeed.Made = append(succeed.Made, events.Made{Name: name, Reference: reference})
	}
	switch file, isFile := strings.CutPrefix(manifest, "@"); {
	case isFile:
		body, err := os.ReadFile(file)
		if err != nil {
			return nil, errors.Mark(errors.Wrap(err, "--manifest"), errUsage)
		}
		succeed.Manifest = body
	case manifest != "":
		succeed.Manifest = []byte(manifest)
	}
	payloads := []es.Payload{succeed}
	if publish != "" {
		r, err := parseReference(publish)
		if err != nil {
			return nil, err
		}
		payloads = append(payloads, commands.PublishBuild{ID: id, Reference: r})
	}
	return payloads, nil
}

func (a *app) recordPublicationCommand() *cobra.Command {
	var ref referenceFlags
	var c commands.RecordPublication
	cmd := &cobra.Command{
		Use: "publication [NAME@VERSION | DIGEST]", Short: "Record an artifact or package that was published", Args: cobra.MaximumNArgs(1),
	}
	w := a.writeFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&ref.pkg, "package", "", "the package, as `NAME@VERSION`")
	flags.StringVar(&ref.artifact, "artifact", "", "the artifact's `digest`")
	flags.StringVar(&c.Build, "build", "", "the build it comes from, by `id`")
	flags.StringVar(&c.Commit, "commit", "", "the `commit` it was made of")
	flags.StringVar(&c.Module, "module", "", "the `module` it is")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		if c.Reference, err = ref.reference(); err != nil {
			return err
		}
		switch {
		case len(args) == 1 && !c.Reference.IsZero():
			return usagef("%q is given, and a flag too: one of them", args[0])
		case len(args) == 1:
			if c.Reference, err = parseReference(args[0]); err != nil {
				return err
			}
		case c.Reference.IsZero():
			return usagef("what was published? give NAME@VERSION or a digest")
		}
		p := detectPipeline(a.Env)
		fill(&c.Commit, p.commit)
		fill(&w.options.OnBehalfOf, p.person)
		return a.write(cmd, w, "record publication "+c.Reference.String(), c)
	}
	return cmd
}

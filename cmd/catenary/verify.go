package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"catenary/embedded"
	"catenary/es/project"
	"catenary/internal/natsconn"
	"catenary/internal/run"
)

const verifyHelp = `Verify checks the whole record.

It reads the event stream from its first event and checks that none is missing, changed or swapped; folds all of it afresh and
compares every value of every bucket; and compares the copies of the buckets that people read with the buckets themselves. It
names each difference, and then ends with exit code 1.

With --store it checks the store of a chain that does not run. No writer starts on a stream that was changed, so that is the
way to find out what was.

Keep the head it prints (the last event's sequence and hash): a stream that was cut short, and its buckets with it, can only be
told from a short one by somebody who knows an earlier head.`

// mirrorPatience is how long a copy may take to have what its bucket had when it was checked: a server that has recovered it before its bucket asks again after
// half a minute.
const mirrorPatience = 45 * time.Second

// verification is all that verify finds.
type verification struct {
	OK bool `json:"ok"`
	project.Report
	Mirrors []mirrorReport `json:"mirrors"`
}

// mirrorReport says whether the people's copy of a bucket is the same as the bucket.
type mirrorReport struct {
	Name string `json:"name"`
	// Revision is the last one that was compared, Digest that of the copy up to it.
	Revision uint64 `json:"revision"`
	Digest   string `json:"digest,omitempty"`
	// Problem says how the copy differs; empty when it does not.
	Problem string `json:"problem,omitempty"`
}

// errDiffers means that the record is not as it should be. What differs was shown.
var errDiffers = errors.New("the record does not hold")

func (a *app) verifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "verify", Short: "Check that the record is whole and unchanged", Long: verifyHelp, GroupID: groupRead, Args: cobra.NoArgs,
	}
	output := formatFlag(cmd, formatTable)
	store := cmd.Flags().String("store", "", "check the store in `DIR`, of a chain that does not run")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		show := func(v verification, err error) error {
			if err != nil {
				return err
			}
			return a.concludeVerification(*output, v, *store)
		}
		if cmd.Flags().Changed("store") {
			if err := notEmpty(map[string]string{"store": *store}); err != nil {
				return err
			}
			return show(a.verifyStore(cmd.Context(), *store))
		}
		return a.withBus(cmd.Context(), slog.New(slog.DiscardHandler), func(ctx context.Context, s *session) error {
			return show(a.verify(ctx, s))
		})
	}
	return cmd
}

// concludeVerification shows what was found, and fails when it is not as it should be. Store is that of a chain that does not run; empty for one
// that does.
func (a *app) concludeVerification(f format, v verification, store string) error {
	if err := a.showVerification(f, v); err != nil {
		return err
	}
	if !v.OK {
		return errors.WithHint(errDiffers, v.advice(store))
	}
	a.sayf("the record holds: %d events, head %s", v.Events, v.Head.Hash)
	return nil
}

// advice says what to do about what was found, which depends on what it is.
func (v verification) advice(store string) string {
	var differ, behind, unfolded, copies bool
	for _, b := range v.Buckets {
		differ = differ || len(b.Differences) > 0 || b.More > 0
		behind = behind || b.Behind > 0
		unfolded = unfolded || b.Unfolded != ""
	}
	for _, m := range v.Mirrors {
		copies = copies || m.Problem != ""
	}
	advice := []string{"what differs is listed above"}
	add := func(is bool, words string) {
		if is {
			advice = append(advice, words)
		}
	}
	if v.Chain != "" {
		add(true, "no event is recorded over a damaged stream, and none is folded from it: bring it back from a replica or a backup")
		return strings.Join(advice, "; ")
	}
	start := "start the chain (catenary up --store " + shellWord(store) + ")"
	if store == "" {
		add(behind, "what a bucket lacks is folded into it again by itself; if it stays behind, catenary projections ls says why")
		add(differ, "keep the store as it is until you know why; then: catenary repair, which says what has to be built anew")
	} else {
		add(behind, start+": what a bucket lacks at its end is folded into it again by itself")
		add(differ, "keep the store as it is until you know why; then "+start+", which builds anew what lacks values, and: catenary repair, which mends the rest or says what has to be built anew")
	}
	add(unfolded, "what can't be folded is shown, with what to do, by catenary projections show VIEW")
	add(copies && !differ && !behind, "a copy is compared with its bucket at every start, and made anew where it is ahead or ends otherwise")
	return strings.Join(advice, "; ")
}

// verify asks the query service about stream and buckets, and looks at the copies itself.
func (a *app) verify(ctx context.Context, s *session) (verification, error) {
	var progress func(uint64)
	if isTerminal(a.Stderr) {
		progress = func(events uint64) { a.sayf("%s", a.paint(dim, fmt.Sprintf("%d events folded", events))) }
	}
	report, err := s.queries.Verify(ctx, progress)
	if err != nil {
		return verification{}, err
	}
	return s.withMirrors(ctx, report)
}

// verifyStore checks the store of a chain that does not run. It serves it meanwhile, without writer and projector: nothing
// is recorded.
func (a *app) verifyStore(ctx context.Context, dir string) (v verification, err error) {
	if err := embedded.CheckStore(dir); err != nil {
		return v, errors.WithHint(err, "give the directory that catenary up was given as --store")
	}
	log := slog.New(slog.DiscardHandler)
	err = a.withStore(ctx, embedded.Config{StoreDir: dir, Logger: log}, func(server *embedded.Server, nc *nats.Conn) error {
		if err := prepare(ctx, server); err != nil {
			return err
		}
		report, err := run.Verify(ctx, nc, server.Options())
		if err != nil {
			return err
		}
		s, err := a.dial(ctx, natsconn.Config{Server: server.ClientURL(), Logger: log})
		if err != nil {
			return err
		}
		defer s.conn.Close()
		v, err = s.withMirrors(ctx, report)
		return err
	})
	return v, err
}

// withMirrors adds what is found about the copies of the buckets.
func (s *session) withMirrors(ctx context.Context, report project.Report) (verification, error) {
	v := verification{OK: report.OK(), Report: report, Mirrors: []mirrorReport{}}
	for _, b := range report.Buckets {
		m, err := s.verifyMirror(ctx, b)
		if err != nil {
			return verification{}, errors.Wrapf(err, "compare the copy of %s", b.Bucket)
		}
		v.OK = v.OK && m.Problem == ""
		v.Mirrors = append(v.Mirrors, m)
	}
	return v, nil
}

// verifyMirror compares the copy of a bucket that is read here with what the bucket was found to be.
func (s *session) verifyMirror(ctx context.Context, b project.BucketReport) (mirrorReport, error) {
	m := mirrorReport{Name: b.Bucket, Revision: b.Revision}
	waiting, cancel := context.WithTimeout(ctx, mirrorPatience)
	defer cancel()
	err := s.reader.WaitRevision(waiting, b.Bucket, b.Revision)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		m.Problem = err.Error()
		return m, nil
	}
	if err != nil {
		return m, err
	}
	bucket, err := s.open(ctx, b.Bucket)
	if err != nil {
		return m, err
	}
	if m.Digest, err = project.Digest(ctx, bucket, b.Revision); err != nil {
		return m, err
	}
	if m.Digest != b.Digest {
		m.Problem = "it differs from its bucket; to have it made anew, stop the chain, delete " + embedded.MirrorPath(b.Bucket) + " in its store, and start it; or: catenary rebuild --anew " + b.Name
	}
	return m, nil
}

func (a *app) showVerification(f format, v verification) error {
	if f == formatJSON || f == formatYAML {
		var body bytes.Buffer
		e := json.NewEncoder(&body)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			return errors.Wrap(err, "encode the report")
		}
		return a.printOne(f, nil, line{name: "report", json: bytes.TrimSpace(body.Bytes())})
	}
	found := v.differences()
	if f == formatTable {
		p := a.newPrinter(f, "BUCKET", "KEYS", "VALUES", "MENDED", "REVISION", "EQUALS THE FOLD", "COPY EQUALS IT")
		for i, b := range v.Buckets {
			if err := p.add(line{cells: func() []string {
				return []string{b.Bucket, strconv.Itoa(b.Keys), strconv.FormatUint(b.Values, 10), number(b.Mended), strconv.FormatUint(b.Revision, 10), v.equal(b.OK()), v.equal(v.Mirrors[i].Problem == "")}
			}}); err != nil {
				return err
			}
		}
		if err := p.end(); err != nil || len(found) == 0 {
			return err
		}
		if _, err := fmt.Fprintln(a.Stdout); err != nil {
			return errors.Wrap(err, "write the output")
		}
	}
	// As names, only what differs is listed.
	p := a.newPrinter(f, "WHERE", "KEY", "EVENT", "WHAT", "DETAIL")
	for _, d := range found {
		d.shade = red
		if err := p.add(d); err != nil {
			return err
		}
	}
	return p.end()
}

// differences lists all that is not as it should be.
func (v verification) differences() []line {
	var found []line
	add := func(where, key string, event uint64, what, detail string) {
		name := where
		if key != "" {
			name += " " + key
		}
		found = append(found, line{name: name, cells: func() []string { return []string{where, key, number(event), what, detail} }})
	}
	if v.Chain != "" {
		add("the stream", "", v.Events+1, "damaged", v.Chain)
	}
	for _, b := range v.Buckets {
		if b.Unfolded != "" {
			add(b.Bucket, "", 0, "not folded", b.Unfolded)
		}
		if b.Behind > 0 {
			add(b.Bucket, "", b.Behind, "behind", "the values of this event and those after it are not in the bucket")
		}
		for _, d := range b.Differences {
			add(b.Bucket, d.Key, d.Event, string(d.Kind), d.Detail)
		}
		if b.More > 0 {
			add(b.Bucket, "", 0, "more", strconv.Itoa(b.More)+" further differences")
		}
	}
	for _, m := range v.Mirrors {
		if m.Problem != "" {
			add("copy of "+m.Name, "", 0, "differs", m.Problem)
		}
	}
	return found
}

// equal says whether something equals what it should. When the stream is damaged nothing was compared beyond that.
func (v verification) equal(ok bool) string {
	switch {
	case !ok:
		return "NO"
	case v.Chain != "":
		return "in part"
	default:
		return "yes"
	}
}

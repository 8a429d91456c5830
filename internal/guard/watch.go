package guard

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/internal/streams"
	"catenary/internal/topology"
)

const (
	// DefaultEvery is how often is looked without a word from the server, which may get lost.
	DefaultEvery = 30 * time.Second
	// againAfter is how soon is looked again after a look that failed.
	againAfter = 2 * time.Second
	// lookTimeout bounds one look.
	lookTimeout = 10 * time.Second
	// undoTimeout bounds one change of a stream.
	undoTimeout = 10 * time.Second
	// advisories is what the server tells of the streams of its account. It ends with what has happened and the stream's name.
	advisories = "$JS.EVENT.ADVISORY.STREAM.*.>"
	// mostTold bounds the words of the server that wait: one is enough to look at all.
	mostTold = 64
)

// Alarm is something that is not as it must be, or was not.
type Alarm struct {
	Stream string `json:"stream"`
	// Field is what of it, Expected and Found how it must be and how it was found.
	Field    string `json:"field"`
	Expected string `json:"expected"`
	Found    string `json:"found"`
	// Since is when it was found first, in UTC.
	Since time.Time `json:"since"`
	// Undone says that it is as it must be again. The alarm stays for [Remembered], so that somebody asks who it was.
	Undone bool `json:"undone"`
	// Problem says why it could not be undone.
	Problem string `json:"problem,omitempty"`
}

// Remembered is how long what was undone is told.
const Remembered = 24 * time.Hour

// Fields that are no fields of a configuration.
const (
	fieldThere  = "the stream"
	fieldEvents = "events"
)

// gone says that the stream is not there any more.
func (a Alarm) gone() bool { return a.Field == fieldThere }

// String says what was found.
func (a Alarm) String() string {
	s := fmt.Sprintf("stream %s has %s %s, expected %s", a.Stream, a.Field, a.Found, a.Expected)
	if a.gone() {
		s = fmt.Sprintf("stream %s is gone", a.Stream)
	}
	switch {
	case a.Undone:
		return s + "; it is undone"
	case a.Problem != "":
		return s + "; it can't be undone: " + a.Problem
	}
	return s
}

// Advice says what to do.
func (a Alarm) Advice() string {
	switch {
	case a.gone() && a.Stream != topology.EventStream && a.Undone:
		return "find out who deleted it; what is not folded from the events is lost with it"
	case a.gone() && a.Stream != topology.EventStream:
		return "start the writer and the projector again, which make it anew; what is not folded from the events is lost with it"
	case a.gone(), a.Field == fieldEvents:
		return "bring it back from a replica, or with catenary restore from a backup; then: catenary verify"
	case a.Undone:
		return "find out who changed it: nobody but the processes of the chain may administer its account"
	}
	return "set it back with nats stream edit; what can't be set back needs catenary backup, and catenary restore into a new store"
}

// State is what was found.
type State struct {
	// At is when it was looked at last, in UTC. Zero means not yet.
	At     time.Time `json:"at,omitzero"`
	Alarms []Alarm   `json:"alarms"`
	// Problem says why it could not be looked at since; empty when it could.
	Problem string `json:"problem,omitempty"`
}

// Open gives the alarms of what is still not as it must be.
func (s State) Open() []Alarm {
	return slices.DeleteFunc(slices.Clone(s.Alarms), func(a Alarm) bool { return a.Undone })
}

// Config says what is guarded.
type Config struct {
	// Conn is a connection in the ledger's account.
	Conn *nats.Conn
	// Streams are the limits that the streams were made with.
	Streams topology.Options
	// Every is how often it is looked. Default: [DefaultEvery].
	Every time.Duration
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Logger hears of each alarm once. Default: slog.Default().
	Logger *slog.Logger
}

// Watch guards the streams. It may be used by many goroutines.
type Watch struct {
	cfg Config
	js  jetstream.JetStream

	// seen are the streams that were there at the last look that found any, by what is to stay: a stream that the processes work with, or a view, one of
	// whose buckets has to be there. It belongs to who looks.
	seen map[string][]string

	mu    sync.Mutex
	state State
}

// New returns a watch that has not looked yet.
func New(c Config) (*Watch, error) {
	js, err := jetstream.New(c.Conn)
	if err != nil {
		return nil, errors.Wrap(err, "guard the streams")
	}
	if c.Every <= 0 {
		c.Every = DefaultEvery
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return &Watch{cfg: c, js: js, state: State{Alarms: []Alarm{}}}, nil
}

// State gives what was found last.
func (w *Watch) State() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.state
	s.Alarms = slices.Clone(s.Alarms)
	return s
}

// Run looks when the server tells of a change, and now and then, until the context ends. It ends before that with an error marked
// [es.ErrBrokenChain] when events are missing in the event stream, or the stream is: nothing may be appended to what is left.
func (w *Watch) Run(ctx context.Context) error {
	return w.run(ctx, func(err error) error { return err })
}

// Tell does the same for who appends nothing: it goes on over what is missing, so that somebody tells of it when the writer has ended.
func (w *Watch) Tell(ctx context.Context) error {
	return w.run(ctx, func(error) error { return nil })
}

func (w *Watch) run(ctx context.Context, missing func(error) error) error {
	told := make(chan *nats.Msg, mostTold)
	sub, err := w.cfg.Conn.ChanSubscribe(advisories, told)
	if err != nil {
		return errors.Wrap(err, "guard the streams: listen to the server")
	}
	defer func() { _ = sub.Unsubscribe() }() // it fails only with the connection, whose end has its own report
	for {
		if err := w.Look(ctx); err != nil {
			if err := missing(err); err != nil {
				return err
			}
		}
		wait := w.cfg.Every
		if w.State().Problem != "" {
			wait = min(wait, againAfter)
		}
		next := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			next.Stop()
			return nil
		case <-next.C:
		case <-told:
			next.Stop()
			for len(told) > 0 {
				<-told // one look sees them all
			}
		}
	}
}

// Look looks at all streams now, and undoes what is not as it must be. It gives the errors of Run. What it could not look at is in the
// state.
func (w *Watch) Look(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	there, err := w.streams(bounded)
	if err == nil {
		err = w.unlisted(bounded, there)
	}
	if ctx.Err() != nil {
		return nil // told to stop
	}
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.state.Problem = err.Error()
		return nil
	}
	var alarms []Alarm
	missing, err := w.missing(ctx, there[topology.EventStream])
	if missing != nil {
		alarms = append(alarms, *missing) // the gravest first
	}
	for _, want := range w.wanted(there) {
		alarms = append(alarms, w.judge(ctx, want, there[want.Name])...)
	}
	w.take(append(alarms, w.gone(bounded, there)...))
	return err
}

// gone gives an alarm for each stream that was there once and has to stay: those that the processes work with, and of each view the bucket that is
// read. The event stream is judged by itself.
func (w *Watch) gone(ctx context.Context, there map[string]*jetstream.StreamInfo) (alarms []Alarm) {
	found := map[string][]string{}
	for _, name := range topology.WorkStreams() {
		if there[name] != nil {
			found[name] = []string{name}
		}
	}
	for name := range there {
		if view, _, ok := topology.GenerationOf(strings.TrimPrefix(name, topology.BucketStream(""))); ok {
			found[view] = append(found[view], name)
		}
	}
	for what, last := range w.seen {
		if found[what] != nil {
			continue
		}
		found[what] = last
		if w.lost(ctx, last) {
			alarms = append(alarms, Alarm{Stream: last[0], Field: fieldThere, Expected: "there", Found: "gone"})
		}
	}
	w.seen = found
	slices.SortFunc(alarms, func(a, b Alarm) int { return strings.Compare(a.Stream, b.Stream) })
	return alarms
}

// lost says whether the server says of all these streams that they are not there. A list leaves out what has no leader.
func (w *Watch) lost(ctx context.Context, names []string) bool {
	for _, name := range names {
		if _, err := w.js.Stream(ctx, name); !errors.Is(err, jetstream.ErrStreamNotFound) {
			return false
		}
	}
	return true
}

// streams gives all streams of the account.
func (w *Watch) streams(ctx context.Context) (map[string]*jetstream.StreamInfo, error) {
	there := map[string]*jetstream.StreamInfo{}
	list := w.js.ListStreams(ctx)
	for info := range list.Info() {
		there[info.Config.Name] = info
	}
	return there, errors.Wrap(list.Err(), "look at the streams")
}

// unlisted looks again for the event stream when it is not among the others. A list leaves out streams that have no leader at the moment, as after
// the loss of a server: these are there, and nothing can be said of them until there is one. It gives an error then.
func (w *Watch) unlisted(ctx context.Context, there map[string]*jetstream.StreamInfo) error {
	if there[topology.EventStream] != nil {
		return nil
	}
	stream, err := w.js.Stream(ctx, topology.EventStream)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil
	case err != nil:
		return errors.Wrapf(err, "look at stream %s", topology.EventStream)
	}
	there[topology.EventStream] = stream.CachedInfo()
	return nil
}

// wanted gives what the event stream, and those of the others that are there, must be.
func (w *Watch) wanted(there map[string]*jetstream.StreamInfo) []jetstream.StreamConfig {
	all := []jetstream.StreamConfig{topology.Events(w.cfg.Streams)}
	for _, of := range []func(topology.Options) jetstream.StreamConfig{
		topology.Checkpoints, topology.Inbox, topology.Parked, topology.Receipts, topology.Actors, topology.Views,
	} {
		c := of(w.cfg.Streams)
		if there[c.Name] == nil {
			continue
		}
		if bucket, isBucket := strings.CutPrefix(c.Name, topology.BucketStream("")); isBucket && c.RePublish == nil {
			c.RePublish = topology.Republish(bucket)
		}
		all = append(all, c)
	}
	for name := range there {
		bucket, isBucket := strings.CutPrefix(name, topology.BucketStream(""))
		if _, _, view := topology.GenerationOf(bucket); isBucket && view {
			c := topology.Bucket(bucket, w.cfg.Streams)
			c.RePublish = topology.Republish(bucket)
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b jetstream.StreamConfig) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// judge compares a stream with what it must be, and undoes what it can. It gives an alarm for each field that is not as it must be.
func (w *Watch) judge(ctx context.Context, want jetstream.StreamConfig, info *jetstream.StreamInfo) []Alarm {
	if info == nil {
		return []Alarm{{Stream: want.Name, Field: fieldThere, Expected: "there", Found: "gone", Problem: "an empty one in its place would hide that"}}
	}
	found := dangers(want, info.Config)
	if len(found) == 0 {
		return nil
	}
	problem, after := "a backup is being restored into it", found
	if info.Config.Metadata[streams.RestoringKey] != "" {
		found = found[:1] // that says all
	} else {
		var err error
		if after, err = w.undo(ctx, want, info.Config); err != nil {
			problem = err.Error()
		}
	}
	alarms := make([]Alarm, 0, len(found))
	for _, f := range found {
		a := Alarm{Stream: want.Name, Field: f.Field, Expected: f.Expected, Found: f.Found, Undone: true}
		if slices.ContainsFunc(after, func(e *streams.ConfigError) bool { return e.Field == f.Field }) {
			a.Undone, a.Problem = false, problem
		}
		alarms = append(alarms, a)
	}
	return alarms
}

// undo sets a stream back to what it must be, and gives what is not so then, and why. What the server does not take back keeps nothing else from
// being undone.
func (w *Watch) undo(ctx context.Context, want, found jetstream.StreamConfig) ([]*streams.ConfigError, error) {
	ctx, cancel := context.WithTimeout(ctx, undoTimeout)
	defer cancel()
	mended := streams.Mended(want, found)
	stream, err := w.js.UpdateStream(ctx, mended)
	if err != nil {
		var refused error
		if stream, refused = w.js.UpdateStream(ctx, streams.Yielding(mended, found)); refused != nil {
			return dangers(want, found), err
		}
	}
	after := dangers(want, stream.CachedInfo().Config)
	if err == nil && len(after) > 0 {
		err = after[0]
	}
	return after, err
}

// dangers gives what of a stream is not as it must be.
func dangers(want, found jetstream.StreamConfig) []*streams.ConfigError {
	return streams.Dangers("what is in it", want, found)
}

// missing says how many events are not in the event stream any more. It looks twice: a server that is taking over may not know all yet.
func (w *Watch) missing(ctx context.Context, info *jetstream.StreamInfo) (*Alarm, error) {
	if info == nil {
		gone := Alarm{Stream: topology.EventStream, Field: fieldThere}
		return nil, errors.WithHint(errors.Mark(errors.New(gone.String()), es.ErrBrokenChain), gone.Advice())
	}
	if streams.Missing(info.State) == 0 {
		return nil, nil
	}
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	stream, err := w.js.Stream(bounded, topology.EventStream)
	if err != nil {
		return nil, nil // the next look tells
	}
	info = stream.CachedInfo()
	n := streams.Missing(info.State)
	if n == 0 {
		return nil, nil
	}
	a := &Alarm{
		Stream: topology.EventStream, Field: fieldEvents, Expected: fmt.Sprintf("1 to %d", info.State.LastSeq), Found: fmt.Sprintf("all but %d", n),
		Problem: "what was dropped is not in this server any more",
	}
	return a, errors.WithHint(errors.Mark(errors.Newf("the event stream ends at event %d, but %d events are missing in it: they were dropped, or its files are damaged", info.State.LastSeq, n), es.ErrBrokenChain), a.Advice())
}

// take takes over what was found, and tells what is new.
func (w *Watch) take(found []Alarm) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.cfg.Now().UTC()
	var alarms []Alarm
	for _, a := range found {
		a.Since = now
		before := slices.IndexFunc(w.state.Alarms, func(b Alarm) bool { return same(a, b) })
		if before >= 0 && !w.state.Alarms[before].Undone {
			a.Since = w.state.Alarms[before].Since
		}
		if before < 0 || w.state.Alarms[before].Undone != a.Undone || a.Undone {
			w.cfg.Logger.Error("a stream is not as it must be", "alarm", a.String(), "advice", a.Advice())
		}
		alarms = append(alarms, a)
	}
	for _, b := range w.state.Alarms {
		if slices.ContainsFunc(alarms, func(a Alarm) bool { return same(a, b) }) {
			continue
		}
		if !b.Undone && slices.ContainsFunc(alarms, func(a Alarm) bool { return a.Stream == b.Stream && a.gone() }) {
			continue // what it was like says nothing any more
		}
		if !b.Undone {
			// Somebody else has set it back.
			b.Undone, b.Problem = true, ""
			w.cfg.Logger.Info("a stream is as it must be again", "stream", b.Stream, "field", b.Field)
		}
		if now.Sub(b.Since) < Remembered {
			alarms = append(alarms, b)
		}
	}
	if alarms == nil {
		alarms = []Alarm{}
	}
	w.state = State{At: now, Alarms: alarms}
}

// same says whether two alarms are about the same.
func same(a, b Alarm) bool { return a.Stream == b.Stream && a.Field == b.Field }

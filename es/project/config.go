package project

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// Defaults of a [Config].
const (
	// DefaultMaxInFlight bounds the values of one view that are handed over and not yet answered. A thousand cover the way
	// to a bucket and back many times over.
	DefaultMaxInFlight = 1024
	// DefaultMarkEvents is after how many events without a value a mark is left: reading so many again takes a moment.
	DefaultMarkEvents = 10_000
	// DefaultMarkInterval is how long a view is idle before it leaves a mark.
	DefaultMarkInterval = time.Second
	// DefaultCheckInterval is how often an idle view looks whether its bucket still ends where it left it.
	DefaultCheckInterval = 5 * time.Second
	// DefaultMaxHandOver is how long a view may stand still while it is handed over to a new generation, of which all but the last
	// values are there by then. A copy follows within milliseconds.
	DefaultMaxHandOver = 10 * time.Second
	// DefaultMaxHold is how long the reader waits for a view that takes nothing. A busy view takes its next event within
	// milliseconds; one whose bucket does not answer would hold up all others.
	DefaultMaxHold = 2 * time.Second
)

// maxInFlightBytes bounds the values of one view in flight by size: eight views with large values must not fill the
// memory, nor a server's queue (128 MB a stream).
const maxInFlightBytes = 8 << 20

// Config is what a [Runner] needs. Store, Registry and Views must be given.
type Config struct {
	Store    es.Store
	Registry *es.Registry
	Views    []ViewSpec
	// Orders says where people's decisions about views are. Nil means that nobody decides about them.
	Orders *Orders
	// Losses says where it stands that a loss of events was accepted. Nil means that none ever is.
	Losses *Losses
	// Marks keeps how far each view has read. Nil means that views which seldom write a value read more again at a start.
	Marks Marks
	// Generations keeps the buckets of views whose ViewSpec names none, so that one can follow on another. Nil means that a
	// bucket which can't be mended in place stops its view.
	Generations Generations
	// Logger gets what an operator should know. Nil means no log.
	Logger *slog.Logger
	// Clock tells since when a view is stopped. Nil means time.Now.
	Clock func() time.Time
	// Trace is told of each event with a traceparent that a view has values of, when it is folded; what it gives is called when all of
	// them stand. Both MUST NOT block. Nil means that nobody traces.
	Trace func(view string, e *es.Event, values int) (stored func())

	// MaxInFlight bounds the unanswered values of one view. Zero means DefaultMaxInFlight.
	MaxInFlight int
	// MarkEvents is after how many events without a value a mark is left. Zero means DefaultMarkEvents.
	MarkEvents uint64
	// MarkInterval is how long a view is idle before it leaves a mark. Zero means DefaultMarkInterval.
	MarkInterval time.Duration
	// CheckInterval is how often an idle view looks at its bucket's end. Zero means DefaultCheckInterval.
	CheckInterval time.Duration
	// MaxHandOver bounds for how long a view stands still while it is handed over to a new generation. Zero means DefaultMaxHandOver.
	MaxHandOver time.Duration
	// KeepFormer is for how long a generation that readers were sent away from is kept. Zero means DefaultKeepFormer.
	KeepFormer time.Duration
	// TidyInterval is how often such generations are looked at. Zero means DefaultTidyInterval.
	TidyInterval time.Duration
	// MaxHold is how long the reader waits for a view that takes nothing. Zero means DefaultMaxHold.
	MaxHold time.Duration
}

// ViewSpec is a view with its bucket.
type ViewSpec struct {
	// New makes the view without any state. It is called again whenever the view is taken up from its bucket.
	New func() View
	// Bucket is the view's. Nil means that of the generation which is read.
	Bucket Bucket
}

// Specs pairs each view of a list with its bucket. Open is nil where views keep generations. newViews MUST give the same views in
// the same order at every call. It gives the errors of open.
func Specs(newViews func() []View, open func(bucket string) (Bucket, error)) ([]ViewSpec, error) {
	views := newViews()
	specs := make([]ViewSpec, len(views))
	for i, v := range views {
		specs[i].New = func() View { return newViews()[i] }
		if open == nil {
			continue
		}
		var err error
		if specs[i].Bucket, err = open(v.Name()); err != nil {
			return nil, errors.Wrapf(err, "bucket of view %s", v.Name())
		}
	}
	return specs, nil
}

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Store == nil:
		return c, errors.New("projector: no store is given")
	case c.Registry == nil:
		return c, errors.New("projector: no registry of event types is given")
	case len(c.Views) == 0:
		return c, errors.New("projector: no view is given")
	}
	names := map[string]bool{}
	for i, v := range c.Views {
		if v.New == nil || v.Bucket == nil && c.Generations == nil {
			return c, errors.Newf("projector: view %d has no constructor or no bucket", i+1)
		}
		name := v.New().Name()
		if names[name] {
			return c, errors.Newf("projector: two views write the bucket %s", name)
		}
		names[name] = true
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.MaxInFlight <= 0 {
		c.MaxInFlight = DefaultMaxInFlight
	}
	if c.MarkEvents == 0 {
		c.MarkEvents = DefaultMarkEvents
	}
	if c.MarkInterval <= 0 {
		c.MarkInterval = DefaultMarkInterval
	}
	if c.CheckInterval <= 0 {
		c.CheckInterval = DefaultCheckInterval
	}
	if c.MaxHandOver <= 0 {
		c.MaxHandOver = DefaultMaxHandOver
	}
	if c.KeepFormer <= 0 {
		c.KeepFormer = DefaultKeepFormer
	}
	if c.TidyInterval <= 0 {
		c.TidyInterval = DefaultTidyInterval
	}
	if c.MaxHold <= 0 {
		c.MaxHold = DefaultMaxHold
	}
	return c, nil
}

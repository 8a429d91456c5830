package store

import (
	"context"
	"database/sql"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/audit"
	"catenary/es"
	"catenary/es/project"
)

// DefaultLinger is how long an event waits for others to be taken in with it. A transaction for each of a thousand events a second
// would cost more than the events.
const DefaultLinger = 20 * time.Millisecond

// Config is what a store needs. Path, Events and Registry must be given.
type Config struct {
	// Path is the file's.
	Path string
	// Events is the stream.
	Events   es.Store
	Registry *es.Registry
	// Logger gets what an operator should know. Nil means no log.
	Logger *slog.Logger
	// Clock tells what now is, in questions. Nil means time.Now.
	Clock func() time.Time
	// Linger is how long an event waits for others. Zero means DefaultLinger.
	Linger time.Duration
	// Feeds bring what does not come from the stream: names of actors, refused commands.
	Feeds []Feed
}

// Feed brings what does not come from the stream into the file, until its context ends. It runs whenever a file is taken up, which may
// be a new one with nothing of it. When it fails it runs again a little later.
type Feed func(ctx context.Context, s *Store) error

// Store takes events into its file and answers questions from it.
type Store struct {
	cfg   Config
	track tracker

	// mu guards the pools. It is held for reading while a connection is taken from one, so that none is closed under a question.
	mu sync.RWMutex
	// questions and statements are the pools of readers; nil until there is a file that can be asked.
	questions, statements *sql.DB

	// writes hands what is not an event to whoever writes the file.
	writes chan write
	// damage hands what a question has found broken to whoever writes the file. One is enough.
	damage chan error
}

// New checks the configuration. Nothing is opened before [Store.Run].
func New(c Config) (*Store, error) {
	if c.Path == "" || c.Events == nil || c.Registry == nil {
		return nil, errors.AssertionFailedf("audit store: path, events and registry must be given")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Linger <= 0 {
		c.Linger = DefaultLinger
	}
	return &Store{cfg: c, track: newTracker(), writes: make(chan write), damage: make(chan error, 1)}, nil
}

// Pauses between tries after trouble with the file or the stream.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
)

// Run takes in events until the context ends, and closes the file then. What it can't get over stops it where it is, with a
// reason that [Store.Status] shows; the file goes on answering. Trouble that may pass is tried again.
func (s *Store) Run(ctx context.Context) error {
	defer s.track.end()
	defer s.retire()
	anew := false
	s.again(ctx, "the audit store can't go on", func(ctx context.Context) error {
		err := s.steered(ctx, anew)
		var other *otherStream
		switch stopped := s.stopped(err); {
		case stopped && errors.As(err, &other):
			if err := s.awaitAcceptance(ctx, other.seen); err != nil {
				return err
			}
			s.track.resume()
			return s.putAside(ctx, other.seen)
		case stopped:
			<-ctx.Done()
			return nil
		}
		if anew = isDamaged(err); anew {
			err = errors.Wrap(err, "the file is damaged and is built anew")
		}
		if err != nil {
			s.track.hold(err.Error())
		}
		return err
	})
	return nil
}

// again does something until the context ends, with pauses between tries that grow while it fails at once.
func (s *Store) again(ctx context.Context, failed string, do func(context.Context) error) {
	pause := firstPause
	for {
		began := time.Now()
		err := do(ctx)
		if ctx.Err() != nil {
			return
		}
		s.cfg.Logger.Warn(failed+"; it is tried again", "reason", err)
		if time.Since(began) > maxPause {
			pause = firstPause
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		pause = min(2*pause, maxPause)
	}
}

// stopped says whether an error is one that only a person gets over, and shows it then.
func (s *Store) stopped(err error) bool {
	var stop *stopError
	if !errors.As(err, &stop) && !errors.Is(err, es.ErrBrokenChain) {
		return false
	}
	s.cfg.Logger.Error("the audit store has stopped", "reason", err)
	s.track.halt(err)
	return true
}

// steered runs the store as people decide, until it can't go on. Where it has stopped before there was a file to go on with, or is paused,
// it waits for what they decide next.
func (s *Store) steered(ctx context.Context, anew bool) error {
	for {
		control, err := s.readControl(ctx)
		if err != nil {
			return err
		}
		err = s.run(ctx, control, anew)
		var stop *stopError
		switch {
		case errors.Is(err, errOrdered):
			continue
		case errors.Is(err, errPaused):
			s.track.change(func(state *audit.StoreState) { state.Paused = control.Paused })
		case errors.As(err, &stop) && stop.at > 0:
			s.stopped(err)
		default:
			return err
		}
		if err := s.awaitOrder(ctx, control); err != nil {
			return err
		}
		s.track.resume()
	}
}

// run takes the file up, or builds it, and follows the stream. Where that stops, what is not an event can still be written.
func (s *Store) run(ctx context.Context, control *project.Control, anew bool) (err error) {
	w, err := s.takeUp(ctx, control, anew)
	if err != nil {
		return err
	}
	defer func() {
		if ctx.Err() != nil {
			// Who closes last leaves no journal behind. Readers can't.
			s.retire()
		}
		err = errors.CombineErrors(err, w.close())
	}()
	select {
	case <-s.damage: // of the file before
	default:
	}
	if err := s.publish(); err != nil {
		return err
	}
	s.track.change(func(state *audit.StoreState) {
		state.Event, state.Building, state.Trouble, state.Fold = w.place.head.Sequence, false, "", foldVersion
		w.tellPolicy(state)
	})
	s.track.taken(w.place.refused)
	feeding, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	for _, feed := range s.cfg.Feeds {
		group.Go(func() {
			s.again(feeding, "a feed of the audit store has failed", func(ctx context.Context) error { return feed(ctx, s) })
		})
	}
	return s.follow(ctx, w)
}

// idle gives no message until the context ends.
func idle(ctx context.Context, _ uint64) iter.Seq2[es.Message, error] {
	return func(func(es.Message, error) bool) { <-ctx.Done() }
}

// publish lets questions be answered from the file, and from no other any more.
func (s *Store) publish() error {
	questions, err := openReaders(s.cfg.Path, readers, remember)
	if err != nil {
		return err
	}
	statements, err := openReaders(s.cfg.Path, sqlReaders, guardStatements)
	if err != nil {
		return errors.CombineErrors(err, questions.Close())
	}
	s.mu.Lock()
	before := []*sql.DB{s.questions, s.statements}
	s.questions, s.statements = questions, statements
	s.mu.Unlock()
	s.track.change(func(state *audit.StoreState) { state.Answers = true })
	return closePools(before)
}

// retire closes the pools when nothing is answered any more.
func (s *Store) retire() {
	s.mu.Lock()
	before := []*sql.DB{s.questions, s.statements}
	s.questions, s.statements = nil, nil
	s.mu.Unlock()
	s.track.change(func(state *audit.StoreState) { state.Answers = false })
	if err := closePools(before); err != nil {
		s.cfg.Logger.Warn("the audit store could not be closed", "reason", err)
	}
}

func closePools(pools []*sql.DB) error {
	var failure error
	for _, p := range pools {
		if p != nil {
			failure = errors.CombineErrors(failure, p.Close())
		}
	}
	return errors.Wrap(failure, "close the readers of the audit store")
}

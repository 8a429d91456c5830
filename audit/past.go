package audit

import (
	"context"
	"math"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

const (
	// maxAnswerTime bounds how long a question about the past may take, waiting for the store included.
	maxAnswerTime = MaxSQLTime + 5*time.Second
	// maxCatchUp bounds how long a question waits until the store has what was recorded before it was asked. The store takes an
	// event in within milliseconds.
	maxCatchUp = 2 * time.Second
)

// pastQuestions are what the audit store answers.
func (s *Service) pastQuestions() []question {
	return []question{
		{QuestionAsOf, "which assignments stood at a moment", past(s, Answers.AsOf)},
		{QuestionDiff, "what differs between two moments, or two nodes", past(s, Answers.Diff)},
		{QuestionBlame, "who put a module on a node, when, why and by what", past(s, Answers.Blame)},
		{QuestionTrace, "what came from a commit, build or publication, and what it came from", past(s, Answers.Trace)},
		{QuestionReport, "deliveries, rollbacks, drift and lead times", past(s, Answers.Report)},
		{QuestionSQL, "what a statement reads", past(s, Answers.SQL)},
		{QuestionSQLSchema, "which tables and columns statements can read", past(s, Answers.SQLSchema)},
		{QuestionExport, "everything, piece by piece", past(s, Answers.Export)},
	}
}

// past answers a question from the audit store, which first takes in what was recorded before the question was asked.
func past[Q, A any](s *Service, answerTo func(Answers, context.Context, Q) (A, error)) func(context.Context, []byte, *answer) error {
	return func(ctx context.Context, body []byte, a *answer) error {
		var q Q
		if err := decode(body, &q); err != nil {
			return err
		}
		if s.config.Past == nil {
			return noStore()
		}
		ctx, cancel := context.WithTimeout(ctx, maxAnswerTime)
		defer cancel()
		tail, err := s.catchUp(ctx)
		if err != nil {
			return err
		}
		found, err := answerTo(s.config.Past, ctx, q)
		if err != nil {
			return s.unready(err, tail)
		}
		if b, ok := any(&found).(interface{ against(uint64) }); ok {
			b.against(tail)
		}
		return a.whole(found)
	}
}

func noStore() error {
	err := errors.New("this projector keeps no audit store, which alone can answer this")
	return errors.Mark(errors.WithHint(err, "run a projector without --no-audit"), ErrNoStore)
}

// unready says of an error that there is no file to ask how far the store is, which it can't tell itself without the stream's end.
func (s *Service) unready(err error, tail uint64) error {
	if state := s.config.Past.Status(); errors.IsAny(err, ErrStoreBehind, ErrStoreStopped) && !state.Answers {
		return state.Unready(tail)
	}
	return err
}

// catchUp waits until the store has taken in what stands in the stream now, within a bound: what is late then is seen in the
// answer's basis. A store that has stopped or is paused, or builds another file beside the one that it has, answers with what it has. It gives
// the stream's last event, and zero when nobody can tell.
func (s *Service) catchUp(ctx context.Context) (tail uint64, err error) {
	if tail, err = s.config.Store.Tail(ctx); err != nil {
		if errors.Is(err, es.ErrUnavailable) && ctx.Err() == nil {
			return 0, nil // the past can be told without the stream
		}
		return 0, err
	}
	if state := s.config.Past.Status(); state.Building && state.Answers || state.Stopped != "" || state.Paused != nil {
		return tail, nil // whether there is a file to ask is the store's to say
	}
	waiting, cancel := context.WithTimeout(ctx, maxCatchUp)
	defer cancel()
	if err := s.config.Past.Wait(waiting, tail); err != nil && ctx.Err() != nil {
		return 0, err
	}
	return tail, nil
}

// logFrom gives a page of the log: from the audit store where that has everything, and from the stream otherwise.
func (s *Service) logFrom(ctx context.Context, q LogQuestion) (LogPage, error) {
	stream := log{store: s.config.Store, registry: s.config.Registry}
	switch {
	case q.needsStore() && s.config.Past == nil:
		return LogPage{}, noStore()
	case s.config.Past == nil, q.Wait > 0 && !q.needsStore():
		return stream.page(ctx, q)
	}
	if q.Wait > 0 {
		if err := q.Validate(); err != nil {
			return LogPage{}, err
		}
		if err := s.awaitNews(ctx, stream, q); err != nil {
			return LogPage{}, err
		}
	}
	tail, err := s.catchUp(ctx)
	if err != nil {
		return LogPage{}, err
	}
	if !q.needsStore() && !s.whole(ctx) {
		return stream.page(ctx, q)
	}
	page, err := s.config.Past.Log(ctx, q)
	if errors.IsAny(err, ErrStoreBehind, ErrStoreStopped) && !q.needsStore() {
		return stream.page(ctx, q)
	}
	page.Tail = tail
	return page, s.unready(err, tail)
}

// awaitNews returns when there is something behind the place that a follower has come to, or when the time is over. A follower of refused
// commands waits for the store, which alone has them: one that does not go on is an error, or the follower would wait for ever in
// silence. It gives errors marked [ErrStoreBehind] or [ErrStoreStopped], and those of the stream.
func (s *Service) awaitNews(ctx context.Context, stream log, q LogQuestion) error {
	if q.Refused == "" {
		return stream.await(ctx, q.After, q.Wait.wait())
	}
	var after LogPlace
	if q.Cursor != "" {
		var err error
		if after, err = ParseLogPlace(q.Cursor); err != nil {
			return err
		}
	}
	// What the question leaves out anyway is not waited for.
	if q.Refused == RefusedOnly {
		after.Event = math.MaxUint64
	}
	if len(q.Types) > 0 {
		after.Refused = math.MaxUint64
	}
	waiting, cancel := context.WithTimeout(ctx, q.Wait.wait())
	defer cancel()
	s.config.Past.Await(waiting, after)
	if state := s.config.Past.Status(); state.Building || state.Stopped != "" {
		tail, err := s.config.Store.Tail(ctx)
		if err != nil {
			return err
		}
		return state.Unready(tail)
	}
	return ctx.Err()
}

// whole says whether the store has all that is recorded.
func (s *Service) whole(ctx context.Context) bool {
	state := s.config.Past.Status()
	tail, err := s.config.Store.Tail(ctx)
	return err == nil && !state.Building && state.Stopped == "" && state.Event >= tail
}

package audit

import (
	"context"
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
		if err := s.catchUp(ctx); err != nil {
			return err
		}
		found, err := answerTo(s.config.Past, ctx, q)
		if err != nil {
			return err
		}
		return a.whole(found)
	}
}

func noStore() error {
	err := errors.New("this projector keeps no audit store, which alone can answer this")
	return errors.Mark(errors.WithHint(err, "run a projector without --no-audit"), ErrNoStore)
}

// catchUp waits until the store has taken in what stands in the stream now, within a bound: what is late then is seen in the
// answer's basis. A store that has stopped or is paused, or builds another file beside the one that it has, answers with what it has.
func (s *Service) catchUp(ctx context.Context) error {
	if state := s.config.Past.Status(); state.Building && state.Answers || state.Stopped != "" || state.Paused != nil {
		return nil // whether there is a file to ask is the store's to say
	}
	tail, err := s.config.Store.Tail(ctx)
	if err != nil {
		if errors.Is(err, es.ErrUnavailable) && ctx.Err() == nil {
			return nil // the past can be told without the stream
		}
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, maxCatchUp)
	defer cancel()
	if err := s.config.Past.Wait(waiting, tail); err != nil && ctx.Err() != nil {
		return err
	}
	return nil
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
		if err := stream.await(ctx, q.After, q.Wait.wait()); err != nil {
			return LogPage{}, err
		}
	}
	if err := s.catchUp(ctx); err != nil {
		return LogPage{}, err
	}
	if !q.needsStore() && !s.whole(ctx) {
		return stream.page(ctx, q)
	}
	page, err := s.config.Past.Log(ctx, q)
	if errors.Is(err, ErrStoreBehind) && !q.needsStore() {
		return stream.page(ctx, q)
	}
	return page, err
}

// whole says whether the store has all that is recorded.
func (s *Service) whole(ctx context.Context) bool {
	state := s.config.Past.Status()
	tail, err := s.config.Store.Tail(ctx)
	return err == nil && !state.Building && state.Stopped == "" && state.Event >= tail
}

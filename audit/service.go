package audit

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"catenary/es"
	"catenary/es/project"
	"catenary/internal/serving"
	"catenary/internal/topology"
)

const (
	// maxQuestions bounds the questions answered at once. Each that reads holds one consumer of the event stream.
	maxQuestions = 64
	// maxVerifies bounds the checks at once: each folds the whole stream.
	maxVerifies = 1
)

// Config is what the service answers from.
type Config struct {
	Store    es.Store
	Registry *es.Registry
	// Positions waits until every view has passed an event, or the context ends, and gives the positions then, and the
	// stream's last event. Sequence zero asks for the positions as they are.
	Positions func(ctx context.Context, sequence uint64) (views []ViewPosition, tail uint64, err error)
	// Projections tells what the projector and its views are doing.
	Projections func(ctx context.Context) (project.Status, error)
	// Verify checks the whole record, reading its events from the given store.
	Verify func(ctx context.Context, events es.Store) (project.Report, error)
	// Past is the audit store. Nil means that there is none: what needs it gets ErrNoStore.
	Past Past
	// Rebuild begins to mend or rebuild the bucket of a view, or gives the work that is on its way.
	Rebuild func(view string, o project.RebuildOptions) (*project.Work, error)
	// Version is the program's, in semantic form: `nats micro info` shows it.
	Version string
	// Logger hears of questions that failed. Default: slog.Default().
	Logger *slog.Logger
}

// Service answers questions on the bus until it is stopped.
type Service struct {
	config Config
	micro  micro.Service
	cancel context.CancelFunc
	ctx    context.Context
	group  *serving.Group
	verify chan struct{}
}

// Serve starts answering; when it returns, the server knows that somebody does.
func Serve(nc *nats.Conn, c Config) (*Service, error) {
	s := newService(c)
	return s, s.start(nc, topology.QueryService, "Answers questions about Catenary's events and about the past they tell of.", append([]question{
		{QuestionPosition, "which bucket revisions an event has led to", s.position},
		{QuestionLog, "which events were recorded", s.log},
		{QuestionProjections, "what the projector and its views are doing", s.projections},
		{QuestionVerify, "whether the record is whole", s.verifyAll},
		{QuestionRebuild, "mends or rebuilds the bucket of a view", s.rebuild},
	}, s.pastQuestions()...))
}

// ServeTail starts answering where the event stream ends, and nothing else. Of the configuration it needs the store and the
// version.
func ServeTail(nc *nats.Conn, c Config) (*Service, error) {
	s := newService(c)
	return s, s.start(nc, topology.TailService, "Tells where Catenary's event stream ends.", []question{
		{QuestionTail, "where the event stream ends", s.tail},
	})
}

func newService(c Config) *Service {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	s := &Service{config: c, group: serving.NewGroup(maxQuestions), verify: make(chan struct{}, maxVerifies)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// question is what a service answers.
type question struct {
	name, about string
	handler     func(context.Context, []byte, *answer) error
}

// start answers questions; when it returns, the server knows that somebody does.
func (s *Service) start(nc *nats.Conn, name, about string, questions []question) error {
	var err error
	s.micro, err = micro.AddService(nc, micro.Config{Name: name, Version: s.config.Version, Description: about})
	if err != nil {
		s.cancel()
		return errors.Wrapf(err, "start the service %s", name)
	}
	for _, q := range questions {
		err := s.micro.AddEndpoint(q.name, s.endpoint(nc, q.name, q.handler),
			micro.WithEndpointSubject(subjectOf(q.name)), micro.WithEndpointMetadata(map[string]string{"answers": q.about}))
		if err != nil {
			return errors.CombineErrors(errors.Wrapf(err, "serve %s", subjectOf(q.name)), s.Stop())
		}
	}
	// Whoever is told that the service runs must not be told by the server that nobody listens.
	if err := nc.Flush(); err != nil {
		return errors.CombineErrors(errors.Wrapf(err, "start the service %s", name), s.Stop())
	}
	return nil
}

// Stop takes no more questions, ends those that are being answered, and returns when all have ended.
func (s *Service) Stop() error {
	s.group.Close()
	err := s.micro.Stop()
	s.cancel()
	s.group.Wait()
	return errors.Wrap(err, "stop answering questions")
}

// endpoint takes a question off the subscription at once: a micro service hands over one question at a time.
func (s *Service) endpoint(nc *nats.Conn, name string, handler func(context.Context, []byte, *answer) error) micro.HandlerFunc {
	return func(r micro.Request) {
		a := &answer{conn: nc, reply: r.Reply()}
		if !s.group.TryGo(func() {
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			alive := sync.WaitGroup{}
			alive.Go(func() { s.keepAlive(ctx, name, a) })
			err := handler(ctx, r.Data(), a)
			cancel()
			alive.Wait()
			if err != nil {
				if s.ctx.Err() != nil {
					err = errors.Mark(errors.New("the service stops; ask again"), ErrNoService)
				} else if codeOf(err) == codeFailed {
					s.config.Logger.Warn("query failed", "query", name, "error", err)
				}
				err = a.fail(err)
			}
			s.report(name, err)
		}) {
			s.report(name, a.fail(errors.Mark(errors.Newf("%d questions are being answered; ask again later", maxQuestions), ErrBusy)))
		}
	}
}

// keepAlive tells the asker that the service is still at it. An answer that can't be sent shows when its end is sent too.
func (s *Service) keepAlive(ctx context.Context, name string, a *answer) {
	tick := time.NewTicker(aliveInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := a.more(nil); err != nil {
				s.report(name, err)
				return
			}
		}
	}
}

// report logs what can't be told to the asker, because the way to them is what failed.
func (s *Service) report(name string, err error) {
	if err != nil && s.ctx.Err() == nil {
		s.config.Logger.Warn("answer to a query could not be sent", "query", name, "error", err)
	}
}

func (s *Service) position(ctx context.Context, body []byte, a *answer) error {
	var q PositionQuestion
	if err := decode(body, &q); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, q.Wait.wait())
	defer cancel()
	views, tail, err := s.config.Positions(waiting, q.Sequence)
	if err != nil {
		return errors.Wrapf(err, "positions at event %d", q.Sequence)
	}
	p := Positions{Sequence: q.Sequence, Tail: tail, Reached: true, Views: views}
	for _, v := range views {
		p.Reached = p.Reached && v.Event >= q.Sequence
	}
	if s.config.Past != nil {
		if q.Audit {
			// What comes of waiting shows in the status.
			_ = s.config.Past.Wait(waiting, q.Sequence)
		}
		state := s.config.Past.Status()
		p.Audit = &state
		p.Reached = p.Reached && (!q.Audit || !state.Building && state.Event >= q.Sequence)
	}
	return a.end(p)
}

func (s *Service) log(ctx context.Context, body []byte, a *answer) error {
	var q LogQuestion
	if err := decode(body, &q); err != nil {
		return err
	}
	page, err := s.logFrom(ctx, q)
	if err != nil {
		return err
	}
	return a.page(page)
}

// projections sends each view in a part of its own: what is parked and skipped may be a lot.
func (s *Service) projections(ctx context.Context, body []byte, a *answer) error {
	if err := decode(body, &ProjectionsQuestion{}); err != nil {
		return err
	}
	status, err := s.config.Projections(ctx)
	if err != nil {
		return errors.Wrap(err, "status of the views")
	}
	if s.config.Past != nil {
		status.Views = append(status.Views, s.storeView(ctx, status.Tail))
	}
	for _, v := range status.Views {
		if err := a.more(project.Status{Views: []project.ViewStatus{v}}); err != nil {
			return err
		}
	}
	return a.end(project.Status{Tail: status.Tail, Reason: status.Reason, Unknown: status.Unknown})
}

func (s *Service) tail(ctx context.Context, body []byte, a *answer) error {
	if err := decode(body, &TailQuestion{}); err != nil {
		return err
	}
	tail, err := s.config.Store.Tail(ctx)
	if err != nil {
		return errors.Wrap(err, "end of the event stream")
	}
	return a.end(Tail{Sequence: tail})
}

// verifyPart is a part of the answer to verify: how far it is, and at last the report.
type verifyPart struct {
	Events uint64          `json:"events,omitempty"`
	Report *project.Report `json:"report,omitempty"`
}

func (s *Service) verifyAll(ctx context.Context, body []byte, a *answer) error {
	if err := decode(body, &VerifyQuestion{}); err != nil {
		return err
	}
	select {
	case s.verify <- struct{}{}:
		defer func() { <-s.verify }()
	default:
		return errors.Mark(errors.New("the record is being checked already; ask again when that is done"), ErrBusy)
	}
	var passed atomic.Uint64
	told := make(chan struct{})
	telling, cancel := context.WithCancel(ctx)
	go func() {
		defer close(told)
		s.tellProgress(telling, &passed, a)
	}()
	report, err := s.config.Verify(ctx, counted{Store: s.config.Store, passed: &passed})
	cancel()
	<-told
	if err != nil {
		return errors.Wrap(err, "check the record")
	}
	return a.end(verifyPart{Events: passed.Load(), Report: &report})
}

func (s *Service) tellProgress(ctx context.Context, passed *atomic.Uint64, a *answer) {
	tick := time.NewTicker(aliveInterval / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := a.more(verifyPart{Events: passed.Load()}); err != nil {
				s.report(QuestionVerify, err)
				return
			}
		}
	}
}

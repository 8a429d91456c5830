package proof

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"catenary/es"
	"catenary/internal/serving"
	"catenary/internal/topology"
)

const (
	// maxQuestions bounds the questions answered at once. Those about roots read the events.
	maxQuestions = 8
	// answerTime bounds one answer.
	answerTime = 20 * time.Second
)

// errQuestion marks a question that is malformed.
var errQuestion = errors.New("malformed question")

// Codes of an answer without an answer, as the header of micro services has them.
const (
	codeQuestion   = "400"
	codeNotFound   = "404"
	codeShortened  = "409"
	codeForked     = "410"
	codeBusy       = "429"
	codeFailed     = "500"
	codeNotReached = "503"
)

// Service answers questions about proofs on the bus until it is stopped.
type Service struct {
	log    *Log
	micro  micro.Service
	ctx    context.Context
	cancel context.CancelFunc
	group  *serving.Group
}

// Serve starts answering; when it returns, the server knows that somebody does.
func Serve(nc *nats.Conn, version string, log *Log) (*Service, error) {
	s := &Service{log: log, group: serving.NewGroup(maxQuestions)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	var err error
	s.micro, err = micro.AddService(nc, micro.Config{
		Name: topology.ProofService, Version: version, Description: "Gives signed checkpoints of the record, and proofs of events.",
	})
	if err != nil {
		s.cancel()
		return nil, errors.Wrapf(err, "start the service %s", topology.ProofService)
	}
	add := func(name, subject string, answer func(context.Context, []byte) (any, error)) {
		err = errors.CombineErrors(err, errors.Wrapf(s.micro.AddEndpoint(name, s.endpoint(nc, answer), micro.WithEndpointSubject(subject)), "serve %s", subject))
	}
	for name, answer := range map[string]func(context.Context, []byte) (any, error){
		QuestionCheckpoint: s.checkpoint, QuestionProof: answering(log.proof), QuestionGrowth: answering(log.growth),
	} {
		if len(log.cfg.Signers) > 0 {
			add("signed-"+name, signedSubject(name), answer)
		} else {
			answer = signed(nc, name, answer)
		}
		add(name, topology.QuerySubject(name), answer)
	}
	add(QuestionCheckpoints, topology.QuerySubject(QuestionCheckpoints), answering(log.page))
	add(QuestionRoots, topology.QuerySubject(QuestionRoots), answering(log.roots))
	if err != nil {
		return nil, errors.CombineErrors(err, s.Stop())
	}
	if err := nc.Flush(); err != nil {
		return nil, errors.CombineErrors(errors.Wrapf(err, "start the service %s", topology.ProofService), s.Stop())
	}
	return s, nil
}

// Stop takes no more questions, ends those that are being answered, and returns when all have ended.
func (s *Service) Stop() error {
	s.group.Close()
	err := s.micro.Stop()
	s.cancel()
	s.group.Wait()
	return errors.Wrapf(err, "stop the service %s", topology.ProofService)
}

// answering makes an answer to a question of one kind, which is read strictly.
func answering[Q, A any](answer func(context.Context, Q) (A, error)) func(context.Context, []byte) (any, error) {
	return func(ctx context.Context, body []byte) (any, error) {
		var q Q
		if len(bytes.TrimSpace(body)) > 0 {
			d := json.NewDecoder(bytes.NewReader(body))
			d.DisallowUnknownFields()
			if err := d.Decode(&q); err != nil {
				return nil, errors.Mark(errors.Wrap(err, "the question's body"), errQuestion)
			}
		}
		return answer(ctx, q)
	}
}

func (s *Service) checkpoint(ctx context.Context, _ []byte) (any, error) {
	signed, keys, err := s.log.Latest(ctx)
	return Latest{Checkpoint: string(signed), Keys: keys}, err
}

func (l *Log) proof(ctx context.Context, q ProofQuestion) (Inclusion, error) {
	return l.Prove(ctx, q.Event)
}

func (l *Log) growth(ctx context.Context, q GrowthQuestion) (Growth, error) {
	return l.Grown(ctx, q.Size)
}

// endpoint takes a question off the subscription at once: a micro service hands over one question at a time.
func (s *Service) endpoint(nc *nats.Conn, answer func(context.Context, []byte) (any, error)) micro.HandlerFunc {
	return func(r micro.Request) {
		if !s.group.TryGo(func() {
			ctx, cancel := context.WithTimeout(s.ctx, answerTime)
			defer cancel()
			a, err := answer(ctx, r.Data())
			if err != nil {
				s.report(refuse(nc, r.Reply(), codeOf(err), err.Error()))
				return
			}
			body, err := json.Marshal(a)
			if err == nil {
				err = serving.Respond(nc, r.Reply(), nil, body)
			}
			s.report(err)
		}) {
			s.report(refuse(nc, r.Reply(), codeBusy, "too many questions about proofs are being answered; ask again later"))
		}
	}
}

func refuse(nc *nats.Conn, reply, code, why string) error {
	return serving.Respond(nc, reply, nats.Header{micro.ErrorCodeHeader: {code}, micro.ErrorHeader: {why}}, nil)
}

// report logs what can't be told to the asker, because the way to them is what failed.
func (s *Service) report(err error) {
	if err != nil && s.ctx.Err() == nil {
		s.log.cfg.Logger.Warn("an answer about proofs could not be sent", "error", err)
	}
}

func codeOf(err error) string {
	switch {
	case errors.Is(err, errQuestion):
		return codeQuestion
	case errors.Is(err, es.ErrNotFound):
		return codeNotFound
	case errors.Is(err, ErrShortened):
		return codeShortened
	case errors.Is(err, ErrForked):
		return codeForked
	case errors.Is(err, ErrBusy):
		return codeBusy
	case errors.IsAny(err, es.ErrUnavailable, ErrNoService, context.Canceled):
		return codeNotReached
	}
	return codeFailed
}

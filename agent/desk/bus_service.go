package desk

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"catenary/agent"
	"catenary/es"
	"catenary/internal/serving"
	"catenary/internal/topology"
)

const (
	// waitForHeard bounds how long an answer waits for a value that the agent has heard of, or for all that stands.
	waitForHeard = 2 * time.Second
	// maxWaiting bounds the answers that wait. Whoever comes after gets what there is.
	maxWaiting = 4096
)

// Config is what the service needs.
type Config struct {
	// Conn is a connection in the ledger's account.
	Conn *nats.Conn
	Desk Desk
	// Current returns when the index holds all that stood when it was called. It gives why it does not, and the context's errors. An agent that
	// knows nothing is told nothing before: it would do what is over.
	Current func(ctx context.Context) error
	// Version is the program's, in semantic form.
	Version string
	// Trace gives the traceparent of an event, or nothing. Nil means that nobody traces.
	Trace  func(ctx context.Context, event uint64) string
	Logger *slog.Logger
}

// Service answers check-ins and questions about nodes, as a NATS micro service.
type Service struct {
	cfg     Config
	ctx     context.Context
	cancel  context.CancelFunc
	micro   micro.Service
	waiting *serving.Group
}

// Serve starts answering; when it returns, the server knows that somebody does. The desk's index MUST have read the buckets once. Every
// process that serves hears every check-in, so that each knows who is there; an agent takes the first answer.
func Serve(ctx context.Context, c Config) (*Service, error) {
	s := &Service{cfg: c, waiting: serving.NewGroup(maxWaiting)}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	var err error
	s.micro, err = micro.AddService(c.Conn, micro.Config{
		Name: topology.NodesService, Version: c.Version, Description: "Answers agents that check in, and tells how nodes are.",
	})
	if err != nil {
		s.cancel()
		return nil, errors.Wrap(err, "start the service for agents")
	}
	for _, e := range []struct {
		name, subject, about string
		handler              micro.HandlerFunc
		options              []micro.EndpointOpt
	}{
		{"check-in", topology.AgentSubject("*"), "what a node is told", s.checkIn, []micro.EndpointOpt{micro.WithEndpointQueueGroupDisabled()}},
		{QuestionNodes, topology.QuerySubject(QuestionNodes), "how nodes are", s.nodes, nil},
	} {
		options := append(e.options, micro.WithEndpointSubject(e.subject), micro.WithEndpointMetadata(map[string]string{"answers": e.about}))
		if err := s.micro.AddEndpoint(e.name, e.handler, options...); err != nil {
			return nil, errors.CombineErrors(errors.Wrapf(err, "serve %s", e.subject), s.Stop())
		}
	}
	// Whoever is told that the service runs must not be told by the server that nobody listens.
	if err := c.Conn.Flush(); err != nil {
		return nil, errors.CombineErrors(errors.Wrap(err, "start the service for agents"), s.Stop())
	}
	return s, nil
}

// Stop ends listening, and returns when all answers have left.
func (s *Service) Stop() error {
	err := s.micro.Stop()
	s.waiting.Close()
	s.cancel()
	s.waiting.Wait()
	return errors.Wrap(err, "stop the service for agents")
}

// checkIn hears an agent, and answers it. One that has heard of a value that is not here yet is answered a little later. One that knows
// nothing, and so can't tell what is older from what is later, is answered when all that stands is here.
func (s *Service) checkIn(r micro.Request) {
	var c agent.CheckIn
	token := strings.TrimPrefix(r.Subject(), topology.AgentPrefix+".")
	err := json.Unmarshal(r.Data(), &c)
	if name, e := es.UnescapeToken(token); err == nil && (e != nil || name != c.Node) {
		err = errors.Newf("the check-in of node %.100q came on the subject of %.100q", c.Node, token)
	}
	if err != nil {
		s.fail(r, codeInvalid, err)
		return
	}
	if c.Cursor == "" {
		s.cfg.Desk.Presence.Hear(c)
	}
	if c.Status.Edition == "" {
		if !s.waiting.TryGo(func() { s.answerCurrent(r, c) }) {
			s.fail(r, codeBehind, errors.New("too many agents that know nothing ask at once; ask again"))
		}
		return
	}
	passed := s.cfg.Desk.Index.Passed(c.After)
	if passed == nil || !s.waiting.TryGo(func() { s.await(c.After, passed); s.answer(r, c) }) {
		s.answer(r, c)
	}
}

// await waits until the index has come to a value, for a little while.
func (s *Service) await(source uint64, passed <-chan struct{}) {
	timer := time.NewTimer(waitForHeard)
	defer timer.Stop()
	for passed != nil {
		select {
		case <-passed:
			passed = s.cfg.Desk.Index.Passed(source)
		case <-timer.C:
			return
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *Service) answerCurrent(r micro.Request, c agent.CheckIn) {
	ctx, cancel := context.WithTimeout(s.ctx, waitForHeard)
	defer cancel()
	if err := s.cfg.Current(ctx); err != nil {
		<-ctx.Done() // another desk may know more, and the first answer is the one that counts
		s.fail(r, codeBehind, errors.Wrapf(err, "what node %s is told is not known to its end yet", c.Node))
		return
	}
	s.answer(r, c)
}

func (s *Service) answer(r micro.Request, c agent.CheckIn) {
	a, err := s.cfg.Desk.Index.Answer(c)
	if err != nil {
		s.fail(r, codeFailed, err)
		return
	}
	s.trace(&a)
	s.tell(r, a)
}

// maxTraced bounds the events that are looked up for one answer. What an agent is told when it connects was mostly told long ago.
const maxTraced = 32

// trace says of what an agent is told by which trace it was.
func (s *Service) trace(a *agent.Answer) {
	if s.cfg.Trace == nil || len(a.Told) > maxTraced {
		return
	}
	for i := range a.Told {
		a.Told[i].Trace = s.cfg.Trace(s.ctx, a.Told[i].Source)
	}
}

// nodes tells how nodes are.
func (s *Service) nodes(r micro.Request) {
	var q NodesQuestion
	if body := bytes.TrimSpace(r.Data()); len(body) > 0 {
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		if err := d.Decode(&q); err != nil {
			s.fail(r, codeInvalid, err)
			return
		}
	}
	if q.Node != "" {
		n, ok := s.cfg.Desk.Node(q.Node)
		if !ok {
			s.fail(r, codeNotFound, errors.Newf("there is no node %q", q.Node))
			return
		}
		s.tell(r, NodesPage{Nodes: []Node{n}})
		return
	}
	if q.Limit < 0 {
		s.fail(r, codeInvalid, errors.Newf("a limit of %d: give one above zero, or none", q.Limit))
		return
	}
	if q.Limit == 0 || q.Limit > MaxNodes {
		q.Limit = MaxNodes
	}
	page := NodesPage{}
	page.Nodes, page.Cursor = s.cfg.Desk.Nodes(q.Cursor, q.Limit)
	s.tell(r, bounded(page))
}

// bounded shortens a page that would not fit into a message.
func bounded(page NodesPage) NodesPage {
	for len(page.Nodes) > 1 {
		text, err := json.Marshal(page)
		if err == nil && len(text) <= maxPageBytes {
			break
		}
		page.Nodes = page.Nodes[:len(page.Nodes)/2]
		page.Cursor = page.Nodes[len(page.Nodes)-1].Node
	}
	return page
}

// tell answers with a value.
func (s *Service) tell(r micro.Request, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		s.fail(r, codeFailed, err)
		return
	}
	s.send(r, nil, body)
}

func (s *Service) fail(r micro.Request, code string, why error) {
	s.send(r, nats.Header{micro.ErrorCodeHeader: {code}, micro.ErrorHeader: {why.Error()}}, nil)
}

// send answers whoever waits.
func (s *Service) send(r micro.Request, header nats.Header, body []byte) {
	err := serving.Respond(s.cfg.Conn, r.Reply(), header, body)
	if err != nil && !errors.IsAny(err, nats.ErrMsgNoReply, nats.ErrConnectionClosed) {
		s.cfg.Logger.Warn("an answer to an agent could not be sent", "error", err)
	}
}

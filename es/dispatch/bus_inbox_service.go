package dispatch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"catenary/es"
	"catenary/internal/serving"
)

const (
	// maxStoring bounds the commands on their way into the stream. It is below the client library's own bound, at which it
	// would wait.
	maxStoring = 1024
	// maxLooking bounds the questions answered at once.
	maxLooking = 64
	// maxParkedPage bounds the parked commands of one answer.
	maxParkedPage = 100
	// maxReasonBytes bounds why a parked command was discarded.
	maxReasonBytes = 1024
)

// InboxServiceConfig is what the inbox service needs.
type InboxServiceConfig struct {
	// Name and Version are shown by `nats micro`.
	Name, Version string
	// Conn is a connection in the ledger's account.
	Conn   *nats.Conn
	Store  *InboxStore
	Intake *Intake
	// Inside names who acts on calls from inside the ledger's account that do not say.
	Inside string
	// Refused takes note of what is refused at once, RefusedStore answers what was refused. They may be nil.
	Refused      *RefusedLog
	RefusedStore *RefusedStore
	Now          func() time.Time
	Logger       *slog.Logger
}

// InboxService takes commands that are to be kept until they are done. It needs no writer: what it has stored is worked off
// when one starts. It also answers what became of them, and lets people deal with those that are parked.
//
// A command is acknowledged after the store has it. One that is malformed is refused at once; when nobody waits for an answer
// it is parked, so that it is not lost in silence.
type InboxService struct {
	cfg     InboxServiceConfig
	ctx     context.Context
	cancel  context.CancelFunc
	service micro.Service
	// storing are the commands on their way into the stream, looking the questions that are being answered.
	storing, looking *serving.Group
}

// NewInboxService starts to listen. All commands come in through one endpoint, so that those of one connection are stored in
// the order they were sent.
func NewInboxService(ctx context.Context, cfg InboxServiceConfig) (*InboxService, error) {
	s := &InboxService{cfg: cfg, storing: serving.NewGroup(maxStoring), looking: serving.NewGroup(maxLooking)}
	s.ctx, s.cancel = context.WithCancel(ctx)
	svc, err := micro.AddService(cfg.Conn, micro.Config{
		Name: cfg.Name, Version: cfg.Version, Description: "Keeps commands until they are done, and tells what became of them.",
	})
	if err != nil {
		s.cancel()
		return nil, errors.Wrap(err, "start the inbox service")
	}
	s.service = svc
	type endpoint struct {
		name, subject, about string
		handler              micro.HandlerFunc
	}
	endpoints := []endpoint{
		{"inbox", InboxPrefix + ".*.*", "keeps a command until it is done", s.handle},
		{"receipt", SubjectReceipt, "what became of a command", s.answering(s.receipt)},
		{"parked", SubjectParked, "which commands could not be read or decided", s.answering(s.parked)},
		{"retry", ParkedPrefix + ".retry", "puts a parked command into the inbox again", s.answering(s.retry)},
		{"discard", ParkedPrefix + ".discard", "forgets a parked command, with a reason", s.answering(s.discard)},
	}
	if cfg.RefusedStore != nil {
		endpoints = append(endpoints, endpoint{"refused", SubjectRefused, "which commands were refused", s.answering(s.refused)})
	}
	for _, e := range endpoints {
		err := svc.AddEndpoint(e.name, e.handler, micro.WithEndpointSubject(e.subject), micro.WithEndpointMetadata(map[string]string{"answers": e.about}))
		if err != nil {
			return nil, errors.CombineErrors(errors.Wrapf(err, "serve %s", e.subject), s.Stop())
		}
	}
	// Whoever is told that the service runs must not be told by the server that nobody listens.
	if err := cfg.Conn.Flush(); err != nil {
		return nil, errors.CombineErrors(errors.Wrap(err, "start the inbox service"), s.Stop())
	}
	return s, nil
}

// Stop ends listening, and returns when what was taken in is stored and answered.
func (s *InboxService) Stop() error {
	err := s.service.Stop()
	s.storing.Close()
	s.looking.Close()
	s.storing.Wait()
	s.looking.Wait()
	s.cancel()
	return errors.Wrap(err, "stop the inbox service")
}

// handle takes a command in. It hands it to the stream before it returns, so that the next comes behind it, and lets another
// goroutine wait for the stream's answer.
func (s *InboxService) handle(req micro.Request) {
	r, optionsErr := readRequest(req, InboxPrefix)
	c := unread(req, r)
	who, _, err := caller(req, s.cfg.Inside)
	switch {
	case errors.Is(err, errUnproven):
		s.parkUnread(req, r, "", &es.Refusal{Code: CodeUnproven, Message: err.Error(),
			Hint: "send it as a request; or retry it, and it is done in the name of who retries it"})
		return
	case errors.Is(err, errNobody):
		// Nobody waits for an answer, and one sent anyway could acknowledge another's message.
		s.cfg.Logger.Warn("command for the inbox ignored", "subject", req.Subject(), "reply", req.Reply(), "error", err)
		return
	}
	var m *nats.Msg
	if err = optionsErr; err == nil {
		c, m, err = s.prepare(r, who)
	}
	if err != nil {
		s.refuse(req, r, c, who, err)
		return
	}
	switch {
	case s.storing.Take():
	case req.Reply() != "":
		respond(s.cfg.Conn, req, refusal(c, &es.Refusal{Status: es.StatusBusy, Code: "inbox-busy", Message: "too many commands are being stored",
			Hint: "send it again with the same id in a second"}), s.cfg.Logger)
		return
	case !s.storing.Await(s.ctx): // nobody could be told to come later: the next ones wait
		return
	}
	// No second try by the client library: it would come after the commands that were sent behind it.
	stored, err := s.cfg.Store.js.PublishMsgAsync(m, jetstream.WithRetryAttempts(0))
	if err != nil {
		s.storing.Leave()
		s.answer(req, refusal(c, storeRefusalOf(err)))
		return
	}
	s.storing.Go(func() { s.answer(req, s.outcome(c, stored)) })
}

// prepare makes of a request what the stream keeps.
func (s *InboxService) prepare(r Request, who Who) (es.Command, *nats.Msg, error) {
	ctx, cancel := context.WithTimeout(s.ctx, storeTimeout)
	defer cancel()
	c, err := s.cfg.Intake.Command(ctx, r, who)
	if err != nil {
		return c, nil, err
	}
	if r := checkID(c.ID, s.cfg.Now()); r != nil {
		return c, nil, r
	}
	body, err := storedBody(c)
	if err != nil {
		return c, nil, err
	}
	return c, s.cfg.Store.message(c.Ref, storedHeaders(c), body), nil
}

// outcome waits for the stream's answer.
func (s *InboxService) outcome(c es.Command, stored jetstream.PubAckFuture) es.Answer {
	select {
	case ack := <-stored.Ok():
		return storedAnswer(c, ack.Sequence)
	case err := <-stored.Err():
		return refusal(c, storeRefusalOf(err))
	}
}

func storedAnswer(c es.Command, sequence uint64) es.Answer {
	return es.Answer{Status: es.StatusStored, Command: c.ID, Aggregate: c.Ref.Aggregate, Key: c.Ref.Key, Sequence: sequence}
}

// answer tells whoever waits. What could not be stored is logged when nobody does.
func (s *InboxService) answer(req micro.Request, a es.Answer) {
	if req.Reply() == "" {
		if a.Status != es.StatusStored {
			s.cfg.Logger.Error("command could not be stored, and nobody waits to be told", "command", a.Command, "aggregate", a.Aggregate, "key", a.Key, "error", a.Error.Message)
		}
		return
	}
	respond(s.cfg.Conn, req, a, s.cfg.Logger)
}

// refuse tells whoever waits why a command was not taken in. When nobody does, the command is parked.
func (s *InboxService) refuse(req micro.Request, r Request, c es.Command, who Who, err error) {
	if req.Reply() != "" {
		a := refusedAs(c, err, s.cfg.Logger)
		respond(s.cfg.Conn, req, a, s.cfg.Logger)
		s.cfg.Refused.Note(who, c, a)
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, storeTimeout)
	defer cancel()
	actor, unknown := s.cfg.Intake.Actors.ID(ctx, who)
	if unknown != nil {
		s.cfg.Logger.Warn("who sent a command can't be told", "error", unknown)
	}
	s.parkUnread(req, r, actor, asRefusal(err, CodeUnreadable))
}

// parkUnread parks what never got into the inbox, as its sender wrote it.
func (s *InboxService) parkUnread(req micro.Request, r Request, actor string, why *es.Refusal) {
	now := s.cfg.Now().UTC()
	p := Parked{
		ID: parkedID(s.cfg.Intake.NewID()), Error: answerError(why), Parked: now, Stored: now, Actor: actor, Command: r.ID, Aggregate: r.Aggregate,
		Verb: r.Verb, Headers: map[string]string{}, ContentType: r.ContentType, Body: r.Body[:min(len(r.Body), MaxBodyBytes)],
	}
	for _, name := range optionHeaders() {
		if v := header(nats.Header(req.Headers()), name); v != "" {
			p.Headers[name] = v[:min(len(v), maxHeaderBytes)]
		}
	}
	err := s.cfg.Store.park(s.ctx, p)
	s.cfg.Logger.Error("command parked", "parked", p.ID, "command", p.Command, "aggregate", p.Aggregate, "verb", p.Verb, "reason", why.Message, "error", err)
}

// answering takes a question off the endpoint, which hands over one at a time, and answers it with what the handler gives, or
// with the refusal its error is.
func (s *InboxService) answering(handler func(context.Context, micro.Request) (any, error)) micro.HandlerFunc {
	return func(req micro.Request) {
		if _, _, err := caller(req, s.cfg.Inside); err != nil || req.Reply() == "" {
			s.cfg.Logger.Warn("question ignored: nobody waits for the answer", "subject", req.Subject(), "reply", req.Reply(), "error", err)
			return
		}
		if !s.looking.Take() || !s.looking.Go(func() {
			ctx, cancel := context.WithTimeout(s.ctx, 2*storeTimeout)
			defer cancel()
			v, err := handler(ctx, req)
			if err != nil {
				s.fail(req, err)
				return
			}
			s.tell(req, v)
		}) {
			s.fail(req, &es.Refusal{Status: es.StatusBusy, Code: "busy", Message: "too many questions are being answered", Hint: "ask again in a second"})
		}
	}
}

func (s *InboxService) tell(req micro.Request, v any) {
	body, err := json.Marshal(v)
	if err == nil {
		err = serving.Respond(s.cfg.Conn, req.Reply(), nats.Header{HeaderContentType: {ContentTypeJSON}}, body)
	}
	if err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		s.cfg.Logger.Warn("answer could not be sent", "subject", req.Subject(), "error", err)
	}
}

// statusNotFound is the error header's code for what is not there. It is no command's status.
const statusNotFound es.Status = "not-found"

func (s *InboxService) fail(req micro.Request, err error) {
	var r *es.Refusal
	switch {
	case errors.As(err, &r):
	case errors.Is(err, es.ErrNotFound):
		r = &es.Refusal{Status: statusNotFound, Code: "not-found", Message: err.Error()}
	default:
		s.cfg.Logger.Warn("question could not be answered", "subject", req.Subject(), "error", err)
		r = &es.Refusal{Status: es.StatusBusy, Code: "inbox-unavailable", Message: err.Error(), Hint: "try it again"}
	}
	respond(s.cfg.Conn, req, refusal(es.Command{}, r), s.cfg.Logger)
}

// question reads what is asked, strictly: a misspelt field would be another question.
func question(req micro.Request, into any) error {
	if len(bytes.TrimSpace(req.Data())) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(req.Data()))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("it goes on after its JSON value")
		}
	}
	if err != nil {
		return invalid("bad-body", "the question's body: "+err.Error(), "")
	}
	return nil
}

// ReceiptQuestion asks what became of a command.
type ReceiptQuestion struct {
	ID string `json:"id"`
	// Aggregate and Key tell commands of two instances apart that have the same id. Without them the newest is meant.
	Aggregate string `json:"aggregate,omitempty"`
	Key       string `json:"key,omitempty"`
}

func (s *InboxService) receipt(ctx context.Context, req micro.Request) (any, error) {
	var q ReceiptQuestion
	if err := question(req, &q); err != nil {
		return nil, err
	}
	ref := es.Ref{Aggregate: q.Aggregate, Key: q.Key}
	if !ref.IsZero() {
		_, err := es.SplitKey(ref.Key)
		if err != nil || ref.Aggregate == "" || es.EscapeToken(ref.Aggregate) != ref.Aggregate {
			return nil, invalid("bad-name", fmt.Sprintf("%.80q %.80q is no instance", ref.Aggregate, ref.Key), "give both aggregate and key, as they stand in an answer")
		}
	}
	if !canonicalID(q.ID) {
		return nil, invalid("bad-id", "the id is not a command's: a UUID in its canonical form", "it stands in the answer to the command")
	}
	r, err := s.cfg.Store.receipt(ctx, q.ID, ref)
	if !errors.Is(err, es.ErrNotFound) {
		return r, err
	}
	waiting, err := s.cfg.Store.waiting(ctx)
	if err != nil {
		return nil, err
	}
	return nil, &es.Refusal{Status: statusNotFound, Code: "no-receipt", Message: "there is no receipt of command " + q.ID,
		Hint: "it waits in the inbox (" + sequenceText(waiting) + " commands do), or never came through it, or its receipt is too old to be kept"}
}

// ParkedQuestion asks for one parked command, or for a page of all.
type ParkedQuestion struct {
	ID string `json:"id,omitempty"`
	// Cursor is what the page before has given as Next.
	Cursor string `json:"cursor,omitempty"`
	Limit  int    `json:"limit,omitempty"`
}

// ParkedPage is a bounded piece of the parked commands, oldest first.
type ParkedPage struct {
	Items []Parked `json:"items"`
	// Next is the cursor of the next page; empty at the end.
	Next string `json:"next,omitempty"`
}

func (s *InboxService) parked(ctx context.Context, req micro.Request) (any, error) {
	var q ParkedQuestion
	if err := question(req, &q); err != nil {
		return nil, err
	}
	if q.ID != "" {
		p, _, err := s.cfg.Store.parkedOne(ctx, q.ID)
		return p.show(), err
	}
	from, err := sequenceOf(q.Cursor)
	if err != nil {
		return nil, err
	}
	if q.Limit <= 0 || q.Limit > maxParkedPage {
		q.Limit = maxParkedPage
	}
	items, next, err := s.cfg.Store.parkedPage(ctx, from, q.Limit)
	page := ParkedPage{Items: append([]Parked{}, items...)}
	if next > 0 {
		page.Next = sequenceText(next)
	}
	return page, err
}

// ParkedOrder names a parked command, and says why it is discarded.
type ParkedOrder struct {
	ID     string `json:"id"`
	Reason string `json:"reason,omitempty"`
}

// order reads an order and finds the command it is about, and the opaque id of who gives it.
func (s *InboxService) order(ctx context.Context, req micro.Request) (o ParkedOrder, who Who, p Parked, sequence uint64, err error) {
	if who, _, err = caller(req, s.cfg.Inside); err != nil {
		return o, who, p, 0, err
	}
	if err = question(req, &o); err != nil {
		return o, who, p, 0, err
	}
	p, sequence, err = s.cfg.Store.parkedOne(ctx, o.ID)
	return o, who, p, sequence, err
}

// retry puts a parked command into the inbox again. One that never got there is done in the name of its sender when that is
// known, else in the name of who retries it. A command that can't be read now either stays parked.
func (s *InboxService) retry(ctx context.Context, req micro.Request) (any, error) {
	o, who, p, sequence, err := s.order(ctx, req)
	if err != nil {
		return nil, err
	}
	c, m, err := s.again(ctx, p, who)
	if err != nil {
		return nil, errors.Wrapf(asRefusal(err, CodeUnreadable), "parked command %s", o.ID)
	}
	// The receipt comes first: written later it could hide the outcome.
	err = s.cfg.Store.keep(ctx, Receipt{
		Answer: es.Answer{Status: es.StatusStored, Command: c.ID, Aggregate: c.Ref.Aggregate, Key: c.Ref.Key},
		Actor:  c.Actor, Stored: p.Stored, Settled: s.cfg.Now().UTC(), Parked: p.ID,
	})
	if err != nil {
		return nil, err
	}
	ack, err := s.cfg.Store.js.PublishMsg(ctx, m)
	if err != nil {
		return nil, storeRefusalOf(err)
	}
	if err := s.cfg.Store.unpark(ctx, p.ID, sequence); err != nil {
		return nil, err
	}
	s.cfg.Logger.Info("parked command retried", "parked", p.ID, "command", c.ID, "sequence", ack.Sequence)
	return storedAnswer(c, ack.Sequence), nil
}

// again makes the stored form of a parked command.
func (s *InboxService) again(ctx context.Context, p Parked, who Who) (es.Command, *nats.Msg, error) {
	get := func(name string) string { return p.Headers[name] }
	if p.Inbox == 0 {
		r := Request{Aggregate: p.Aggregate, Verb: p.Verb, Body: p.Body, ContentType: p.ContentType}
		var err error
		if r.Options, err = readOptions(func(name string) (string, error) { return es.DecodeHeaderValue(get(name)) }); err != nil {
			return es.Command{}, nil, err
		}
		c, err := s.cfg.Intake.Command(ctx, r, who)
		if err != nil {
			return c, nil, err
		}
		if p.Actor != "" {
			c.Actor = p.Actor
		}
		if r := checkID(c.ID, s.cfg.Now()); r != nil {
			return c, nil, r
		}
		body, err := storedBody(c)
		return c, s.cfg.Store.message(c.Ref, storedHeaders(c), body), err
	}
	e := entry{ref: p.ref(), verb: p.Verb, actor: p.Actor, header: get, contentType: p.ContentType, body: p.Body}
	c, err := e.command(s.cfg.Intake)
	if err != nil {
		return c, nil, err
	}
	if r := checkID(c.ID, s.cfg.Now()); r != nil {
		return c, nil, r
	}
	return c, s.cfg.Store.message(c.Ref, storedHeaders(c), p.Body), nil
}

// discard forgets a parked command. Who did it and why stands in its receipt.
func (s *InboxService) discard(ctx context.Context, req micro.Request) (any, error) {
	o, who, p, sequence, err := s.order(ctx, req)
	if err != nil {
		return nil, err
	}
	switch {
	case o.Reason == "":
		return nil, invalid("no-reason", "there is no reason for discarding "+o.ID, "say why nobody will do what it asks")
	case len(o.Reason) > maxReasonBytes:
		return nil, invalid("too-large", "the reason is over 1,024 bytes", "shorten it")
	}
	by, err := s.cfg.Intake.Actors.ID(ctx, who)
	if err != nil {
		return nil, s.cfg.Intake.actorRefusal(err)
	}
	why := p.Error
	r := Receipt{
		Answer: es.Answer{Status: es.StatusDiscarded, Command: p.Command, Aggregate: p.Aggregate, Key: p.Key, Error: &why},
		Inbox:  p.Inbox, Actor: p.Actor, Stored: p.Stored, Settled: s.cfg.Now().UTC(), Parked: p.ID, By: by, Reason: o.Reason,
	}
	if canonicalID(p.Command) {
		if err := s.cfg.Store.keep(ctx, r); err != nil {
			return nil, err
		}
	}
	if err := s.cfg.Store.unpark(ctx, p.ID, sequence); err != nil {
		return nil, err
	}
	s.cfg.Logger.Warn("parked command discarded", "parked", p.ID, "command", p.Command, "by", by, "reason", o.Reason)
	return r, nil
}

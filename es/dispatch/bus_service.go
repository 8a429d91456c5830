package dispatch

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"catenary/es"
)

// Replies that somebody waits at. A request that crosses accounts comes with a reply of the server's making.
const (
	inboxPrefix       = nats.InboxPrefix
	crossAccountReply = "_R_."
)

// headerRequestInfo is what the server stamps on a request that crosses accounts; it replaces whatever the sender put
// there. The exact spelling counts: a copy in another case is the sender's own.
const headerRequestInfo = "Nats-Request-Info"

// ServiceConfig is what the command service needs.
type ServiceConfig struct {
	// Name and Version are shown by `nats micro`.
	Name, Version string
	// Conn is a connection in the ledger's account.
	Conn *nats.Conn
	// Intake makes commands of what comes in.
	Intake *Intake
	// Submit queues a command; see [Writer.Submit].
	Submit func(es.Command, func(es.Answer))
	// Inside names who acts on calls from inside the ledger's account that do not say.
	Inside string
	// Commands lists what is understood, as aggregate.verb, for `nats micro info`.
	Commands []string
	Logger   *slog.Logger
}

// Service answers commands on the bus, as a NATS micro service.
type Service struct {
	cfg     ServiceConfig
	ctx     context.Context
	cancel  context.CancelFunc
	service micro.Service
}

// NewService starts to listen. All commands come in through one endpoint, so that those of one connection are decided in
// the order they were sent.
func NewService(ctx context.Context, cfg ServiceConfig) (*Service, error) {
	s := &Service{cfg: cfg}
	s.ctx, s.cancel = context.WithCancel(ctx)
	svc, err := micro.AddService(cfg.Conn, micro.Config{
		Name: cfg.Name, Version: cfg.Version, Description: "Decides commands and records their events.",
	})
	if err != nil {
		s.cancel()
		return nil, errors.Wrap(err, "start the command service")
	}
	s.service = svc
	err = svc.AddEndpoint("command", micro.HandlerFunc(s.handle),
		micro.WithEndpointSubject(CommandPrefix+".*.*"),
		micro.WithEndpointMetadata(map[string]string{"commands": strings.Join(cfg.Commands, " ")}))
	if err != nil {
		return nil, errors.CombineErrors(errors.Wrap(err, "start the command service"), s.Stop())
	}
	return s, nil
}

// Stop ends listening; commands taken in before are still answered.
func (s *Service) Stop() error {
	s.cancel()
	return errors.Wrap(s.service.Stop(), "stop the command service")
}

// handle takes a request off the bus. The answer comes later, from the writer: a handler that waited for it would let one
// command through at a time.
func (s *Service) handle(req micro.Request) {
	r, optionsErr := readRequest(req, CommandPrefix)
	command := unread(req, r)
	who, err := caller(req, s.cfg.Inside)
	if errors.Is(err, errNobody) {
		// Nobody waits for an answer, and one sent anyway could acknowledge another's message.
		s.cfg.Logger.Warn("command ignored", "subject", req.Subject(), "reply", req.Reply(), "error", err)
		return
	}
	if err == nil {
		err = optionsErr
	}
	if err == nil {
		command, err = s.cfg.Intake.Command(s.ctx, r, who)
	}
	if err != nil {
		s.respond(req, s.refused(command, err))
		return
	}
	s.cfg.Submit(command, func(a es.Answer) { s.respond(req, a) })
}

// readRequest reads a command that comes below a prefix. It gives an *es.Refusal for a header that can't be read; what could
// be read stands all the same.
func readRequest(req micro.Request, prefix string) (Request, error) {
	h := nats.Header(req.Headers())
	r := Request{Body: req.Data(), ContentType: header(h, HeaderContentType)}
	r.Aggregate, r.Verb, _ = strings.Cut(strings.TrimPrefix(req.Subject(), prefix+"."), ".")
	var err error
	r.Options, err = readOptions(func(name string) (string, error) { return es.DecodeHeaderValue(header(h, name)) })
	return r, err
}

// unread is what an answer can say of a command that was not read.
func unread(req micro.Request, r Request) es.Command {
	return es.Command{Ref: es.Ref{Aggregate: r.Aggregate}, Verb: r.Verb, ID: header(nats.Header(req.Headers()), HeaderCommand)}
}

func (s *Service) refused(c es.Command, err error) es.Answer { return refusedAs(c, err, s.cfg.Logger) }

// refusedAs is the answer to a command that could not be read.
func refusedAs(c es.Command, err error, log *slog.Logger) es.Answer {
	var r *es.Refusal
	if !errors.As(err, &r) {
		log.Error("command could not be read", "aggregate", c.Ref.Aggregate, "verb", c.Verb, "error", err)
		r = &es.Refusal{Status: es.StatusInvalid, Code: "internal", Message: err.Error()}
	}
	return refusal(c, r)
}

// errUnproven marks, besides errNobody, what a user of another account has sent, but maybe not to us.
var errUnproven = errors.New("nobody waits for an answer")

// errNobody marks a message that no user asked to be done: a stream's delivery, a trace, or another service's answer that
// was led to a command's subject.
var errNobody = errors.New("no user sent this")

// caller says who sent a request; inside is who acts on calls from inside the ledger's account that do not say. The name comes
// from the connection, never from the body. It gives errors marked [errNobody].
func caller(req micro.Request, inside string) (Who, error) {
	h := nats.Header(req.Headers())
	stamped := header(h, headerRequestInfo)
	if stamped == "" {
		// No account border was crossed: it is one of our own processes.
		if reply := req.Reply(); reply != "" && !strings.HasPrefix(reply, inboxPrefix) {
			return Who{}, errors.Mark(errors.Newf("its reply %q is no inbox", reply), errNobody)
		}
		name := header(h, HeaderActor)
		if name == "" {
			name = inside
		}
		return Who{Name: name}, nil
	}
	var info struct {
		Account string `json:"acc"`
		Kind    string `json:"kind"`
		User    string `json:"user"`
	}
	if err := json.Unmarshal([]byte(stamped), &info); err != nil {
		return Who{}, errors.Mark(errors.Wrap(err, headerRequestInfo), errNobody)
	}
	if info.Kind == "Client" && info.User != "" && req.Reply() == "" {
		err := errors.Newf("user %q of account %q waits for no answer, so this may be one, led here", info.User, info.Account)
		return Who{}, errors.Mark(errors.Mark(err, errUnproven), errNobody)
	}
	if info.Kind != "Client" || info.User == "" || !strings.HasPrefix(req.Reply(), crossAccountReply) {
		return Who{}, errors.Mark(errors.Newf("it comes from account %q, kind %q, user %q", info.Account, info.Kind, info.User), errNobody)
	}
	return Who{Name: info.User, Account: info.Account}, nil
}

func (s *Service) respond(req micro.Request, a es.Answer) { respond(req, a, s.cfg.Logger) }

func respond(req micro.Request, a es.Answer, log *slog.Logger) {
	body, err := json.Marshal(a)
	if err != nil {
		log.Error("answer could not be written", "command", a.Command, "error", err)
		return
	}
	if a.Error != nil && a.Status != es.StatusUnchanged {
		err = req.Error(string(a.Status), a.Error.Message, body)
	} else {
		h := micro.Headers{HeaderContentType: {ContentTypeJSON}}
		if a.Repeated {
			h[HeaderRepeated] = []string{"1"}
		}
		err = req.Respond(body, micro.WithHeaders(h))
	}
	if err != nil && !errors.IsAny(err, nats.ErrMsgNoReply, nats.ErrConnectionClosed) {
		log.Warn("answer could not be sent", "command", a.Command, "status", a.Status, "error", err)
	}
}

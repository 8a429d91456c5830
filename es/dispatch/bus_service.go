package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"catenary/es"
	"catenary/internal/serving"
)

// Replies that somebody waits at. A request that crosses accounts comes with a reply of the server's making.
const (
	inboxPrefix       = nats.InboxPrefix
	crossAccountReply = "_R_."
)

// headerRequestInfo is what the server stamps on a request that crosses accounts; it replaces whatever the sender put
// there. The exact spelling counts: a copy in another case is the sender's own.
const headerRequestInfo = "Nats-Request-Info"

// maxPendingBytes bounds what was received and not handled yet. Past it the client library drops requests, which is logged. The
// default of 64 MiB and half a million messages is what a fast sender reaches while the process pauses for two seconds.
const maxPendingBytes = 512 << 20

// ServiceConfig is what the command service needs.
type ServiceConfig struct {
	// Name and Version are shown by `nats micro`.
	Name, Version string
	// Conn is a connection in the ledger's account.
	Conn *nats.Conn
	// Intake makes commands of what comes in.
	Intake *Intake
	// Offer queues a command; see [Writer.Offer].
	Offer func(Submission)
	// Inside names who acts on calls from inside the ledger's account that do not say.
	Inside string
	// Refused takes note of what is refused. It may be nil.
	Refused *RefusedLog
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
		ErrorHandler: s.failed,
	})
	if err != nil {
		s.cancel()
		return nil, errors.Wrap(err, "start the command service")
	}
	s.service = svc
	err = svc.AddEndpoint("command", micro.HandlerFunc(s.handle),
		micro.WithEndpointSubject(CommandPrefix+".*.*"),
		// Handling is quicker than receiving, so nothing piles up here unless the machine stands still.
		micro.WithEndpointPendingLimits(-1, maxPendingBytes),
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

// handle takes a request off the bus. It does no more than what tells whose it is: it is read when its sender's turn comes, and
// its answer comes later, from the writer.
func (s *Service) handle(req micro.Request) {
	r, optionsErr := readRequest(req, CommandPrefix)
	command := unread(req, r)
	who, sender, err := caller(req, s.cfg.Inside)
	if err != nil {
		// Nobody waits for an answer, and one sent anyway could acknowledge another's message.
		s.cfg.Logger.Warn("command ignored", "subject", req.Subject(), "reply", req.Reply(), "error", err)
		return
	}
	read := command // what is known of it, for the note of a refusal
	s.cfg.Offer(Submission{
		Command: command, Sender: sender, Bytes: len(r.Body) + headerBytes(nats.Header(req.Headers())),
		Read: func() (es.Command, error) {
			if optionsErr != nil {
				return command, optionsErr
			}
			c, err := s.cfg.Intake.Command(s.ctx, r, who)
			read = c
			return c, err
		},
		Answer: func(a es.Answer) {
			s.respond(req, a)
			s.cfg.Refused.Note(who, read, a)
		},
	})
}

// headerBytes is the size of a message's headers.
func headerBytes(h nats.Header) int {
	n := 0
	for name, values := range h {
		n += len(name)
		for _, v := range values {
			n += len(v)
		}
	}
	return n
}

// readRequest reads a command that comes below a prefix. It gives an *es.Refusal for a header that can't be read; what could
// be read stands all the same.
func readRequest(req micro.Request, prefix string) (Request, error) {
	h := nats.Header(req.Headers())
	r := Request{Body: req.Data(), ContentType: header(h, HeaderContentType)}
	r.Aggregate, r.Verb, _ = strings.Cut(strings.TrimPrefix(req.Subject(), prefix+"."), ".")
	var err error
	if r.Options, err = readOptions(func(name string) (string, error) { return es.DecodeHeaderValue(header(h, name)) }); err == nil {
		err = checkHeaders(h)
	}
	return r, err
}

// headerPrefix begins the names of our own headers.
const headerPrefix = "Cat-"

// checkHeaders refuses headers of ours that would be passed over, as a misspelt field of the body is refused: whoever sends an
// expected version must not be answered as if there were none. It gives an *es.Refusal.
func checkHeaders(h nats.Header) error {
	known := []string{
		HeaderCommand, HeaderExpected, HeaderEffective, HeaderBackfill, HeaderDeadline, HeaderFence, HeaderOnBehalfOf, HeaderCausation,
		HeaderCorrelation,
	}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		switch values := h[name]; {
		case len(name) < len(headerPrefix) || !strings.EqualFold(name[:len(headerPrefix)], headerPrefix):
		case strings.EqualFold(name, HeaderActor): // who acts is never taken from a sender, however it is spelt
		case !slices.Contains(known, name):
			return invalid("bad-header", fmt.Sprintf("header %.80q is unknown", name), "they are spelt "+strings.Join(known, ", "))
		case len(values) != 1 || values[0] == "":
			return invalid("bad-header", fmt.Sprintf("header %s must have one value, which is not empty", name), "leave it out when there is nothing to say")
		}
	}
	return nil
}

// unread is what an answer can say of a command that was not read.
func unread(req micro.Request, r Request) es.Command {
	return es.Command{Ref: es.Ref{Aggregate: r.Aggregate}, Verb: r.Verb, ID: header(nats.Header(req.Headers()), HeaderCommand)}
}

// refusedAs is the answer to a command that could not be read.
func refusedAs(c es.Command, err error, log *slog.Logger) es.Answer {
	var r *es.Refusal
	if !errors.As(err, &r) {
		log.Error("command could not be read", "aggregate", c.Ref.Aggregate, "verb", c.Verb, "command", c.ID, "error", err)
		r = &es.Refusal{Status: es.StatusInvalid, Code: "internal", Message: err.Error()}
	}
	return refusal(c, r)
}

// failed is told of errors of the service's subscriptions; the one that matters is that requests were dropped.
func (s *Service) failed(_ micro.Service, err *micro.NATSError) {
	s.cfg.Logger.Error("command service failed; requests may have been lost, and their senders will time out", "subject", err.Subject, "error", err.Description)
}

// errUnproven marks, besides errNobody, what a user of another account has sent, but maybe not to us.
var errUnproven = errors.New("nobody waits for an answer")

// errNobody marks a message that no user asked to be done: a stream's delivery, a trace, or another service's answer that
// was led to a command's subject.
var errNobody = errors.New("no user sent this")

// caller says who sent a request, and which of the senders that are to have equal shares of the queue it is: one connection, or,
// of our own processes, one inbox. Inside is who acts on calls from inside the ledger's account that do not say. The name comes
// from the connection, never from the body. It gives errors marked [errNobody].
func caller(req micro.Request, inside string) (who Who, sender string, err error) {
	h := nats.Header(req.Headers())
	stamped := header(h, headerRequestInfo)
	if stamped == "" {
		// No account border was crossed: it is one of our own processes.
		reply := req.Reply()
		if reply != "" && !strings.HasPrefix(reply, inboxPrefix) {
			return Who{}, "", errors.Mark(errors.Newf("its reply %q is no inbox", reply), errNobody)
		}
		name := header(h, HeaderActor)
		if name == "" {
			name = inside
		}
		return Who{Name: name}, inbox(reply) + name, nil
	}
	var info struct {
		Account    string `json:"acc"`
		Kind       string `json:"kind"`
		User       string `json:"user"`
		Server     string `json:"server"`
		Connection uint64 `json:"id"`
	}
	if err := json.Unmarshal([]byte(stamped), &info); err != nil {
		return Who{}, "", errors.Mark(errors.Wrap(err, headerRequestInfo), errNobody)
	}
	if info.Kind == "Client" && info.User != "" && req.Reply() == "" {
		err := errors.Newf("user %q of account %q waits for no answer, so this may be one, led here", info.User, info.Account)
		return Who{}, "", errors.Mark(errors.Mark(err, errUnproven), errNobody)
	}
	if info.Kind != "Client" || info.User == "" || !strings.HasPrefix(req.Reply(), crossAccountReply) {
		return Who{}, "", errors.Mark(errors.Newf("it comes from account %q, kind %q, user %q", info.Account, info.Kind, info.User), errNobody)
	}
	return Who{Name: info.User, Account: info.Account}, fmt.Sprintf("%s.%d", info.Server, info.Connection), nil
}

// inbox is what the replies to one connection's, or one pipeline's, requests have in common: clients number them in the last
// token. It is empty for a reply that is made for one request alone.
func inbox(reply string) string {
	end := strings.LastIndexByte(reply, '.') + 1
	if end <= len(inboxPrefix) {
		return ""
	}
	return reply[:end]
}

func (s *Service) respond(req micro.Request, a es.Answer) { respond(s.cfg.Conn, req, a, s.cfg.Logger) }

// respond sends an answer to whoever waits.
func respond(conn *nats.Conn, req micro.Request, a es.Answer, log *slog.Logger) {
	if req.Reply() == "" {
		return // nobody waits
	}
	body, err := json.Marshal(a)
	if err != nil {
		log.Error("answer could not be written", "command", a.Command, "error", err)
		return
	}
	headers := nats.Header{}
	if a.Error != nil && a.Status != es.StatusUnchanged {
		headers[micro.ErrorCodeHeader], headers[micro.ErrorHeader] = []string{string(a.Status)}, []string{a.Error.Message}
	} else {
		headers[HeaderContentType] = []string{ContentTypeJSON}
		if a.Repeated {
			headers[HeaderRepeated] = []string{"1"}
		}
	}
	if err = serving.Respond(conn, req.Reply(), headers, body); err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		log.Warn("answer could not be sent", "command", a.Command, "status", a.Status, "error", err)
	}
}

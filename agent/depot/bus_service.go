package depot

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"catenary/es/dispatch"
	"catenary/internal/topology"
)

const (
	// maxRequests bounds the requests at work: so many windows are held at once, 64 MiB in all.
	maxRequests = 16
	// requestTime bounds one request. What takes long says meanwhile that it is at it.
	requestTime = 10 * time.Minute
	// aliveInterval is how often that is said.
	aliveInterval = time.Second
	// sweepInterval is how often uploads are looked for that nobody goes on with.
	sweepInterval = time.Hour
	// insideName is who acts on requests from inside the ledger.
	insideName = "depot"
)

// Headers of requests and answers.
const (
	headerDigest = "Cat-Artifact"
	headerBytes  = "Cat-Bytes"
	headerAt     = "Cat-At"
	headerUpload = "Cat-Upload"
	headerAfter  = "Cat-After"
	// headerMore says that this is not the last part of the answer.
	headerMore = "Cat-More"
)

// What is asked of the depot.
const (
	askStat   = "stat"
	askPut    = "put"
	askFinish = "finish"
	askGet    = "get"
	askList   = "list"
	askJudge  = "judge"
	askPrune  = "prune"
)

type digestQuestion struct {
	Digest string `json:"digest"`
}

type finishQuestion struct {
	Digest string `json:"digest"`
	Bytes  int64  `json:"bytes"`
	File   string `json:"file,omitempty"`
}

type getQuestion struct {
	Digest string `json:"digest"`
	At     int64  `json:"at,omitempty"`
}

// sweepQuestion asks for verdicts: on one artifact or all of them.
type sweepQuestion struct {
	Digest string        `json:"digest,omitempty"`
	Window time.Duration `json:"window,omitempty"`
}

// Pruned is what became of an artifact that was to be removed, or of an upload.
type Pruned struct {
	*Verdict
	Upload *Upload `json:"upload,omitempty"`
}

// Config is what the service needs.
type Config struct {
	Store *Store
	// Facts reads what the chain says since a moment, once all that was recorded shows. Nil judges nothing.
	Facts func(ctx context.Context, since time.Time) (Facts, error)
	Now   func() time.Time
	// Version is the program's, in semantic form.
	Version string
	Logger  *slog.Logger
}

// Service is the depot on the bus, until it is stopped.
type Service struct {
	cfg    Config
	nc     *nats.Conn
	micro  micro.Service
	ctx    context.Context
	cancel context.CancelFunc
	slots  chan struct{}
	// pruning lets one at a time judge and remove.
	pruning chan struct{}

	mu      sync.Mutex
	stopped bool
	running sync.WaitGroup
}

// Serve starts answering; when it returns, the server knows that somebody does.
func Serve(nc *nats.Conn, c Config) (*Service, error) {
	s := &Service{cfg: c, nc: nc, slots: make(chan struct{}, maxRequests), pruning: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	var err error
	s.micro, err = micro.AddService(nc, micro.Config{
		Name: topology.DepotService, Version: c.Version, Description: "Keeps artifacts by their digest, and gives them out.",
	})
	if err != nil {
		s.cancel()
		return nil, errors.Wrapf(err, "start the service %s", topology.DepotService)
	}
	for name, handler := range map[string]func(context.Context, *asked) error{
		askStat: s.stat, askPut: s.put, askFinish: s.finish, askGet: s.get, askList: s.list, askJudge: s.judge, askPrune: s.prune,
	} {
		subject := topology.ArtifactSubject(name)
		if err := s.micro.AddEndpoint(name, s.endpoint(handler), micro.WithEndpointSubject(subject)); err != nil {
			return nil, errors.CombineErrors(errors.Wrapf(err, "serve %s", subject), s.Stop())
		}
	}
	if err := nc.Flush(); err != nil {
		return nil, errors.CombineErrors(errors.Wrapf(err, "start the service %s", topology.DepotService), s.Stop())
	}
	s.running.Go(s.sweep)
	return s, nil
}

// Stop takes no more requests, ends those at work, and returns when all have ended.
func (s *Service) Stop() error {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	err := s.micro.Stop()
	if errors.IsAny(err, nats.ErrConnectionClosed, nats.ErrConnectionDraining) {
		err = nil // the subscriptions went with the connection
	}
	s.cancel()
	s.running.Wait()
	return errors.Wrapf(err, "stop the service %s", topology.DepotService)
}

// sweep removes abandoned uploads now and then.
func (s *Service) sweep() {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		removed, err := s.cfg.Store.SweepUploads(s.ctx)
		for _, u := range removed {
			s.cfg.Logger.Info("an upload is removed that nobody has gone on with", "upload", u.Name, "since", u.Since)
		}
		if err != nil && s.ctx.Err() == nil {
			s.cfg.Logger.Warn("abandoned uploads can't be removed; trying again later", "error", err)
		}
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// asked is a request and the way its answer goes.
type asked struct {
	micro.Request
	nc *nats.Conn
	// mu keeps a sign of life from coming after the end.
	mu    sync.Mutex
	ended bool
}

// read reads the question strictly.
func (a *asked) read(into any) error {
	d := json.NewDecoder(bytes.NewReader(a.Data()))
	d.DisallowUnknownFields()
	return errors.Mark(errors.Wrap(d.Decode(into), "the request's body"), errQuestion)
}

// number reads a header.
func (a *asked) number(name string) (int64, error) {
	n, err := strconv.ParseInt(a.Headers().Get(name), 10, 64)
	return n, errors.Mark(errors.Wrapf(err, "header %s", name), errQuestion)
}

// send sends one part of the answer; end says that it is the last one. It goes past the request's own means: those note an error in the
// request, which the library reads when the handler has returned.
func (a *asked) send(h nats.Header, body []byte, end bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return nil
	}
	a.ended = end
	if h == nil {
		h = nats.Header{}
	}
	if !end {
		h.Set(headerMore, "1")
	}
	return a.nc.PublishMsg(&nats.Msg{Subject: a.Reply(), Header: h, Data: body})
}

func (a *asked) value(v any, end bool) error {
	body, err := json.Marshal(v)
	if err != nil {
		return errors.Wrap(err, "encode the answer")
	}
	return a.send(nil, body, end)
}

func (a *asked) fail(err error) error {
	return a.send(nats.Header{micro.ErrorCodeHeader: {codeOf(err)}, micro.ErrorHeader: {err.Error()}}, nil, true)
}

// endpoint takes a request off the subscription at once: a micro service hands over one at a time.
func (s *Service) endpoint(handler func(context.Context, *asked) error) micro.HandlerFunc {
	return func(r micro.Request) {
		if _, err := dispatch.Caller(r, insideName); err != nil {
			s.cfg.Logger.Warn("request to the depot ignored", "subject", r.Subject(), "error", err)
			return
		}
		a := &asked{Request: r, nc: s.nc}
		if !s.begin() {
			s.report(r, a.fail(errors.Mark(errors.Newf("%d requests are being worked at; ask again", maxRequests), ErrBusy)))
			return
		}
		go func() {
			defer s.end()
			ctx, cancel := context.WithTimeout(s.ctx, requestTime)
			defer cancel()
			if err := handler(ctx, a); err != nil {
				err = a.fail(err)
				s.report(r, err)
			}
		}()
	}
}

func (s *Service) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	select {
	case s.slots <- struct{}{}:
		s.running.Add(1)
		return true
	default:
		return false
	}
}

func (s *Service) end() {
	<-s.slots
	s.running.Done()
}

// report logs what can't be told to the asker, because the way there is what failed.
func (s *Service) report(r micro.Request, err error) {
	if err != nil && s.ctx.Err() == nil {
		s.cfg.Logger.Warn("an answer of the depot could not be sent", "subject", r.Subject(), "error", err)
	}
}

// alive says that a request is being worked at until the work is done.
func alive(ctx context.Context, a *asked, work func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var saying sync.WaitGroup
	saying.Go(func() {
		tick := time.NewTicker(aliveInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if a.send(nil, nil, false) != nil {
					return // the end of the answer will not arrive either, and that is reported
				}
			}
		}
	})
	err := work(ctx)
	cancel()
	saying.Wait()
	return err
}

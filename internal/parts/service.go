package parts

import (
	"context"
	"log/slog"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"catenary/internal/serving"
)

// requestTime bounds one request. What takes long says meanwhile that it is at it.
const requestTime = 10 * time.Minute

// Handler answers a request. Its error becomes the last part; without one it MUST have sent that itself.
type Handler func(ctx context.Context, r *Request) error

// Endpoint is what is answered on a subject.
type Endpoint struct {
	Name, Subject string
	Handler       Handler
}

// Config is what a service needs.
type Config struct {
	Conn *nats.Conn
	// Name, Version and About are shown by `nats micro`.
	Name, Version, About string
	Endpoints            []Endpoint
	// Most bounds the requests at work.
	Most int
	// Admit gives an error for a request that MUST NOT be answered.
	Admit func(micro.Request) error
	// Code gives the code under which an error travels, Busy the error that there are too many requests.
	Code   func(error) string
	Busy   error
	Logger *slog.Logger
}

// Service answers until it is stopped.
type Service struct {
	cfg    Config
	micro  micro.Service
	ctx    context.Context
	cancel context.CancelFunc
	group  *serving.Group
}

// Serve starts answering; when it returns, the server knows that somebody does.
func Serve(c Config) (*Service, error) {
	s := &Service{cfg: c, group: serving.NewGroup(c.Most)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	var err error
	s.micro, err = micro.AddService(c.Conn, micro.Config{Name: c.Name, Version: c.Version, Description: c.About})
	if err != nil {
		s.cancel()
		return nil, errors.Wrapf(err, "start the service %s", c.Name)
	}
	for _, e := range c.Endpoints {
		if err := s.micro.AddEndpoint(e.Name, s.endpoint(e.Handler), micro.WithEndpointSubject(e.Subject)); err != nil {
			return nil, errors.CombineErrors(errors.Wrapf(err, "serve %s", e.Subject), s.Stop())
		}
	}
	if err := c.Conn.Flush(); err != nil {
		return nil, errors.CombineErrors(errors.Wrapf(err, "start the service %s", c.Name), s.Stop())
	}
	return s, nil
}

// Stop takes no more requests, ends those at work, and returns when all have ended.
func (s *Service) Stop() error {
	s.group.Close()
	err := s.micro.Stop()
	s.cancel()
	s.group.Wait()
	return errors.Wrapf(err, "stop the service %s", s.cfg.Name)
}

// endpoint takes a request off the subscription at once: a micro service hands over one at a time.
func (s *Service) endpoint(handler Handler) micro.HandlerFunc {
	return func(r micro.Request) {
		if err := s.cfg.Admit(r); err != nil {
			s.cfg.Logger.Warn("a request is ignored", "service", s.cfg.Name, "subject", r.Subject(), "error", err)
			return
		}
		request := &Request{Request: r, conn: s.cfg.Conn}
		began := s.group.TryGo(func() {
			ctx, cancel := context.WithTimeout(s.ctx, requestTime)
			defer cancel()
			if err := handler(ctx, request); err != nil {
				s.fail(request, err)
			}
		})
		if !began {
			s.fail(request, s.cfg.Busy)
		}
	}
}

// fail sends an error as the last part. What can't be told, because the way there is what failed, is logged.
func (s *Service) fail(r *Request, err error) {
	header := nats.Header{micro.ErrorCodeHeader: {s.cfg.Code(err)}, micro.ErrorHeader: {err.Error()}}
	if err := r.Send(header, nil, true); err != nil && s.ctx.Err() == nil {
		s.cfg.Logger.Warn("an answer could not be sent", "service", s.cfg.Name, "subject", r.Subject(), "error", err)
	}
}

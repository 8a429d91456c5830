package run

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
)

// Bounds on who asks over HTTP: answers are small, and nobody has to wait for a slow one.
const (
	httpHeaderTime = 5 * time.Second
	httpAnswerTime = 10 * time.Second
	httpStopTime   = time.Second
)

// Page is where a process is asked over HTTP.
type Page struct{ listener net.Listener }

// ListenHTTP listens on HOST:PORT, or on loopback where only a port is given, as 9090 or :9090. It gives errors marked [ErrSettings].
func ListenHTTP(address string) (Page, error) {
	if !strings.Contains(address, ":") {
		address = ":" + address
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return Page{}, errors.Mark(errors.Newf("http is %q: it is HOST:PORT, or a port on loopback", address), ErrSettings)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return Page{}, errors.Mark(errors.Wrapf(err, "http: listen on %s; choose another address, or port 0 for any free one", net.JoinHostPort(host, port)), ErrSettings)
	}
	return Page{listener: listener}, nil
}

// URL is what the pages are below; empty when none are served.
func (p Page) URL() string {
	if p.listener == nil {
		return ""
	}
	return "http://" + p.listener.Addr().String()
}

// serve answers until the context ends.
func (p Page) serve(ctx context.Context, m Monitor, log *slog.Logger) {
	mux := http.NewServeMux()
	m.Health.Handle(mux)
	m.Metrics.Handle(mux)
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: httpHeaderTime, WriteTimeout: httpAnswerTime, IdleTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(p.listener) }()
	select {
	case err := <-ended:
		log.Error("health and metrics are served no more", "error", err)
		return
	case <-ctx.Done():
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), httpStopTime)
	defer cancel()
	if server.Shutdown(late) != nil {
		_ = server.Close() // who still asks gets no answer
	}
	<-ended
}

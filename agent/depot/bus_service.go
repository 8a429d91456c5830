package depot

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"catenary/es/dispatch"
	"catenary/events"
	"catenary/internal/parts"
	"catenary/internal/topology"
)

const (
	// maxRequests bounds the requests at work: so many windows are held at once, 64 MiB in all.
	maxRequests = 16
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
)

// What is asked of the depot.
const (
	askStat   = "stat"
	askPut    = "put"
	askFinish = "finish"
	askGet    = "get"
	askName   = "name"
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

// nameQuestion asks which artifact a package is.
type nameQuestion struct {
	Package events.Package `json:"package"`
}

// named is the answer.
type named struct {
	Digest string `json:"digest"`
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
	// Named tells which artifact was published under the name of a package, with errors as [Named] gives them. Nil knows none.
	Named func(ctx context.Context, p events.Package) (string, error)
	Now   func() time.Time
	// Version is the program's, in semantic form.
	Version string
	Logger  *slog.Logger
}

// Service is the depot on the bus, until it is stopped.
type Service struct {
	cfg   Config
	parts *parts.Service
	// pruning lets one at a time judge and remove.
	pruning chan struct{}
	stop    context.CancelFunc
	sweeps  sync.WaitGroup
}

// Serve starts answering; when it returns, the server knows that somebody does.
func Serve(nc *nats.Conn, c Config) (*Service, error) {
	s := &Service{cfg: c, pruning: make(chan struct{}, 1)}
	var endpoints []parts.Endpoint
	for name, handler := range map[string]parts.Handler{
		askStat: s.stat, askPut: s.put, askFinish: s.finish, askGet: s.get, askName: s.name, askList: s.list, askJudge: s.judge, askPrune: s.prune,
	} {
		endpoints = append(endpoints, parts.Endpoint{Name: name, Subject: topology.ArtifactSubject(name), Handler: handler})
	}
	var err error
	s.parts, err = parts.Serve(parts.Config{
		Conn: nc, Name: topology.DepotService, Version: c.Version, About: "Keeps artifacts by their digest, and gives them out.",
		Endpoints: endpoints, Most: maxRequests, Code: codeOf, Logger: c.Logger,
		Busy: errors.Mark(errors.Newf("%d requests are being worked at; ask again", maxRequests), ErrBusy),
		Admit: func(r micro.Request) error {
			_, err := dispatch.Caller(r, insideName)
			return err
		},
	})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.sweeps.Go(func() { s.sweep(ctx) })
	return s, nil
}

// Stop takes no more requests, ends those at work, and returns when all have ended.
func (s *Service) Stop() error {
	s.stop()
	s.sweeps.Wait()
	return s.parts.Stop()
}

// sweep removes abandoned uploads now and then.
func (s *Service) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		removed, err := s.cfg.Store.SweepUploads(ctx)
		for _, u := range removed {
			s.cfg.Logger.Info("an upload is removed that nobody has gone on with", "upload", u.Name, "since", u.Since)
		}
		if err != nil && ctx.Err() == nil {
			s.cfg.Logger.Warn("abandoned uploads can't be removed; trying again later", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

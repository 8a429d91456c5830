package depot

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/agent/artifacts"
	"catenary/internal/parts"
)

func (s *Service) stat(ctx context.Context, a *parts.Request) error {
	var q digestQuestion
	if err := a.Read(&q); err != nil {
		return err
	}
	place, err := s.cfg.Store.Stat(ctx, q.Digest)
	if err != nil {
		return err
	}
	return a.Value(place, true)
}

func (s *Service) put(ctx context.Context, a *parts.Request) error {
	c := Chunk{Digest: a.Headers().Get(headerDigest), Data: a.Data()}
	c.After.Upload = a.Headers().Get(headerUpload)
	var after int64
	for name, into := range map[string]*int64{headerBytes: &c.Bytes, headerAt: &c.After.Have, headerAfter: &after} {
		var err error
		if *into, err = a.Number(name); err != nil {
			return err
		}
	}
	c.After.After = uint64(max(after, 0))
	place, err := s.cfg.Store.Put(ctx, c)
	if err != nil {
		return err
	}
	return a.Value(place, true)
}

func (s *Service) finish(ctx context.Context, a *parts.Request) error {
	var q finishQuestion
	if err := a.Read(&q); err != nil {
		return err
	}
	var done Finished
	err := a.Alive(ctx, func(ctx context.Context) (err error) {
		done, err = s.cfg.Store.Finish(ctx, q.Digest, q.Bytes, q.File)
		return err
	})
	if err != nil {
		return err
	}
	return a.Value(done, true)
}

func (s *Service) get(ctx context.Context, a *parts.Request) error {
	var q getQuestion
	if err := a.Read(&q); err != nil {
		return err
	}
	bytes, pieces, err := s.cfg.Store.Read(ctx, q.Digest, q.At)
	if err != nil {
		return err
	}
	at := q.At
	for p, err := range pieces {
		if err != nil {
			return err
		}
		if err := a.Send(nats.Header{headerAt: {strconv.FormatInt(p.At, 10)}}, p.Data, false); err != nil {
			return err
		}
		at = p.At + int64(len(p.Data))
	}
	return a.Send(nats.Header{headerAt: {strconv.FormatInt(at, 10)}, headerBytes: {strconv.FormatInt(bytes, 10)}}, nil, true)
}

func (s *Service) name(ctx context.Context, a *parts.Request) error {
	var q nameQuestion
	if err := a.Read(&q); err != nil {
		return err
	}
	if q.Package.Name == "" || q.Package.Version == "" || s.cfg.Named == nil {
		return errors.Mark(errors.New("a package has a name and a version"), parts.ErrRequest)
	}
	var n named
	err := a.Alive(ctx, func(ctx context.Context) (err error) {
		n.Digest, err = s.cfg.Named(ctx, q.Package)
		return err
	})
	if err != nil {
		return err
	}
	return a.Value(n, true)
}

func (s *Service) list(ctx context.Context, a *parts.Request) error {
	var found []Stored
	err := a.Alive(ctx, func(ctx context.Context) (err error) {
		found, err = s.cfg.Store.List(ctx)
		return err
	})
	if err != nil {
		return err
	}
	return parts.Each(a, found)
}

func (s *Service) judge(ctx context.Context, a *parts.Request) error {
	var q sweepQuestion
	if err := a.Read(&q); err != nil {
		return err
	}
	var verdicts []Verdict
	err := a.Alive(ctx, func(ctx context.Context) (err error) {
		verdicts, err = s.verdicts(ctx, q)
		return err
	})
	if err != nil {
		return err
	}
	return parts.Each(a, verdicts)
}

// verdicts judges all artifacts or one.
func (s *Service) verdicts(ctx context.Context, q sweepQuestion) ([]Verdict, error) {
	q.Window = cmp.Or(q.Window, DefaultWindow)
	if q.Window < 0 || s.cfg.Facts == nil {
		return nil, errors.Mark(errors.Newf("a window of %s: give a span above zero", q.Window), parts.ErrRequest)
	}
	stored, err := s.cfg.Store.List(ctx)
	if err != nil {
		return nil, err
	}
	if q.Digest != "" {
		if _, err := artifacts.ParseDigest(q.Digest); err != nil {
			return nil, err
		}
		stored = slices.DeleteFunc(stored, func(s Stored) bool { return s.Digest != q.Digest })
		if len(stored) == 0 {
			_, err := s.cfg.Store.artifact(ctx, q.Digest)
			return nil, err
		}
	}
	// What is stored was listed first: what is recorded of it meanwhile is among the facts.
	now := s.cfg.Now()
	facts, err := s.cfg.Facts(ctx, now.Add(-q.Window))
	if err != nil {
		return nil, errors.Wrap(err, "what the chain says of artifacts")
	}
	return Sweep(stored, facts, now, q.Window), nil
}

// prune removes what is not kept, and tells each as it goes.
func (s *Service) prune(ctx context.Context, a *parts.Request) error {
	var q sweepQuestion
	if err := a.Read(&q); err != nil {
		return err
	}
	select {
	case s.pruning <- struct{}{}:
		defer func() { <-s.pruning }()
	default:
		return errors.Mark(errors.New("artifacts are being removed already; ask again when that is done"), ErrBusy)
	}
	return a.Alive(ctx, func(ctx context.Context) error {
		verdicts, err := s.verdicts(ctx, q)
		if err != nil {
			return err
		}
		for _, v := range verdicts {
			if v.Keep {
				continue
			}
			err := s.cfg.Store.Remove(ctx, v.Stored)
			if errors.IsAny(err, errMoved, artifacts.ErrNotFound) {
				continue // it is kept after all, or somebody else has removed it
			}
			if err != nil {
				return err
			}
			s.cfg.Logger.Info("an artifact is removed", "artifact", v.Digest, "bytes", v.Bytes, "why", v.Why)
			if err := a.Value(Pruned{Verdict: &v}, false); err != nil {
				return err
			}
		}
		uploads, err := s.cfg.Store.SweepUploads(ctx)
		for _, u := range uploads {
			if err := a.Value(Pruned{Upload: &u}, false); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		return a.Send(nil, nil, true)
	})
}

package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/internal/run"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// parts are processes of the chain that run in this one.
type parts struct {
	cancel context.CancelFunc
	ended  []chan error
}

// startParts starts each part and waits until all are ready. The parts stop with the context or by stop.
func startParts(ctx context.Context, each ...func(ctx context.Context, ready func()) error) (*parts, error) {
	ctx, cancel := context.WithCancel(ctx)
	p := &parts{cancel: cancel}
	for _, part := range each {
		ready, ended := make(chan struct{}), make(chan error, 1)
		p.ended = append(p.ended, ended)
		go func() { ended <- part(ctx, func() { close(ready) }) }()
		select {
		case <-ready:
		case err := <-ended:
			ended <- err
			return nil, errors.CombineErrors(errors.Wrap(err, "a part of the chain did not start"), p.stop())
		}
	}
	return p, nil
}

// stop stops the parts and gives why the first one ended.
func (p *parts) stop() error {
	p.cancel()
	var failure error
	for _, ended := range p.ended {
		failure = errors.CombineErrors(failure, <-ended)
	}
	return failure
}

// writerPart is the writer's process.
func writerPart(nc *nats.Conn, s server, g ground) func(context.Context, func()) error {
	return func(ctx context.Context, ready func()) error {
		return run.Writer(ctx, nc, run.WriterConfig{Streams: s.Options(), Durability: g.dispatch(), Logger: discard(), Ready: ready})
	}
}

// projectorPart is the projector's process, with its audit store in a folder.
func projectorPart(nc *nats.Conn, s server, folder string) func(context.Context, func()) error {
	return func(ctx context.Context, ready func()) error {
		return run.Projector(ctx, nc, run.ProjectorConfig{Streams: s.Options(), AuditFile: filepath.Join(folder, run.AuditFile), Logger: discard(), Ready: ready})
	}
}

// onChain runs work on a whole chain with an empty store: server, writer, projector and mirrors, as `catenary up` has them. It
// gives work a connection as people have it.
func (g ground) onChain(ctx context.Context, dir string, work func(context.Context, server, *nats.Conn) error) error {
	return g.on(ctx, dir, func(ctx context.Context, s server) (err error) {
		var conns [2]*nats.Conn
		for i := range conns {
			if conns[i], err = s.Ledger(); err != nil {
				return err
			}
		}
		if err := run.Prepare(ctx, conns[0], s.Options()); err != nil {
			return err
		}
		if err := s.EnsureMirrors(ctx); err != nil {
			return err
		}
		folder, err := os.MkdirTemp(dir, "audit-")
		if err != nil {
			return errors.Wrap(err, "folder of the audit store")
		}
		p, err := startParts(ctx, writerPart(conns[0], s, g), projectorPart(conns[1], s, folder))
		if err != nil {
			return err
		}
		defer func() { err = errors.CombineErrors(err, p.stop()) }()
		nc, err := nats.Connect(s.ClientURL(), nats.Name("bench"))
		if err != nil {
			return errors.Wrap(err, "connect as people do")
		}
		defer nc.Close()
		return work(ctx, s, nc)
	})
}

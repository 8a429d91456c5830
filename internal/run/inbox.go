package run

import (
	"context"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/internal/topology"
)

// openInbox makes or checks the inbox's streams.
func openInbox(ctx context.Context, nc *nats.Conn, o topology.Options) (*dispatch.InboxStore, error) {
	return dispatch.OpenInbox(ctx, nc, dispatch.InboxStreams{
		Inbox: topology.Inbox(o), Worker: topology.InboxWorker(o), Parked: topology.Parked(o), Receipts: topology.Receipts(o),
	})
}

// refusals is where refused commands are kept, and what writes them down.
type refusals struct {
	store *dispatch.RefusedStore
	log   *dispatch.RefusedLog
}

// serveInbox takes commands in to be kept, until the context ends. It needs no writer: they are worked off when there is one.
func (p *writerPart) serveInbox(ctx context.Context) error {
	service, err := dispatch.NewInboxService(ctx, dispatch.InboxServiceConfig{
		Name: topology.InboxService, Version: Version(), Conn: p.nc, Store: p.inbox, Intake: p.intake, Inside: insideName,
		Refused: p.refused.log, RefusedStore: p.refused.store, Now: p.cfg.Now, Logger: p.log,
	})
	if err != nil {
		return stoppedBy(ctx, err)
	}
	<-ctx.Done()
	err = service.Stop()
	if p.nc.IsClosed() {
		// The subscriptions went with the connection, whose end has its own report.
		return nil
	}
	return err
}

// workInbox works off the inbox from when the writer is ready until the context ends.
func (p *writerPart) workInbox(ctx context.Context, writer *dispatch.Writer) error {
	select {
	case <-writer.Ready():
	case <-ctx.Done():
		return nil
	}
	offer := p.watch.offer(writer.Offer)
	worker := dispatch.NewInboxWorker(dispatch.WorkerConfig{Store: p.inbox, Intake: p.intake, Submit: func(c es.Command, answer func(es.Answer)) {
		offer(dispatch.Submission{Command: c, Sender: c.Actor, Answer: answer})
	}, Refused: p.refused.log, Now: p.cfg.Now, Logger: p.log})
	return errors.Wrap(worker.Run(ctx), "work off the inbox")
}

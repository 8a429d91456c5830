package run

import (
	"context"
	"log/slog"
	"time"

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
func serveInbox(ctx context.Context, nc *nats.Conn, store *dispatch.InboxStore, intake *dispatch.Intake, refused refusals, now func() time.Time, log *slog.Logger) error {
	service, err := dispatch.NewInboxService(ctx, dispatch.InboxServiceConfig{
		Name: topology.InboxService, Version: Version(), Conn: nc, Store: store, Intake: intake, Inside: insideName,
		Refused: refused.log, RefusedStore: refused.store, Now: now, Logger: log,
	})
	if err != nil {
		return stoppedBy(ctx, err)
	}
	<-ctx.Done()
	err = service.Stop()
	if nc.IsClosed() {
		// The subscriptions went with the connection, whose end has its own report.
		return nil
	}
	return err
}

// workInbox works off the inbox from when the writer is ready until the context ends.
func workInbox(ctx context.Context, store *dispatch.InboxStore, writer *dispatch.Writer, offer func(dispatch.Submission), intake *dispatch.Intake, refused *dispatch.RefusedLog, now func() time.Time, log *slog.Logger) error {
	select {
	case <-writer.Ready():
	case <-ctx.Done():
		return nil
	}
	worker := dispatch.NewInboxWorker(dispatch.WorkerConfig{Store: store, Intake: intake, Submit: func(c es.Command, answer func(es.Answer)) {
		offer(dispatch.Submission{Command: c, Sender: c.Actor, Answer: answer})
	}, Refused: refused, Now: now, Logger: log})
	return errors.Wrap(worker.Run(ctx), "work off the inbox")
}

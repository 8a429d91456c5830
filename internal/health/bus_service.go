package health

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"catenary/internal/topology"
)

// Question is what every process answers: catenary.query.health.
const Question = "health"

// Serve answers over a connection in the ledger's account how this process is, until the context ends. Every process answers each
// question, so that who asks once hears of all. It gives errors when it can't be asked for.
func Serve(ctx context.Context, nc *nats.Conn, r *Registry, log *slog.Logger) error {
	var asked sync.WaitGroup
	defer asked.Wait()
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	service, err := micro.AddService(nc, micro.Config{
		Name: topology.HealthService, Version: r.process.Version, Description: "Says how a process of Catenary is. All of them answer.",
		Metadata: map[string]string{"program": r.process.Program},
	})
	if err == nil {
		err = service.AddEndpoint(Question, micro.HandlerFunc(func(q micro.Request) {
			reply := q.Reply()
			asked.Go(func() { tell(asking, nc, reply, r, log) })
		}), micro.WithEndpointSubject(topology.QuerySubject(Question)), micro.WithEndpointQueueGroupDisabled())
	}
	if err != nil {
		return errors.Wrap(err, "answer how this process is")
	}
	<-ctx.Done()
	if err := service.Stop(); err != nil && !nc.IsClosed() {
		return errors.Wrap(err, "stop answering how this process is")
	}
	return nil
}

// tell answers one question.
func tell(ctx context.Context, nc *nats.Conn, reply string, r *Registry, log *slog.Logger) {
	if reply == "" {
		return // nobody waits
	}
	body, err := json.Marshal(r.Report(ctx))
	if err == nil {
		err = nc.Publish(reply, body)
	}
	if err != nil && !nc.IsClosed() {
		log.Warn("how this process is could not be told", "error", err)
	}
}

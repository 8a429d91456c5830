package run

import (
	"context"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go/micro"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/internal/backup"
	"catenary/internal/parts"
	"catenary/internal/topology"
)

// storeQuestions bounds the questions of backups that are answered at once.
const storeQuestions = 16

// errStoreBusy is given to those beyond.
var errStoreBusy = errors.New("too many backups are being taken; ask again")

// serveStore gives out what a backup needs until the context ends. Every writer does, also one that stands by: what they give is the same.
func (p *writerPart) serveStore(ctx context.Context) error {
	ledger, err := backup.NewLedger(p.nc, p.store)
	if err != nil {
		return err
	}
	service, err := parts.Serve(parts.Config{
		Conn: p.nc, Name: topology.StoreService, Version: Version(), About: "Gives out what a backup needs.",
		Endpoints: ledger.Endpoints(),
		Most:      storeQuestions, Busy: errStoreBusy, Logger: p.log,
		Code: func(err error) string {
			if errors.IsAny(err, es.ErrUnavailable, errStoreBusy) {
				return backup.CodeUnavailable
			}
			return "500"
		},
		Admit: func(r micro.Request) error {
			_, err := dispatch.Caller(r, insideName)
			return err
		},
	})
	return untilStopped(ctx, service, err, func() {})
}

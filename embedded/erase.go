package embedded

import (
	"context"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/internal/topology"
)

// EraseActor overwrites what the ops account's mirror of the actor directory holds at a sequence, on the disk too. It is called before
// the directory forgets it: a mirror that merely follows would leave the bytes in its files. It gives ErrStopped, the context's error,
// and what the bus gives.
func (s *Server) EraseActor(ctx context.Context, sequence uint64) error {
	nc, err := s.Mirrors()
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return errors.Wrap(err, "erase an actor in the mirror")
	}
	tick := time.NewTicker(settlePollInterval)
	defer tick.Stop()
	for {
		mirror, err := js.Stream(ctx, topology.BucketStream(topology.BucketActors))
		if err != nil {
			return errors.Wrap(err, "erase an actor in the mirror")
		}
		// A mirror that has not got it yet would get it later.
		if mirror.CachedInfo().State.LastSeq >= sequence {
			_, err := mirror.GetMsg(ctx, sequence)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				return nil // it was erased before
			}
			if err == nil {
				err = mirror.SecureDeleteMsg(ctx, sequence)
			}
			return errors.Wrapf(err, "erase value %d in the mirror of the actor directory", sequence)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Wrapf(ctx.Err(), "erase value %d in the mirror of the actor directory: it has not got it yet", sequence)
		}
	}
}

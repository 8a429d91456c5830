package streams

import (
	"context"
	"reflect"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go/jetstream"
)

// ensureTimeout bounds making or checking one stream, which takes milliseconds, and with replicas a second or two.
const ensureTimeout = 30 * time.Second

// Plan is a stream that is to be there.
type Plan struct {
	Want jetstream.StreamConfig
	// Keeps says what is kept in it, such as events, for people.
	Keeps string
	// Check says of a stream that exists whether it may be used. Nil means that it is held to all rules of [Check].
	Check func(found jetstream.StreamConfig) error
	// Kind gives the errors of the server their kind.
	Kind func(error) error
}

// Ensure makes a stream, or checks that the one that exists keeps what it must. One that exists is given what it lacks: more bytes, larger
// messages, batches, more replicas where the server can give them, and the subject that its values are told on; the time for which it remembers ids is set. A higher limit stays, since
// lowering one can't make room. It gives the errors of the plan's check, of type [*ConfigError] by default, and those of the server.
func Ensure(ctx context.Context, js jetstream.JetStream, p Plan) (jetstream.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, ensureTimeout)
	defer cancel()
	var stream jetstream.Stream
	err := Insist(ctx, func(ctx context.Context) (err error) {
		stream, err = js.Stream(ctx, p.Want.Name)
		return err
	})
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = Create(ctx, js, p.Want)
	}
	if err != nil {
		return nil, p.Kind(errors.Wrapf(advised(err), "create stream %s", p.Want.Name))
	}
	found := stream.CachedInfo().Config
	raised := raise(p.Want, found)
	check := p.Check
	if check == nil {
		check = func(found jetstream.StreamConfig) error { return Check(p.Keeps, p.Want, found) }
	}
	if err := check(raised); err != nil {
		return nil, err
	}
	if reflect.DeepEqual(raised, found) {
		return stream, nil
	}
	err = Insist(ctx, func(ctx context.Context) (err error) {
		stream, err = js.UpdateStream(ctx, raised)
		return err
	})
	if err != nil {
		return nil, p.Kind(errors.Wrapf(err, "let stream %s have %d bytes, %d a message, %d replicas, and remember ids for %v", found.Name, raised.MaxBytes, raised.MaxMsgSize, raised.Replicas, raised.Duplicates))
	}
	return stream, nil
}

// raise gives a stream what it lacks of what is wanted.
func raise(want, found jetstream.StreamConfig) jetstream.StreamConfig {
	if found.MaxBytes >= 0 && found.MaxBytes < want.MaxBytes {
		found.MaxBytes = want.MaxBytes
	}
	if found.MaxMsgSize >= 0 && found.MaxMsgSize < want.MaxMsgSize || found.MaxMsgSize > 0 && want.MaxMsgSize <= 0 {
		found.MaxMsgSize = want.MaxMsgSize
	}
	if want.Duplicates > 0 {
		found.Duplicates = want.Duplicates
	}
	if want.RePublish != nil && found.RePublish == nil {
		found.RePublish = want.RePublish
	}
	found.Replicas = replicas(want, found)
	found.AllowBatchPublish = found.AllowBatchPublish || want.AllowBatchPublish
	return found
}

// replicas is how many a stream may have of those that are wanted: the server neither changes how a stream persists, nor replicates one that persists
// asynchronously.
func replicas(want, found jetstream.StreamConfig) int {
	if found.PersistMode != jetstream.DefaultPersistMode {
		return found.Replicas
	}
	return max(found.Replicas, want.Replicas)
}

// Replicate gives a stream the replicas that it lacks, where the server can, and changes nothing else of it. It is for streams that [Ensure] does not look
// after. It gives the server's errors.
func Replicate(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig, stream jetstream.Stream) error {
	c := stream.CachedInfo().Config
	lacks := c.Replicas
	if c.Replicas = replicas(want, c); c.Replicas == lacks {
		return nil
	}
	_, err := js.UpdateStream(ctx, c)
	return errors.Wrapf(err, "let stream %s have %d replicas", c.Name, c.Replicas)
}

package streams

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// createAttempt bounds one request to make a stream, which is answered in milliseconds, and with replicas in a second or two
// on a busy machine. A cluster that has just begun can lose a request while it elects its leader, and never answers it then.
const createAttempt = 5 * time.Second

// offlinePatience is how long a server is waited for that the others take for gone: one of a cluster that has just begun is, for a moment.
// offlinePause is how long it is left alone between two questions.
const (
	offlinePatience = 10 * time.Second
	offlinePause    = 100 * time.Millisecond
)

// Create makes a stream, or gives the one that somebody else has made meanwhile. A request that stays without an answer is
// made again until the context ends: asking twice for the same stream makes one. So is, for a while, one that is refused since a server that it
// needs is taken for gone. It gives the client's errors.
func Create(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) (jetstream.Stream, error) {
	for began := time.Now(); ; {
		attempt, cancel := context.WithTimeout(ctx, createAttempt)
		stream, err := js.CreateStream(attempt, want)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			stream, err = js.Stream(attempt, want.Name)
		}
		cancel()
		switch {
		case ctx.Err() != nil:
			return stream, err
		case errors.Is(err, context.DeadlineExceeded):
		case isOffline(err) && time.Since(began) < offlinePatience:
			select {
			case <-time.After(offlinePause):
			case <-ctx.Done():
				return stream, err
			}
		default:
			return stream, advised(err)
		}
	}
}

// advised says what to do about a stream that the server has found and can't read: it goes on without it, and only its log says why.
func advised(err error) error {
	var api *jetstream.APIError
	if errors.As(err, &api) && (api.ErrorCode == codeStopped || api.ErrorCode == codeUnreadable) {
		return errors.WithHint(err, "the server's log names the file that it can't read: stop the server, and move that consumer's directory away (below obs), or the stream's, which is made anew then; "+
			"the event stream comes back from a replica or with catenary restore")
	}
	return err
}

// isOffline says whether a stream was refused because a server is away. The code alone may also mean that none of them has room.
func isOffline(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeNoPeers && strings.Contains(api.Description, "offline")
}

// Codes by which the server says that it has no room for a stream's limit.
const (
	codeNoPeers         jetstream.ErrorCode = 10005
	codeInsufficient    jetstream.ErrorCode = 10023
	codeStorageExceeded jetstream.ErrorCode = 10047
)

// Codes by which the server says that it can't read what it has kept of a stream, or of one of its consumers.
const (
	codeUnreadable jetstream.ErrorCode = 10049
	codeStopped    jetstream.ErrorCode = 10194
)

// CreateWithin makes a stream as [Create] does. When the server has no room for its limit it gets a lesser one, or half of that, and so on
// down to the least: a chain that was begun before there was such a stream has given most of its store to the others, and the rest is
// not for this one alone. The errors are those of [Create].
func CreateWithin(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig, lesser, least int64) (jetstream.Stream, error) {
	for {
		stream, err := Create(ctx, js, want)
		var api *jetstream.APIError
		if !errors.As(err, &api) || !slices.Contains([]jetstream.ErrorCode{codeNoPeers, codeInsufficient, codeStorageExceeded}, api.ErrorCode) {
			return stream, err
		}
		less := min(lesser, want.MaxBytes/2)
		if less < least {
			return stream, err
		}
		want.MaxBytes = less
	}
}

// ensureWithin bounds the making of a stream, with all that is asked for it.
const ensureWithin = 30 * time.Second

// EnsureWithin gives the configuration of the stream that there is, with the replicas that it lacked, or makes one as [CreateWithin] does. Whether one that was there is what it
// has to be is left to the caller. It gives the client's errors.
func EnsureWithin(ctx context.Context, nc *nats.Conn, want jetstream.StreamConfig, lesser, least int64) (jetstream.StreamConfig, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return want, errors.Wrapf(err, "create stream %s", want.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, ensureWithin)
	defer cancel()
	stream, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = CreateWithin(ctx, js, want, lesser, least)
	}
	if err != nil {
		return want, errors.Wrapf(err, "create stream %s", want.Name)
	}
	return stream.CachedInfo().Config, Replicate(ctx, js, want, stream)
}

package streams_test

import (
	"context"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/internal/streams"
)

// kept is a server with one stream.
type kept struct {
	jetstream.JetStream
	config  *jetstream.StreamConfig
	updates int
	fails   error
}

// standing is its stream.
type standing struct {
	jetstream.Stream
	config jetstream.StreamConfig
}

func (s standing) CachedInfo() *jetstream.StreamInfo {
	return &jetstream.StreamInfo{Config: s.config}
}

func (k *kept) Stream(context.Context, string) (jetstream.Stream, error) {
	if k.config == nil {
		return nil, jetstream.ErrStreamNotFound
	}
	return standing{config: *k.config}, nil
}

func (k *kept) CreateStream(_ context.Context, c jetstream.StreamConfig) (jetstream.Stream, error) {
	k.config = &c
	return standing{config: c}, k.fails
}

func (k *kept) UpdateStream(_ context.Context, c jetstream.StreamConfig) (jetstream.Stream, error) {
	k.updates++
	k.config = &c
	return standing{config: c}, k.fails
}

// TestEnsure: a stream that is not there is made, one that lacks something is given it, one that has more keeps it, and one that could
// lose what is kept in it is refused.
func TestEnsure(t *testing.T) {
	t.Parallel()
	want := jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}, MaxBytes: 100, MaxMsgSize: 10, Duplicates: 3, AllowBatchPublish: true, RePublish: &jetstream.RePublish{Destination: "x"}, Replicas: 3}
	with := func(change func(*jetstream.StreamConfig)) *jetstream.StreamConfig {
		c := want
		change(&c)
		return &c
	}
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		found   *jetstream.StreamConfig
		fails   error
		becomes *jetstream.StreamConfig
		updates int
		field   string
	}{
		"none":               {becomes: &want},
		"the same":           {found: &want, becomes: &want},
		"one that lacks all": {found: &jetstream.StreamConfig{Name: "S", Subjects: want.Subjects, MaxBytes: 5, Duplicates: 9}, becomes: &want, updates: 1},
		"one with more room": {found: with(func(c *jetstream.StreamConfig) { c.MaxBytes = 200 }), becomes: with(func(c *jetstream.StreamConfig) { c.MaxBytes = 200 })},
		"one without limits": {found: with(func(c *jetstream.StreamConfig) { c.MaxBytes = -1 }), field: "MaxBytes"},
		"one of five":        {found: with(func(c *jetstream.StreamConfig) { c.Replicas = 5 }), becomes: with(func(c *jetstream.StreamConfig) { c.Replicas = 5 })},
		"one on one server":  {found: with(func(c *jetstream.StreamConfig) { c.Replicas = 1 }), becomes: &want, updates: 1},
		// The server would refuse it.
		"one on one server, in its memory first": {found: with(func(c *jetstream.StreamConfig) { c.Replicas, c.PersistMode = 1, jetstream.AsyncPersistMode }), field: "Replicas"},
		"one that forgets":                       {found: with(func(c *jetstream.StreamConfig) { c.MaxMsgs = 5 }), field: "MaxMsgs"},
		"a server's error":                       {found: with(func(c *jetstream.StreamConfig) { c.MaxBytes = 5 }), fails: errors.New("no room"), updates: 1},
		"none, and an error":                     {fails: errors.New("no room")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &kept{config: c.found, fails: c.fails}
			_, err := streams.Ensure(t.Context(), server, streams.Plan{Want: want, Keeps: "things", Kind: func(err error) error { return errors.Mark(err, broken) }})
			var unsafe *streams.ConfigError
			switch {
			case c.field != "":
				if !errors.As(err, &unsafe) || unsafe.Field != c.field || unsafe.Keeps != "things" || errors.Is(err, broken) {
					t.Errorf("it gave %v, want one about %s", err, c.field)
				}
			case c.fails != nil:
				if !errors.Is(err, broken) || !errors.Is(err, c.fails) {
					t.Errorf("it gave %v, want the server's error with its kind", err)
				}
			case err != nil:
				t.Errorf("it gave %v", err)
			default:
				if diff := cmp.Diff(c.becomes, server.config); diff != "" {
					t.Errorf("the stream becomes (-want +found):\n%s", diff)
				}
			}
			if server.updates != c.updates {
				t.Errorf("it was changed %d times, want %d", server.updates, c.updates)
			}
		})
	}
}

// unreadable is a server that has found a stream which it can't read.
type unreadable struct {
	jetstream.JetStream
	found, made error
}

func (u unreadable) Stream(context.Context, string) (jetstream.Stream, error) { return nil, u.found }

func (u unreadable) CreateStream(context.Context, jetstream.StreamConfig) (jetstream.Stream, error) {
	return nil, u.made
}

// TestEnsureWhatCantBeRead says what to do: the server's answer does not.
func TestEnsureWhatCantBeRead(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]unreadable{
		"a consumer":     {found: &jetstream.APIError{ErrorCode: 10194, Description: "stream is offline: stopped - unsupported consumer"}},
		"a file of mine": {found: jetstream.ErrStreamNotFound, made: &jetstream.APIError{ErrorCode: 10049, Description: "error creating store for stream"}},
	} {
		_, err := streams.Ensure(t.Context(), server, streams.Plan{Want: jetstream.StreamConfig{Name: "S"}, Kind: func(err error) error { return err }})
		if err == nil || !strings.Contains(errors.FlattenHints(err), "the server's log names the file") {
			t.Errorf("%s: %v (%s)", name, err, errors.FlattenHints(err))
		}
	}
}

// TestReplicate gives a stream what it lacks, and one that the server can't replicate nothing.
func TestReplicate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		found   jetstream.StreamConfig
		becomes int
		updates int
		fails   error
	}{
		"one that lacks two":  {found: jetstream.StreamConfig{Replicas: 1}, becomes: 3, updates: 1},
		"one that lacks none": {found: jetstream.StreamConfig{Replicas: 3}, becomes: 3},
		"one that has more":   {found: jetstream.StreamConfig{Replicas: 5}, becomes: 5},
		"one that can't":      {found: jetstream.StreamConfig{Replicas: 1, PersistMode: jetstream.AsyncPersistMode}, becomes: 1},
		"one without a place": {found: jetstream.StreamConfig{Replicas: 1}, becomes: 3, updates: 1, fails: errors.New("no suitable peers")},
	} {
		server := &kept{config: &c.found, fails: c.fails}
		err := streams.Replicate(t.Context(), server, jetstream.StreamConfig{Replicas: 3, MaxBytes: 7}, standing{config: c.found})
		if !errors.Is(err, c.fails) || server.updates != c.updates || server.config.Replicas != c.becomes || server.config.MaxBytes != 0 {
			t.Errorf("%s: it becomes %+v after %d updates, %v", name, server.config, server.updates, err)
		}
	}
}

package streams_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"catenary/internal/streams"
)

// deaf is a server that loses the first requests.
type deaf struct {
	jetstream.JetStream
	loses, asked int
}

func (d *deaf) CreateStream(ctx context.Context, _ jetstream.StreamConfig) (jetstream.Stream, error) {
	if d.asked++; d.asked <= d.loses {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, nil
}

func TestCreateAsksAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		server := &deaf{loses: 2}
		if _, err := streams.Create(ctx, server, jetstream.StreamConfig{Name: "S"}); err != nil || server.asked != 3 {
			t.Errorf("got error %v after %d requests, want the third to be answered", err, server.asked)
		}
		server = &deaf{loses: 1000}
		if _, err := streams.Create(ctx, server, jetstream.StreamConfig{Name: "S"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got error %v, want the end of the context", err)
		}
	})
}

// full is a server that has room for so many bytes.
type full struct {
	jetstream.JetStream
	room  int64
	asked []int64
	fails error
}

func (f *full) CreateStream(_ context.Context, c jetstream.StreamConfig) (jetstream.Stream, error) {
	f.asked = append(f.asked, c.MaxBytes)
	if c.MaxBytes > f.room {
		return nil, f.fails
	}
	return nil, nil
}

// TestCreateWithin asks for less until there is room, and for nothing less than the least.
func TestCreateWithin(t *testing.T) {
	t.Parallel()
	noRoom, other := &jetstream.APIError{ErrorCode: 10047}, &jetstream.APIError{ErrorCode: 10052}
	for name, c := range map[string]struct {
		room  int64
		fails error
		asked []int64
		want  error
	}{
		"room":           {room: 800, asked: []int64{800}},
		"for a share":    {room: 100, fails: noRoom, asked: []int64{800, 100}},
		"for half of it": {room: 99, fails: noRoom, asked: []int64{800, 100, 50}},
		"for no more":    {room: 10, fails: noRoom, asked: []int64{800, 100, 50, 25}, want: noRoom},
		"another fault":  {room: 10, fails: other, asked: []int64{800}, want: other},
	} {
		server := &full{room: c.room, fails: c.fails}
		_, err := streams.CreateWithin(t.Context(), server, jetstream.StreamConfig{Name: "S", MaxBytes: 800}, 100, 20)
		if !slices.Equal(server.asked, c.asked) || !errors.Is(err, c.want) {
			t.Errorf("%s: asked for %v with %v, want %v with %v", name, server.asked, err, c.asked, c.want)
		}
	}
}

// TestCreateWaitsForAServer: a server that the others take for gone for a moment is waited for; one that stays away, or has no room, is not.
func TestCreateWaitsForAServer(t *testing.T) {
	t.Parallel()
	refusal := func(why string) error {
		return &jetstream.APIError{Code: 400, ErrorCode: 10005, Description: "no suitable peers for placement, " + why}
	}
	for _, c := range []struct {
		name    string
		back    time.Duration // when it is there again
		fails   error
		made    bool
		within  time.Duration
		atLeast time.Duration
	}{
		{name: "back at once", back: time.Second, fails: refusal("peer offline"), made: true, within: 2 * time.Second, atLeast: time.Second},
		{name: "away for good", back: time.Hour, fails: refusal("peer offline"), within: 15 * time.Second, atLeast: 5 * time.Second},
		{name: "no room", back: time.Hour, fails: refusal("insufficient storage"), within: time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				server := &beginning{back: began.Add(c.back), fails: c.fails}
				_, err := streams.Create(t.Context(), server, jetstream.StreamConfig{Name: "S"})
				if took := time.Since(began); (err == nil) != c.made || !c.made && !errors.Is(err, c.fails) || took > c.within || took < c.atLeast {
					t.Errorf("it took %v, with error %v", took, err)
				}
			})
		})
	}
}

// beginning is a cluster of which a server is away until a time.
type beginning struct {
	jetstream.JetStream
	back  time.Time
	fails error
}

func (b *beginning) CreateStream(context.Context, jetstream.StreamConfig) (jetstream.Stream, error) {
	if time.Now().Before(b.back) {
		return nil, b.fails
	}
	return nil, nil
}

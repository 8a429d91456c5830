package streams_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"catenary/internal/streams"
)

// TestLostQuestion is a server that loses questions about a stream, as a cluster does that has no leader for it: who makes sure of the stream
// has it seconds later, and does not wait for an answer that never comes.
func TestLostQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		want := jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}, MaxBytes: 100}
		server := &forgetful{kept: kept{config: &want}, loses: 2}
		began := time.Now()
		_, err := streams.Ensure(t.Context(), server, streams.Plan{Want: want, Keeps: "values", Kind: func(err error) error { return err }})
		if took := time.Since(began); err != nil || took > 10*time.Second {
			t.Errorf("it took %v, with error %v", took, err)
		}
	})
}

func TestInsist(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("refused")
		asked := 0
		if err := streams.Insist(t.Context(), func(context.Context) error { asked++; return refused }); !errors.Is(err, refused) || asked != 1 {
			t.Errorf("asked %d times, got %v: an answer is an answer", asked, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 29*time.Second)
		defer cancel()
		asked = 0
		err := streams.Insist(ctx, func(ctx context.Context) error { asked++; <-ctx.Done(); return ctx.Err() })
		if !errors.Is(err, context.DeadlineExceeded) || asked != 4 {
			t.Errorf("asked %d times in 29 s, got %v", asked, err)
		}
	})
}

// forgetful loses the first questions.
type forgetful struct {
	kept
	loses int
}

func (f *forgetful) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	if f.loses--; f.loses >= 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return f.kept.Stream(ctx, name)
}

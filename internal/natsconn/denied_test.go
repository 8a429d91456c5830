package natsconn

import (
	"context"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
)

func TestParseRefusal(t *testing.T) {
	t.Parallel()
	violation := func(words string) error { return errors.Wrap(nats.ErrPermissionViolation, words) }
	cases := []struct {
		name string
		err  error
		want refusal
	}{
		{"publish", violation(`Permissions Violation for Publish to "a.b"`), refusal{publishing, "a.b"}},
		{"reply", violation(`Permissions Violation for Publish with Reply of "$JS.ACK.x"`), refusal{replying, "$JS.ACK.x"}},
		{"subscribe", violation(`Permissions Violation for Subscription to "a.>"`), refusal{subscribing, "a.>"}},
		{"subscribe in a queue", violation(`Permissions Violation for Subscription to "a.>" using queue "q"`), refusal{subscribing, "a.>"}},
		{"lower case", violation(`permissions violation for publish to "a.b"`), refusal{publishing, "a.b"}},
		{"quoted", violation(`Permissions Violation for Publish to "a.\"b\\"`), refusal{publishing, `a."b\`}},
		{"other words", violation(`Permissions Violation for something`), refusal{}},
		{"other error", errors.New(`Permissions Violation for Publish to "a.b"`), refusal{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, ok := parseRefusal(c.err)
			if got != c.want || ok != (c.want != refusal{}) {
				t.Errorf("got %+v, %v; want %+v", got, ok, c.want)
			}
		})
	}
}

// Who can't listen for answers never gets one, whatever was asked.
func TestRefusedInboxConcernsEveryRequest(t *testing.T) {
	t.Parallel()
	d := newDenials()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	d.add(&waiter{cancel: cancel, subjects: []string{"a.b"}, inboxPrefix: "_INBOX."})
	d.observe(errors.Wrap(nats.ErrPermissionViolation, `Permissions Violation for Subscription to "other.>"`))
	if ctx.Err() != nil {
		t.Fatal("another subscription ended it")
	}
	d.observe(errors.Wrap(nats.ErrPermissionViolation, `Permissions Violation for Subscription to "_INBOX.x.*"`))
	if !errors.Is(context.Cause(ctx), ErrDenied) {
		t.Errorf("cause is %v, want ErrDenied", context.Cause(ctx))
	}
}

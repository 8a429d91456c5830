package embedded

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"catenary/internal/topology"
)

// TestAnsweredCallsAreForgotten calls what is answered once and looks at what the server still knows of it: what it kept of each call, it
// would keep of thousands a second.
func TestAnsweredCallsAreForgotten(t *testing.T) {
	t.Parallel()
	const calls, patience = 100, 30 * time.Second
	s, err := Start(t.Context(), Config{StoreDir: t.TempDir(), Listen: "127.0.0.1:0", Durability: DurabilityInterval, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	ledger, err := s.Ledger()
	if err != nil {
		t.Fatal(err)
	}
	operator, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer operator.Close()
	for _, subject := range []string{
		topology.CommandSubject("node", "register"), topology.InboxPrefix + ".assignment.observe", topology.AgentPrefix + ".n1",
	} {
		served, err := ledger.Subscribe(subject, func(m *nats.Msg) {
			if err := m.Respond([]byte("done")); err != nil {
				t.Error(err)
			}
		})
		if err == nil {
			err = ledger.Flush()
		}
		if err != nil {
			t.Fatal(err)
		}
		for range calls {
			if _, err := operator.Request(subject, nil, patience); err != nil {
				t.Fatalf("%s: %v", subject, err)
			}
		}
		if err := served.Unsubscribe(); err != nil {
			t.Error(err)
		}
		account, err := s.node.server.Accountz(&server.AccountzOptions{Account: topology.AccountLedger})
		if err != nil {
			t.Fatal(err)
		}
		if left := len(account.Account.Responses); left != 0 {
			t.Errorf("%s: of %d answered calls the server still knows %d", subject, calls, left)
		}
	}
}

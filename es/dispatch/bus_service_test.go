package dispatch

import (
	"log/slog"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go/micro"
)

// delivered is a request as the service gets it. The server lets no client forge its stamp or these replies, so what
// crosses an account border is made here; the embedded package shows that the server makes it so.
type delivered struct {
	micro.Request
	headers micro.Headers
	reply   string
	answers int
}

func (d *delivered) Headers() micro.Headers                    { return d.headers }
func (d *delivered) Reply() string                             { return d.reply }
func (d *delivered) Subject() string                           { return CommandPrefix + ".account.pay" }
func (d *delivered) Data() []byte                              { return []byte(`{}`) }
func (d *delivered) Respond([]byte, ...micro.RespondOpt) error { d.answers++; return nil }
func (d *delivered) Error(string, string, []byte, ...micro.RespondOpt) error {
	d.answers++
	return nil
}

func TestCallerComesFromTheConnection(t *testing.T) {
	s := &Service{cfg: ServiceConfig{Inside: "system", Logger: slog.New(slog.DiscardHandler)}}
	stamp := func(info string) micro.Headers {
		return micro.Headers{headerRequestInfo: {info}, "nats-request-info": {`{"acc":"OPS","kind":"Client","user":"root"}`}, HeaderActor: {"root"}}
	}
	tests := []struct {
		name    string
		headers micro.Headers
		reply   string
		want    Who
	}{
		{"a user of another account", stamp(`{"acc":"OPS","kind":"Client","user":"ana"}`), "_R_.x", Who{Name: "ana", Account: "OPS"}},
		{"our own process", nil, "_INBOX.x", Who{Name: "system"}},
		{"our own process, saying who", micro.Headers{HeaderActor: {"engine"}}, "_INBOX.x", Who{Name: "engine"}},
		{"our own process, not waiting", nil, "", Who{Name: "system"}},
		{"a stream's delivery from another account", stamp(`{"acc":"OPS","kind":"JetStream"}`), "$JS.ACK.x", Who{}},
		{"a stream's delivery in our own", nil, "$JS.ACK.x", Who{}},
		{"a trace", stamp(`{"acc":"OPS","kind":"Account"}`), "", Who{}},
		{"another service's answer", stamp(`{"acc":"OPS","kind":"Client","user":"ana"}`), "", Who{}},
		{"nobody in particular", stamp(`{"acc":"OPS","kind":"Client"}`), "_R_.x", Who{}},
		{"an unreadable stamp", stamp(`{`), "_R_.x", Who{}},
	}
	for _, tt := range tests {
		d := &delivered{headers: tt.headers, reply: tt.reply}
		got, sender, err := caller(d, s.cfg.Inside)
		if got != tt.want || (err != nil) != (tt.want == Who{}) {
			t.Errorf("%s: got %+v, %v", tt.name, got, err)
		}
		if err == nil {
			if sender == "" {
				t.Errorf("%s has no share of the queue", tt.name)
			}
			continue
		}
		if !errors.Is(err, errNobody) {
			t.Errorf("%s: %v", tt.name, err)
		}
		// It is not even answered: an answer could acknowledge a message elsewhere.
		if s.handle(d); d.answers != 0 {
			t.Errorf("%s was answered", tt.name)
		}
	}
}

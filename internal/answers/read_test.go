package answers

import (
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func TestRead(t *testing.T) {
	t.Parallel()
	r := newReader("CATENARY")
	for _, tt := range []struct {
		name string
		data string
		want Answer
		over bool
	}{
		{"a message", `{"stream":"CATENARY","seq":7}`, Answer{Stream: "CATENARY", Sequence: 7}, true},
		{"a message of another stream", `{"stream":"OTHER","seq":7}`, Answer{Stream: "OTHER", Sequence: 7}, true},
		{"a message in a domain", `{"stream":"CATENARY","domain":"hub","seq":7}`, Answer{Stream: "CATENARY", Sequence: 7}, true},
		{"a batch", `{"stream":"CATENARY","seq":7,"batch":"x","count":3}`, Answer{Stream: "CATENARY", Sequence: 7, Count: 3}, true},
		{"a message that stood already", `{"stream":"CATENARY","seq":7,"duplicate": true}`, Answer{Stream: "CATENARY", Sequence: 7}, true},
		{"how far a batch is", `{"type":"ack","seq":0,"msgs":500}`, Answer{}, false},
		{"a gap in a batch", `{"type":"gap","last_seq":3,"seq":5}`, Answer{}, false},
	} {
		got, over, err := r.read(&nats.Msg{Data: []byte(tt.data)})
		if err != nil || over != tt.over {
			t.Errorf("%s: over %v, %v", tt.name, over, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	for _, tt := range []struct {
		data string
		over bool
	}{
		{`{"stream":"CATENARY","seq":0,"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 9"}}`, true},
		{`{"type":"err","seq":3,"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 9"}}`, false},
	} {
		var api *jetstream.APIError
		if _, over, err := r.read(&nats.Msg{Data: []byte(tt.data)}); !errors.As(err, &api) || api.ErrorCode != 10071 || over != tt.over {
			t.Errorf("a refusal is read as %v, over %v", err, over)
		}
	}
	if _, over, err := r.read(&nats.Msg{Header: nats.Header{"Status": {"503"}}}); !errors.Is(err, nats.ErrNoResponders) || !over {
		t.Errorf("nobody there is read as %v", err)
	}
	for _, data := range []string{"", "+OK", "{}", `{"seq":"x"}`} {
		if answer, over, err := r.read(&nats.Msg{Data: []byte(data)}); err == nil || !over {
			t.Errorf("%q is read as %+v", data, answer)
		}
	}
}

// The short way reads nothing that the long way would read otherwise.
func TestConfirmed(t *testing.T) {
	t.Parallel()
	r := newReader("CATENARY")
	if n, ok := r.confirmed([]byte(`{"stream":"CATENARY","seq":18446744073709551615}`)); !ok || n != 1<<64-1 {
		t.Errorf("read %d, %v", n, ok)
	}
	for _, data := range []string{
		"", "{", `{"stream":"CATENARY","seq":`, `{"stream":"CATENARY","seq":}`, `{"stream":"CATENARY","seq":7`, `{"stream":"CATENARY","seq":-7}`,
		`{"stream":"CATENARY","seq":7,"duplicate": true}`, `{"stream":"OTHER","seq":7}`, `{"stream":"CATENARY","domain":"hub","seq":7}`,
		`{"stream":"CATENARY","seq":0,"error":{"code":400}}`, `{"stream":"CATENARY","seq":99999999999999999999}`,
	} {
		if n, ok := r.confirmed([]byte(data)); ok {
			t.Errorf("%s is read as a confirmation of %d", data, n)
		}
	}
}

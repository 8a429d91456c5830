package natsstore

import (
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func TestReadAnswer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		data string
		want *jetstream.PubAck
	}{
		{"a message", `{"stream":"CATENARY","seq":7}`, &jetstream.PubAck{Stream: "CATENARY", Sequence: 7}},
		{"a message in a domain", `{"stream":"CATENARY","domain":"hub","seq":7}`, &jetstream.PubAck{Stream: "CATENARY", Domain: "hub", Sequence: 7}},
		{"a batch", `{"stream":"CATENARY","seq":7,"batch":"x","count":3}`, &jetstream.PubAck{Stream: "CATENARY", Sequence: 7}},
		{"a message that stood already", `{"stream":"CATENARY","seq":7,"duplicate": true}`, &jetstream.PubAck{Stream: "CATENARY", Sequence: 7, Duplicate: true}},
	} {
		got, err := readAnswer(&nats.Msg{Data: []byte(tt.data)})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	var api *jetstream.APIError
	if _, err := readAnswer(&nats.Msg{Data: []byte(`{"stream":"CATENARY","seq":0,"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 9"}}`)}); !errors.As(err, &api) || api.ErrorCode != 10071 {
		t.Errorf("a refusal is read as %v", err)
	}
	if _, err := readAnswer(&nats.Msg{Header: nats.Header{"Status": {"503"}}}); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("nobody there is read as %v", err)
	}
	for _, data := range []string{"", "+OK", "{}", `{"seq":"x"}`} {
		if ack, err := readAnswer(&nats.Msg{Data: []byte(data)}); err == nil {
			t.Errorf("%q is read as %+v", data, ack)
		}
	}
}

// The short way reads nothing that the long way would read otherwise.
func TestConfirmed(t *testing.T) {
	t.Parallel()
	w := answers{plain: []byte(`{"stream":"CATENARY","seq":`)}
	if n, ok := w.confirmed([]byte(`{"stream":"CATENARY","seq":18446744073709551615}`)); !ok || n != 1<<64-1 {
		t.Errorf("read %d, %v", n, ok)
	}
	for _, data := range []string{
		"", "{", `{"stream":"CATENARY","seq":`, `{"stream":"CATENARY","seq":}`, `{"stream":"CATENARY","seq":7`, `{"stream":"CATENARY","seq":-7}`,
		`{"stream":"CATENARY","seq":7,"duplicate": true}`, `{"stream":"OTHER","seq":7}`, `{"stream":"CATENARY","domain":"hub","seq":7}`,
		`{"stream":"CATENARY","seq":0,"error":{"code":400}}`, `{"stream":"CATENARY","seq":99999999999999999999}`,
	} {
		if n, ok := w.confirmed([]byte(data)); ok {
			t.Errorf("%s is read as a confirmation of %d", data, n)
		}
	}
}

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

package natsstore

import (
	"context"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
)

var kinds = []error{es.ErrConflict, es.ErrUnclear, es.ErrTooLarge, es.ErrFull, es.ErrUnavailable, es.ErrNotFound}

// wantKind checks that an error has exactly one mark, and keeps its cause.
func wantKind(t *testing.T, what string, got, want, cause error) {
	t.Helper()
	for _, kind := range kinds {
		if errors.Is(got, kind) != (kind == want) {
			t.Errorf("%s: marked %q is %v, want only %q", what, kind, errors.Is(got, kind), want)
		}
	}
	if !errors.Is(got, cause) {
		t.Errorf("%s: the cause %v is lost in %v", what, cause, got)
	}
}

func api(code jetstream.ErrorCode, description string) *jetstream.APIError {
	return &jetstream.APIError{Code: 400, ErrorCode: code, Description: description}
}

// TestAnswers lists what the server answers to an append, and what it means: all codes of a conflict among them.
func TestAnswers(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		err  error
		want error
	}{
		{"wrong last sequence, one server", api(10071, "wrong last sequence: 7"), es.ErrConflict},
		{"wrong last message id", api(10070, "wrong last msg ID: 0123456789abcdef"), es.ErrConflict},
		{"wrong last sequence, replicas", api(10164, "wrong last sequence"), es.ErrConflict},
		{"message over the stream's limit", api(10054, "message size exceeds maximum allowed"), es.ErrTooLarge},
		{"headers over the server's limit", api(10097, "header size exceeds maximum allowed of 64k"), es.ErrTooLarge},
		{"batch over the server's limit", api(10199, "atomic publish batch is too large: 1000"), es.ErrTooLarge},
		{"message over the file store's limit", api(10077, "message too large"), es.ErrTooLarge},
		{"stream at its limit of bytes", api(10077, "maximum bytes exceeded"), es.ErrFull},
		{"stream at its limit of messages", api(10077, "maximum messages exceeded"), es.ErrFull},
		{"server at its limit", api(10023, "insufficient resources"), es.ErrFull},
		{"account at its limit", api(10002, "resource limits exceeded for account"), es.ErrFull},
		{"no memory left", api(10028, "insufficient memory resources available"), es.ErrFull},
		{"no storage left", api(10047, "insufficient storage resources available"), es.ErrFull},
		{"ingest queue full", api(10167, "too many requests"), es.ErrUnavailable},
		{"batch lost its beginning", api(10176, "atomic publish batch is incomplete"), es.ErrUnavailable},
		{"too many batches", api(10210, "atomic publish too many inflight"), es.ErrUnavailable},
		{"batches switched off", api(10174, "atomic publish is disabled"), es.ErrUnavailable},
		{"sealed", api(10109, "invalid operation on sealed stream"), es.ErrUnavailable},
		{"no leader", api(10008, "JetStream system temporarily unavailable"), es.ErrUnavailable},
		{"not the leader", api(10009, "JetStream cluster can not handle request"), es.ErrUnavailable},
		{"JetStream is off", api(10076, "jetstream not enabled"), es.ErrUnavailable},
		{"JetStream is off for the account", api(10039, "jetstream not enabled for account"), es.ErrUnavailable},
		{"duplicate in a batch", api(10201, "atomic publish batch contains duplicate message id"), es.ErrUnclear},
		{"a code of a later server", api(19999, "something new"), es.ErrUnclear},
		{"no answer in time", jetstream.ErrAsyncPublishTimeout, es.ErrUnclear},
		{"connection lost", nats.ErrDisconnected, es.ErrUnclear},
		{"connection closed", nats.ErrConnectionClosed, es.ErrUnclear},
		{"nobody there", jetstream.ErrNoStreamResponse, es.ErrUnclear},
		{"no responders", nats.ErrNoResponders, es.ErrUnclear},
		{"an answer that is none", jetstream.ErrInvalidJSAck, es.ErrUnclear},
		{"store closed meanwhile", jetstream.ErrJetStreamPublisherClosed, es.ErrUnclear},
		{"context over", context.DeadlineExceeded, es.ErrUnclear},
	}
	for _, c := range cases {
		wantKind(t, c.name, answerError(c.err), c.want, c.err)
		wantKind(t, c.name+", wrapped", answerError(errors.Wrap(c.err, "nats")), c.want, c.err)
	}
}

// TestSendFailures lists why a message can't be handed to the connection.
func TestSendFailures(t *testing.T) {
	t.Parallel()
	cases := []struct {
		err  error
		want error
	}{
		{nats.ErrMaxPayload, es.ErrTooLarge},
		{nats.ErrConnectionClosed, es.ErrUnavailable},
		{nats.ErrConnectionDraining, es.ErrUnavailable},
		{nats.ErrInvalidConnection, es.ErrUnavailable},
		{nats.ErrReconnectBufExceeded, es.ErrUnavailable},
		{nats.ErrHeadersNotSupported, es.ErrUnavailable},
		{nats.ErrBadHeaderMsg, es.ErrUnavailable},
		{nats.ErrBadSubject, es.ErrUnavailable},
		{jetstream.ErrTooManyStalledMsgs, es.ErrUnavailable},
		{errors.New("write: broken pipe"), es.ErrUnclear},
	}
	for _, c := range cases {
		wantKind(t, c.err.Error(), sendError(c.err), c.want, c.err)
	}
}

// TestReadFailures lists what a read can come to.
func TestReadFailures(t *testing.T) {
	t.Parallel()
	cases := []struct {
		err  error
		want error
	}{
		{jetstream.ErrMsgNotFound, es.ErrNotFound},
		{api(10037, "no message found"), es.ErrNotFound},
		{jetstream.ErrStreamNotFound, es.ErrUnavailable},
		{api(10059, "stream not found"), es.ErrUnavailable},
		{nats.ErrTimeout, es.ErrUnavailable},
		{nats.ErrConnectionClosed, es.ErrUnavailable},
		{nats.ErrNoResponders, es.ErrUnavailable},
		{context.Canceled, es.ErrUnavailable},
		{api(10008, "JetStream system temporarily unavailable"), es.ErrUnavailable},
	}
	for _, c := range cases {
		wantKind(t, c.err.Error(), readError(c.err), c.want, c.err)
	}
}

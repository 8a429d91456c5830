package natsstore

import (
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
)

// Codes of JetStream errors that the client has no names for.
const (
	codeAccountResources   jetstream.ErrorCode = 10002
	codeClusterUnavailable jetstream.ErrorCode = 10008
	codeNotLeader          jetstream.ErrorCode = 10009
	codeInsufficient       jetstream.ErrorCode = 10023
	codeMemoryExceeded     jetstream.ErrorCode = 10028
	codeWrongLastMessageID jetstream.ErrorCode = 10070
	codeStorageExceeded    jetstream.ErrorCode = 10047
	codeStoreFailed        jetstream.ErrorCode = 10077
	codeHeaderTooLarge     jetstream.ErrorCode = 10097
	codeSealed             jetstream.ErrorCode = 10109
	codeNoReplicas         jetstream.ErrorCode = 10074
	codeTooManyRequests    jetstream.ErrorCode = 10167
	codeBatchDisabled      jetstream.ErrorCode = 10174
	codeBatchIncomplete    jetstream.ErrorCode = 10176
	codeBatchTooLarge      jetstream.ErrorCode = 10199
	codeBatchDuplicate     jetstream.ErrorCode = 10201
	codeTooManyBatches     jetstream.ErrorCode = 10210
)

// messageTooLarge is how the server says that its store can't hold a message of this size; it has no code of its own.
const messageTooLarge = "message too large"

// answerError translates the answer to a message that was sent, or its absence. What is not known to leave nothing
// behind is unclear.
func answerError(err error) error {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return errors.Mark(err, es.ErrUnclear)
	}
	return errors.Mark(err, answerKind(api))
}

func answerKind(api *jetstream.APIError) error {
	switch api.ErrorCode {
	case jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant, codeWrongLastMessageID:
		return es.ErrConflict
	case jetstream.JSErrCodeStreamMessageExceedsMaximum, codeHeaderTooLarge, codeBatchTooLarge:
		return es.ErrTooLarge
	case codeStoreFailed:
		if strings.Contains(api.Description, messageTooLarge) {
			return es.ErrTooLarge
		}
		return es.ErrFull
	case codeInsufficient, codeAccountResources, codeMemoryExceeded, codeStorageExceeded:
		return es.ErrFull
	case codeTooManyRequests, codeTooManyBatches, codeBatchIncomplete, codeBatchDisabled, codeSealed,
		codeClusterUnavailable, codeNotLeader,
		jetstream.JSErrCodeJetStreamNotEnabled, jetstream.JSErrCodeJetStreamNotEnabledForAccount:
		// Refused before anything was stored.
		return es.ErrUnavailable
	case codeBatchDuplicate:
		// An earlier try of the same batch stands.
		return es.ErrUnclear
	}
	return es.ErrUnclear
}

// sendError translates the failure to hand a message to the connection. The known ones come before anything is written.
func sendError(err error) error {
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return errors.Mark(err, es.ErrTooLarge)
	case errors.IsAny(err,
		nats.ErrConnectionClosed, nats.ErrConnectionDraining, nats.ErrInvalidConnection, nats.ErrReconnectBufExceeded,
		nats.ErrHeadersNotSupported, nats.ErrBadHeaderMsg, nats.ErrBadSubject, jetstream.ErrTooManyStalledMsgs):
		return errors.Mark(err, es.ErrUnavailable)
	}
	return errors.Mark(err, es.ErrUnclear)
}

// readError translates the failure of a read.
func readError(err error) error {
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return errors.Mark(err, es.ErrNotFound)
	}
	return errors.Mark(err, es.ErrUnavailable)
}

// ensureError translates the failure to make a stream or to change its limits. A limit that the server has no room for is marked
// [es.ErrFull]: asking again would not help.
func ensureError(err error) error {
	if isCode(err, codeStorageExceeded) {
		return errors.WithHint(errors.Mark(err, es.ErrFull), "the server's store is too small for this limit: ask for a lower one, or give the server a larger store")
	}
	if isCode(err, codeNoReplicas) {
		err = errors.WithHint(err, "the server runs alone: start it as one of three (docs/guides/cluster.md), or ask for one replica")
	}
	return readError(err)
}

// isCode says whether an error is the server's answer with a code.
func isCode(err error, code jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == code
}

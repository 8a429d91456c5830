package streams

import "github.com/nats-io/nats.go/jetstream"

// Mended gives the configuration that a stream is to get so that it keeps again what it must: all that [Check] asks for is as wanted, and the
// rest stays as it was found. The server does not take back everything: a stream that was sealed stays so.
func Mended(want, found jetstream.StreamConfig) jetstream.StreamConfig {
	m := raise(want, found)
	m.Subjects = want.Subjects
	m.Retention = want.Retention
	m.Discard = want.Discard
	m.DiscardNewPerSubject = want.DiscardNewPerSubject
	m.Replicas = max(found.Replicas, want.Replicas)
	m.MaxMsgsPerSubject = want.MaxMsgsPerSubject
	m.MaxMsgs = -1
	m.MaxAge = want.MaxAge
	m.MaxBytes = max(found.MaxBytes, want.MaxBytes)
	m.DenyDelete = want.DenyDelete
	m.DenyPurge = want.DenyPurge
	m.AllowRollup = want.AllowRollup
	m.AllowDirect = want.AllowDirect
	m.AllowAtomicPublish = found.AllowAtomicPublish || want.AllowAtomicPublish
	m.AllowMsgTTL, m.AllowMsgSchedules, m.AllowMsgCounter = false, false, false
	m.SubjectDeleteMarkerTTL = 0
	m.NoAck, m.Sealed = false, false
	m.Mirror, m.Sources, m.SubjectTransform = nil, nil, nil
	if m.RePublish != nil {
		m.RePublish = want.RePublish
	}
	return m
}

// Yielding gives a mended configuration that keeps of what was found all that the server never takes back. A server that is asked for one of these
// too refuses the whole change, and the rest would stay as dangerous as it is.
func Yielding(mended, found jetstream.StreamConfig) jetstream.StreamConfig {
	mended.AllowMsgTTL = found.AllowMsgTTL
	mended.AllowMsgSchedules = found.AllowMsgSchedules
	mended.AllowMsgCounter = found.AllowMsgCounter
	mended.Sealed = found.Sealed
	mended.Mirror = found.Mirror
	return mended
}

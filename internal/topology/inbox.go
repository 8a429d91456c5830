package topology

import (
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Streams of the inbox.
const (
	// InboxStream holds commands that are to be kept until they are done.
	InboxStream = "CATENARY_INBOX"
	// ParkedStream holds commands of the inbox that could not be read or decided.
	ParkedStream = "CATENARY_PARKED"
	// BucketReceipts holds what became of each command of the inbox.
	BucketReceipts = "catenary-receipts"
	// InboxConsumer is the one consumer of the inbox. All writers share it, so that no command is worked off by two.
	InboxConsumer = "writer"
)

// Limits of the inbox.
const (
	// InboxBytes bounds what waits: about half a million commands of usual size. A full inbox tells its senders to come later.
	InboxBytes = 256 << 20
	// MaxInboxMessageBytes bounds one command with its headers: a body's own limit is half of it.
	MaxInboxMessageBytes = 512 << 10
	// ParkedBytes bounds what is parked: as much as a person can be expected to look at. While it is full, what can't be decided
	// stays in the inbox and keeps the later commands of its instance waiting.
	ParkedBytes = 64 << 20
	// ReceiptBytes bounds the receipts: about half a million. Over it the oldest go first.
	ReceiptBytes = 256 << 20
	// ReceiptAge is how long a receipt is kept: as long as the id of a command is remembered.
	ReceiptAge = 31 * 24 * time.Hour
	// InboxAckWait is how long a writer may be silent before what it has taken is given to another. A working one speaks up
	// three times in it.
	InboxAckWait = 5 * time.Second
	// InboxMaxPending bounds what was handed out and is not settled. What a writer gives back for a while counts too, so one instance
	// with as many commands would keep all others waiting: it is many more than a writer holds, and few enough that the server,
	// which goes through all of them ten times a second, does so in a millisecond or two.
	InboxMaxPending = 65_536
)

// Inbox configures the stream of waiting commands. What is settled leaves it. When it is full it refuses the new.
func Inbox(o Options) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        InboxStream,
		Description: "Catenary: commands that wait to be done. Written by the inbox service only.",
		Subjects:    []string{InboxStoredPrefix + ".>"},
		Retention:   jetstream.WorkQueuePolicy,
		Discard:     jetstream.DiscardNew,
		Storage:     jetstream.FileStorage,
		Replicas:    o.replicas(),
		MaxBytes:    InboxBytes,
		MaxMsgSize:  MaxInboxMessageBytes,
		AllowDirect: false,
	}
}

// InboxWorker configures the inbox's consumer. There is no limit of deliveries: the server would pass over what has reached
// it, without a trace.
func InboxWorker(o Options) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       InboxConsumer,
		Description:   "Catenary: works off the inbox. Shared by all writers.",
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       InboxAckWait,
		MaxDeliver:    -1,
		MaxAckPending: InboxMaxPending,
		Replicas:      o.replicas(),
	}
}

// Parked configures the stream of parked commands. Each stands under a subject of its own until a person deals with it.
func Parked(o Options) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              ParkedStream,
		Description:       "Catenary: commands that could not be read or decided. Written by the inbox service only.",
		Subjects:          []string{ParkedStoredPrefix + ".>"},
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardNew,
		Storage:           jetstream.FileStorage,
		Replicas:          o.replicas(),
		MaxMsgsPerSubject: 1,
		MaxBytes:          ParkedBytes,
		AllowDirect:       false,
	}
}

// Receipts configures the stream behind the bucket of receipts: one value per command, which goes when it is old.
func Receipts(o Options) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:              BucketStream(BucketReceipts),
		Description:       "Catenary: what became of the commands of the inbox. Written by the inbox service only.",
		Subjects:          []string{BucketSubject(BucketReceipts, ">")},
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardOld,
		Storage:           jetstream.FileStorage,
		Replicas:          o.replicas(),
		MaxMsgsPerSubject: 1,
		MaxAge:            ReceiptAge,
		MaxBytes:          ReceiptBytes,
		AllowDirect:       false,
	}
}

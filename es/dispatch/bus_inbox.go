package dispatch

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/internal/streams"
)

// InboxStreams configure what the inbox keeps.
type InboxStreams struct {
	// Inbox is the work queue of waiting commands. Its one subject ends in ">"; what comes before it is theirs.
	Inbox jetstream.StreamConfig
	// Worker is the consumer that all workers share.
	Worker jetstream.ConsumerConfig
	// Parked is the stream of parked commands, with one value of each subject.
	Parked jetstream.StreamConfig
	// Receipts is the stream behind the bucket of receipts, with one value of each key.
	Receipts jetstream.StreamConfig
}

// InboxStore is what the inbox keeps: what waits, what is parked, and the receipts. Make it with [OpenInbox].
type InboxStore struct {
	js       jetstream.JetStream
	nc       *nats.Conn
	streams  InboxStreams
	inbox    jetstream.Stream
	parked   jetstream.Stream
	receipts jetstream.Stream
}

// OpenInbox makes the inbox's streams, or checks that those that exist keep what they must, over a connection in the
// ledger's account. It gives errors that name the stream and the field.
func OpenInbox(ctx context.Context, nc *nats.Conn, streams InboxStreams) (*InboxStore, error) {
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncTimeout(storeTimeout))
	if err != nil {
		return nil, errors.Wrap(err, "open the inbox")
	}
	s := &InboxStore{js: js, nc: nc, streams: streams}
	for _, st := range []struct {
		config jetstream.StreamConfig
		stream *jetstream.Stream
	}{{streams.Inbox, &s.inbox}, {streams.Parked, &s.parked}, {streams.Receipts, &s.receipts}} {
		if *st.stream, err = ensureStream(ctx, js, st.config); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// ensureStream makes a stream, or checks the one that exists. A size limit that is lower than asked for is raised.
func ensureStream(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) (jetstream.Stream, error) {
	return streams.Ensure(ctx, js, streams.Plan{Want: want, Keeps: "commands", Kind: func(err error) error { return errors.Mark(err, es.ErrUnavailable) }})
}

func subjectPrefix(c jetstream.StreamConfig) string { return strings.TrimSuffix(c.Subjects[0], ">") }

func (s *InboxStore) subject(ref es.Ref) string {
	return subjectPrefix(s.streams.Inbox) + ref.Aggregate + "." + ref.Key
}

// message is a command as the inbox keeps it.
func (s *InboxStore) message(ref es.Ref, headers map[string]string, body []byte) *nats.Msg {
	m := nats.NewMsg(s.subject(ref))
	m.Data = body
	for name, v := range headers {
		m.Header[name] = []string{v}
	}
	return m
}

// first gives the sequence of the oldest command that waits for an instance. It gives errors marked es.ErrNotFound when none
// does.
func (s *InboxStore) first(ctx context.Context, subject string) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	m, err := s.inbox.GetMsg(ctx, 1, jetstream.WithGetMsgSubject(subject))
	if err != nil {
		return 0, lookError(err)
	}
	return m.Sequence, nil
}

// waiting is how many commands wait.
func (s *InboxStore) waiting(ctx context.Context) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	info, err := s.inbox.Info(ctx)
	if err != nil {
		return 0, lookError(err)
	}
	return info.State.Msgs, nil
}

// keep stores a receipt and tells it.
func (s *InboxStore) keep(ctx context.Context, r Receipt) error {
	body, err := s.note(ctx, r)
	if err != nil {
		return err
	}
	return errors.Wrapf(s.nc.Publish(OutcomePrefix+"."+r.Command, body), "tell the outcome of %s", r.Command)
}

// note stores a receipt, and gives what is stored.
func (s *InboxStore) note(ctx context.Context, r Receipt) ([]byte, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return nil, errors.Wrapf(err, "encode the receipt of %s", r.Command)
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	key := receiptKey(r.Command, es.Ref{Aggregate: r.Aggregate, Key: r.Key})
	_, err = s.js.Publish(ctx, subjectPrefix(s.streams.Receipts)+key, body, jetstream.WithExpectStream(s.streams.Receipts.Name))
	return body, errors.Wrapf(err, "keep the receipt of %s", r.Command)
}

// receipt gives the receipt of a command; without an instance the newest of that id. It gives errors marked es.ErrNotFound.
func (s *InboxStore) receipt(ctx context.Context, id string, ref es.Ref) (Receipt, error) {
	key := id + ".>"
	if !ref.IsZero() {
		key = receiptKey(id, ref)
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	m, err := s.receipts.GetLastMsgForSubject(ctx, subjectPrefix(s.streams.Receipts)+key)
	if err != nil {
		return Receipt{}, lookError(err)
	}
	var r Receipt
	return r, errors.Wrapf(json.Unmarshal(m.Data, &r), "read the receipt of %s", id)
}

// park stores a parked command, once.
func (s *InboxStore) park(ctx context.Context, p Parked) error {
	body, err := json.Marshal(p)
	if err != nil {
		return errors.Wrapf(err, "encode parked command %s", p.ID)
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	_, err = s.js.Publish(ctx, subjectPrefix(s.streams.Parked)+p.ID, body,
		jetstream.WithExpectStream(s.streams.Parked.Name), jetstream.WithExpectLastSequencePerSubject(0))
	if isConflict(err) {
		return nil // it was parked before
	}
	return errors.Wrapf(err, "park command %s", p.ID)
}

// parkedOne gives a parked command and its sequence. It gives errors marked es.ErrNotFound.
func (s *InboxStore) parkedOne(ctx context.Context, id string) (Parked, uint64, error) {
	if err := checkParkedID(id); err != nil {
		return Parked{}, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	m, err := s.parked.GetLastMsgForSubject(ctx, subjectPrefix(s.streams.Parked)+id)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return Parked{}, 0, errors.Mark(errors.Newf("no command is parked as %s: it was retried or discarded, or there never was one", id), es.ErrNotFound)
	}
	if err != nil {
		return Parked{}, 0, errors.Wrapf(lookError(err), "parked command %s", id)
	}
	var p Parked
	return p, m.Sequence, errors.Wrapf(json.Unmarshal(m.Data, &p), "read parked command %s", id)
}

// parkedPage gives parked commands without their bodies, oldest first, from a sequence on, and where to go on; zero at the end.
func (s *InboxStore) parkedPage(ctx context.Context, from uint64, limit int) (page []Parked, next uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	for from = max(from, 1); ; {
		m, err := s.parked.GetMsg(ctx, from, jetstream.WithGetMsgSubject(s.streams.Parked.Subjects[0]))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return page, 0, nil
		}
		if err != nil {
			return nil, 0, lookError(err)
		}
		if len(page) == limit {
			return page, m.Sequence, nil
		}
		var p Parked
		if err := json.Unmarshal(m.Data, &p); err != nil {
			return nil, 0, errors.Wrapf(err, "read parked command at %d", m.Sequence)
		}
		p.Body = nil
		page = append(page, p)
		from = m.Sequence + 1
	}
}

// unpark forgets a parked command.
func (s *InboxStore) unpark(ctx context.Context, id string, sequence uint64) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err := s.parked.DeleteMsg(ctx, sequence)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	return errors.Wrapf(err, "take parked command %s out", id)
}

// lookError translates the failure of a read.
func lookError(err error) error {
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return errors.Mark(err, es.ErrNotFound)
	}
	return errors.Mark(err, es.ErrUnavailable)
}

func isConflict(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) &&
		(api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// codeStoreFailed is the server's code for a stream that can't take a message; most often it is full.
const codeStoreFailed jetstream.ErrorCode = 10077

// storeRefusalOf says to a sender why the inbox did not take a command, or may not have.
func storeRefusalOf(err error) *es.Refusal {
	var api *jetstream.APIError
	switch {
	case errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum:
		return invalid("too-large", err.Error(), "send less in one command")
	case errors.As(err, &api) && api.ErrorCode == codeStoreFailed:
		return &es.Refusal{Status: es.StatusBusy, Code: "inbox-full", Message: "the inbox is full: " + err.Error(),
			Hint: "send it again with the same id when a writer has worked off some of it"}
	case errors.As(err, &api), errors.IsAny(err, nats.ErrNoResponders, jetstream.ErrNoStreamResponse, jetstream.ErrTooManyStalledMsgs, nats.ErrConnectionClosed):
		return &es.Refusal{Status: es.StatusBusy, Code: "inbox-unavailable", Message: "the inbox can't be written: " + err.Error(), Hint: "send it again with the same id"}
	}
	return &es.Refusal{Status: es.StatusUnknown, Code: "not-settled", Message: "the inbox has not answered: the command may or may not be stored",
		Hint: "send it again with the same id: it is done once at most"}
}

// entryOf reads a delivery of the inbox.
func (s *InboxStore) entryOf(m jetstream.Msg) (entry, error) {
	meta, err := m.Metadata()
	if err != nil {
		return entry{}, errors.Wrapf(err, "delivery on %s", m.Subject())
	}
	h := m.Headers()
	get := func(name string) string { return header(h, name) }
	return entry{
		sequence: meta.Sequence.Stream, stored: meta.Timestamp, deliveries: meta.NumDelivered, subject: m.Subject(),
		ref: refUnder(subjectPrefix(s.streams.Inbox), m.Subject()), verb: get(headerVerb), actor: get(HeaderActor), header: get,
		contentType: get(HeaderContentType), body: m.Data(),
	}, nil
}

func sequenceOf(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, invalid("bad-cursor", fmt.Sprintf("the cursor is %.40q: it is a number that a page has given", text), "")
	}
	return n, nil
}

package dispatch

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"catenary/es"
)

// SubjectRefused is where it is asked which commands were refused.
const SubjectRefused = "catenary.query.refused"

// RefusedStore keeps refused commands in a stream of their own, under <prefix>.<actor>.<aggregate>: whatever an actor had refused
// can be erased. Make it with [OpenRefused].
type RefusedStore struct {
	js     jetstream.JetStream
	stream jetstream.Stream
	prefix string
}

// OpenRefused makes the stream, or checks that the one that exists keeps what it must, over a connection in the ledger's account.
func OpenRefused(ctx context.Context, nc *nats.Conn, config jetstream.StreamConfig) (*RefusedStore, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, errors.Wrap(err, "open the refused commands")
	}
	s := &RefusedStore{js: js, prefix: subjectPrefix(config)}
	s.stream, err = ensureStream(ctx, js, config)
	return s, err
}

func (s *RefusedStore) keepRefused(ctx context.Context, r Refused) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	body, err := json.Marshal(r)
	if err != nil {
		return errors.Wrap(err, "encode a refused command")
	}
	_, err = s.js.Publish(ctx, s.prefix+refusedToken(r.Actor)+"."+refusedToken(r.Aggregate), body)
	return errors.Wrap(err, "keep a refused command")
}

// Follow gives the refused commands after a place in their stream, and waits for new ones until the context ends, which is its
// only end without an error. Places that the stream has forgotten are passed over.
func (s *RefusedStore) Follow(ctx context.Context, after uint64) iter.Seq2[Refused, error] {
	return func(yield func(Refused, error) bool) {
		consumer, err := s.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: after + 1})
		if err != nil {
			yield(Refused{}, errors.Mark(errors.Wrap(err, "follow the refused commands"), es.ErrUnavailable))
			return
		}
		messages, err := consumer.Messages()
		if err != nil {
			yield(Refused{}, errors.Mark(errors.Wrap(err, "follow the refused commands"), es.ErrUnavailable))
			return
		}
		stop := context.AfterFunc(ctx, messages.Stop)
		defer stop()
		defer messages.Stop()
		for {
			m, err := messages.Next()
			if ctx.Err() != nil {
				return
			}
			var r Refused
			if err == nil {
				var meta *jetstream.MsgMetadata
				if meta, err = m.Metadata(); err == nil {
					r, err = readRefused(m.Data(), meta.Sequence.Stream)
				}
			} else {
				err = errors.Mark(errors.Wrap(err, "follow the refused commands"), es.ErrUnavailable)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// Earliest gives the place of the oldest that is still kept; what a copy has before it goes there, too.
func (s *RefusedStore) Earliest(ctx context.Context) (uint64, error) {
	info, err := s.stream.Info(ctx)
	if err != nil {
		return 0, errors.Mark(errors.Wrap(err, "look at the refused commands"), es.ErrUnavailable)
	}
	return info.State.FirstSeq, nil
}

func readRefused(data []byte, sequence uint64) (Refused, error) {
	var r Refused
	err := json.Unmarshal(data, &r)
	r.Sequence = sequence
	return r, errors.Wrapf(err, "refused command %d", sequence)
}

// RefusedQuestion asks for refused commands, newest first.
type RefusedQuestion struct {
	// Before asks for those before this place only; zero means from the newest on.
	Before uint64 `json:"before,omitempty"`
	// Actors picks who sent them, or on whose behalf: any of these opaque ids. Aggregate picks what they were about.
	Actors    []string `json:"actors,omitempty"`
	Aggregate string   `json:"aggregate,omitempty"`
	Limit     int      `json:"limit,omitempty"`
}

// RefusedPage is a bounded piece of the refused commands.
type RefusedPage struct {
	Items []Refused `json:"items"`
	// Next is what to give as Before to go on; zero at the end. A page MAY be short, or empty, and have more behind it.
	Next uint64 `json:"next,omitempty"`
}

// Limits of a page.
const (
	maxRefusedPage = 500
	// maxRefusedReads bounds what one page looks at: a page of a rare actor is short rather than slow.
	maxRefusedReads = 5000
)

// Page gives a page of refused commands.
func (s *RefusedStore) Page(ctx context.Context, q RefusedQuestion) (RefusedPage, error) {
	page := RefusedPage{Items: []Refused{}}
	info, err := s.stream.Info(ctx)
	if err != nil {
		return page, errors.Mark(errors.Wrap(err, "read the refused commands"), es.ErrUnavailable)
	}
	if q.Limit <= 0 || q.Limit > maxRefusedPage {
		q.Limit = maxRefusedPage
	}
	at := info.State.LastSeq
	if q.Before > 0 {
		at = min(at, q.Before-1)
	}
	for reads := 0; at >= max(info.State.FirstSeq, 1); at, reads = at-1, reads+1 {
		if len(page.Items) == q.Limit || reads == maxRefusedReads {
			page.Next = at + 1
			break
		}
		m, err := s.stream.GetMsg(ctx, at)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // it was erased, or is too old by now
		}
		if err != nil {
			return page, errors.Mark(errors.Wrap(err, "read the refused commands"), es.ErrUnavailable)
		}
		r, err := readRefused(m.Data, m.Sequence)
		if err != nil {
			return page, err
		}
		if (q.Aggregate == "" || q.Aggregate == r.Aggregate) &&
			(len(q.Actors) == 0 || slices.Contains(q.Actors, r.Actor) || slices.Contains(q.Actors, r.OnBehalfOf)) {
			page.Items = append(page.Items, r)
		}
	}
	return page, nil
}

// Erase overwrites all that an actor had refused, on the disk too.
func (s *RefusedStore) Erase(ctx context.Context, actor string) error {
	filter := s.prefix + refusedToken(actor) + ".>"
	for {
		m, err := s.stream.GetMsg(ctx, 1, jetstream.WithGetMsgSubject(filter))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err == nil {
			err = s.stream.SecureDeleteMsg(ctx, m.Sequence)
		}
		if err != nil {
			return errors.Mark(errors.Wrapf(err, "erase the refused commands of actor %s", actor), es.ErrUnavailable)
		}
	}
}

func (s *InboxService) refused(ctx context.Context, req micro.Request) (any, error) {
	var q RefusedQuestion
	if err := question(req, &q); err != nil {
		return nil, err
	}
	if strings.ContainsAny(q.Aggregate, ".*> ") {
		return nil, invalid("bad-name", "the aggregate is one word, such as assignment", "")
	}
	return s.cfg.RefusedStore.Page(ctx, q)
}

// RefusedPage asks for refused commands. It gives *es.Refusal and the errors of [Bus].
func (c *InboxClient) RefusedPage(ctx context.Context, q RefusedQuestion) (RefusedPage, error) {
	var p RefusedPage
	return p, c.ask(ctx, SubjectRefused, q, &p)
}

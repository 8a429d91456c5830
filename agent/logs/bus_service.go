package logs

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"catenary/es"
	"catenary/es/dispatch"
	"catenary/es/natsstore"
	"catenary/internal/parts"
	"catenary/internal/streams"
	"catenary/internal/topology"
)

const (
	// QuestionLogs is the query that reads logs.
	QuestionLogs = "logs"
	// headerPart holds what is said of a part besides its text.
	headerPart = "Cat-Log"
	// maxRequests bounds the requests at work.
	maxRequests = 64
	// batchParts and batchBytes bound what is read from the store at once, answerBytes what goes into one answer.
	batchParts, batchBytes, answerBytes = 64, 1 << 20, 4 << 20
	requestTimeout                      = 10 * time.Second
	insideName                          = "logs"
)

// Codes of an answer without an answer.
const (
	codeRequest    = "400"
	codeBusy       = "429"
	codeFailed     = "500"
	codeNotReached = "503"
)

var errBusy = errors.New("too many requests about logs are being worked at; ask again")

func codeOf(err error) string {
	switch {
	case errors.IsAny(err, parts.ErrRequest, es.ErrName):
		return codeRequest
	case errors.Is(err, errBusy):
		return codeBusy
	case errors.IsAny(err, es.ErrUnavailable, es.ErrUnclear):
		return codeNotReached
	}
	return codeFailed
}

// Question asks for logs, oldest first.
type Question struct {
	Node string `json:"node"`
	// Module and Rollout leave only what is of them. Empty means any.
	Module  string `json:"module,omitempty"`
	Rollout string `json:"rollout,omitempty"`
	// After is the sequence of the part after which to begin.
	After uint64 `json:"after,omitempty"`
}

// answered is a part of an answer: a part of a log, or how far all of them were looked at.
type answered struct {
	Part *Part `json:"part,omitempty"`
	// Next is where to go on; More says that there is something.
	Next uint64 `json:"next,omitempty"`
	More bool   `json:"more,omitempty"`
}

// Ensure makes the stream of logs, or checks that the one that exists can hold them. It gives errors marked [es.ErrFull] or
// [es.ErrUnavailable], and unmarked ones for a stream that can't.
func Ensure(ctx context.Context, nc *nats.Conn, o topology.Options) error {
	want := topology.Logs(o)
	found, err := streams.EnsureWithin(ctx, nc, want, want.MaxBytes/2, topology.MinStreamBytes)
	if err != nil {
		return natsstore.EnsureError(err)
	}
	if !slices.Equal(found.Subjects, want.Subjects) || !found.AllowDirect || found.Discard != want.Discard || found.MaxBytes <= 0 {
		return errors.Newf("stream %s can't hold logs: it must have the subjects %q, a limit in bytes, drop the oldest when it is full, and allow direct reads; update it, or use another server",
			want.Name, want.Subjects)
	}
	return nil
}

// Service takes logs in and gives them out, until it is stopped.
type Service struct {
	js    jetstream.JetStream
	parts *parts.Service
}

// Serve starts answering; when it returns, the server knows that somebody does.
func Serve(nc *nats.Conn, version string, log *slog.Logger) (*Service, error) {
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(requestTimeout))
	if err != nil {
		return nil, errors.Wrap(err, "open the logs")
	}
	s := &Service{js: js}
	s.parts, err = parts.Serve(parts.Config{
		Conn: nc, Name: topology.LogsService, Version: version, About: "Keeps what is said while modules are brought to nodes.",
		Endpoints: []parts.Endpoint{
			{Name: "put", Subject: topology.LogsSubject("*", "*"), Handler: s.put},
			{Name: QuestionLogs, Subject: topology.QuerySubject(QuestionLogs), Handler: s.read},
		},
		Most: maxRequests, Code: codeOf, Busy: errBusy, Logger: log,
		Admit: func(r micro.Request) error {
			_, err := dispatch.Caller(r, insideName)
			return err
		},
	})
	return s, err
}

// Stop takes no more requests, and returns when all at work have ended.
func (s *Service) Stop() error { return s.parts.Stop() }

// put stores a part, under the node and module that the subject names: those are what the sender may speak of.
func (s *Service) put(ctx context.Context, r *parts.Request) error {
	place, _ := strings.CutPrefix(r.Subject(), topology.LogsPrefix+".")
	names, err := es.SplitKey(place)
	var p Part
	if err == nil {
		err = errors.Mark(json.Unmarshal([]byte(r.Headers().Get(headerPart)), &p), parts.ErrRequest)
	}
	if err != nil {
		return err
	}
	if len(names) != 2 || p.ID == "" || p.Number < 1 || len(r.Data()) > topology.LogPartBytes {
		return errors.Mark(errors.Newf("part %d of span %q with %d bytes on %s: a part has a span, a number and at most %d bytes", p.Number, p.ID, len(r.Data()), r.Subject(), topology.LogPartBytes), parts.ErrRequest)
	}
	p.Node, p.Module, p.Text = names[0], names[1], ""
	said, err := json.Marshal(p)
	if err != nil {
		return errors.Wrap(err, "a part of a log")
	}
	m := nats.NewMsg(topology.LogsStoredPrefix + "." + place)
	m.Header.Set(headerPart, string(said))
	m.Header.Set(jetstream.MsgIDHeader, p.ID+"."+strconv.Itoa(p.Number))
	m.Data = r.Data()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := s.js.PublishMsg(ctx, m); err != nil {
		return natsstore.AnswerError(errors.Wrapf(err, "keep a part of the log of %s", place))
	}
	return r.Send(nil, nil, true)
}

// read gives what there is after a part, as far as it fits into one answer.
func (s *Service) read(ctx context.Context, r *parts.Request) error {
	var q Question
	if err := r.Read(&q); err != nil {
		return err
	}
	if err := es.CheckName("node", q.Node); err != nil {
		return err
	}
	module := "*"
	if q.Module != "" {
		if err := es.CheckName("module", q.Module); err != nil {
			return err
		}
		module = es.EscapeToken(q.Module)
	}
	filter := topology.LogsStoredSubject(es.EscapeToken(q.Node), module)
	sent := 0
	for more := true; more && sent < answerBytes; {
		found, err := s.batch(ctx, filter, q.After+1)
		if err != nil {
			return err
		}
		more = len(found) > 0
		for _, p := range found {
			q.After = p.Sequence
			if q.Rollout != "" && p.Rollout != q.Rollout {
				continue
			}
			sent += len(p.Text)
			if err := r.Value(answered{Part: &p}, false); err != nil {
				return err
			}
		}
		if !more {
			return r.Value(answered{Next: q.After}, true)
		}
	}
	return r.Value(answered{Next: q.After, More: true}, true)
}

// batch reads parts from a sequence on; none when there are none.
func (s *Service) batch(ctx context.Context, filter string, from uint64) ([]Part, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	messages, err := jetstreamext.GetBatch(ctx, s.js, topology.LogsStream, batchParts,
		jetstreamext.GetBatchSeq(from), jetstreamext.GetBatchSubject(filter), jetstreamext.GetBatchMaxBytes(batchBytes))
	if err != nil {
		return nil, natsstore.ReadError(errors.Wrap(err, "read logs"))
	}
	var found []Part
	for m, err := range messages {
		if errors.Is(err, jetstreamext.ErrNoMessages) {
			break
		}
		if err != nil {
			return nil, natsstore.ReadError(errors.Wrap(err, "read logs"))
		}
		var p Part
		if err := json.Unmarshal([]byte(m.Header.Get(headerPart)), &p); err != nil {
			return nil, errors.Wrapf(err, "message %d of the logs", m.Sequence)
		}
		p.Text, p.Sequence, p.At = string(m.Data), m.Sequence, m.Time
		found = append(found, p)
	}
	return found, nil
}

package audit

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"catenary/internal/serving"
)

// Headers of an answer's parts.
const (
	headerPart   = "Cat-Part"
	headerStream = "Cat-Stream"
	// headerHint says in an error what to do about it; it may stand there several times.
	headerHint = "Cat-Hint"

	streamMore = "more"
	streamEnd  = "end"
)

const (
	// maxPartBytes bounds a part's body, well below the server's payload limit of 1 MiB.
	maxPartBytes = 256 << 10
	// maxItemBytes bounds one event in a part. An event is bounded itself, but its JSON may be six times as long.
	maxItemBytes = 512 << 10
	// aliveInterval is how often the service says that it is still at it.
	aliveInterval = time.Second
)

// answer sends the parts of one answer, in order.
type answer struct {
	conn  *nats.Conn
	reply string

	mu   sync.Mutex
	part int
	over bool
}

// more sends a part that is not the last. Without a value it says that the service is still at it.
func (a *answer) more(v any) error { return a.send(v, streamMore) }

// end sends the last part.
func (a *answer) end(v any) error { return a.send(v, streamEnd) }

func (a *answer) send(v any, stream string) error {
	var body []byte
	if v != nil {
		var err error
		if body, err = encode(v); err != nil {
			return errors.Wrap(err, "encode a part of the answer")
		}
	}
	return a.sendBody(body, stream)
}

// whole sends one JSON value, cut into as many parts as it needs.
func (a *answer) whole(v any) error {
	body, err := encode(v)
	if err != nil {
		return errors.Wrap(err, "encode the answer")
	}
	for ; len(body) > maxPartBytes; body = body[maxPartBytes:] {
		if err := a.sendBody(body[:maxPartBytes], streamMore); err != nil {
			return err
		}
	}
	return a.sendBody(body, streamEnd)
}

func (a *answer) sendBody(body []byte, stream string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return nil
	}
	a.part++
	a.over = stream == streamEnd
	err := serving.Respond(a.conn, a.reply, nats.Header{headerPart: {strconv.Itoa(a.part)}, headerStream: {stream}}, body)
	return errors.Wrapf(err, "send part %d of the answer", a.part)
}

// fail ends the answer with an error.
func (a *answer) fail(cause error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return nil
	}
	a.over = true
	headers := nats.Header{micro.ErrorCodeHeader: {codeOf(cause)}, micro.ErrorHeader: {oneLine(cause.Error())}}
	for _, hint := range errors.GetAllHints(cause) {
		headers[headerHint] = append(headers[headerHint], oneLine(hint))
	}
	return errors.Wrap(serving.Respond(a.conn, a.reply, headers, nil), "send why the query failed")
}

// oneLine makes text fit for a header.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// page sends a page of the log in as many parts as it needs.
func (a *answer) page(p LogPage) error {
	part, size := LogPage{Items: []Item{}}, 0
	for _, item := range p.Items {
		body, err := encode(item)
		if err != nil {
			return errors.Wrapf(err, "encode event %d", item.Sequence)
		}
		if len(body) > maxItemBytes {
			item.Data, item.Body = nil, nil
			item.Problem = fmt.Sprintf("with %d bytes it is too long to be shown here (limit %d)", len(body), maxItemBytes)
		}
		if size > 0 && size+len(body) > maxPartBytes {
			if err := a.more(part); err != nil {
				return err
			}
			part, size = LogPage{}, 0
		}
		part.Items = append(part.Items, item)
		size += len(body)
	}
	items := part.Items
	part = p
	part.Items = items
	return a.end(part)
}

package export

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"

	"catenary/audit"
	"catenary/es"
)

// Event is an exported event with the hash of the one before it.
type Event struct {
	audit.ExportedEvent
	Previous es.Hash
}

// eventLine is an event as a line of JSON: what people read, and beside it the stored event.
type eventLine struct {
	audit.Item
	Stored storedEvent `json:"stored"`
}

// storedEvent is all that an event's hash covers.
type storedEvent struct {
	Sequence uint64              `json:"sequence"`
	Subject  string              `json:"subject"`
	Headers  map[string][]string `json:"headers"`
	Body     []byte              `json:"body"`
	Previous es.Hash             `json:"previous"`
	Hash     string              `json:"hash"`
}

// headers are the event's own, without the hash that is over them.
func (e Event) headers() map[string][]string {
	headers := make(map[string][]string, len(e.Header))
	for name, values := range e.Header {
		if name != es.HeaderHash {
			headers[name] = values
		}
	}
	return headers
}

func (e Event) line() eventLine {
	return eventLine{Item: e.Item, Stored: storedEvent{
		Sequence: e.Sequence, Subject: e.Subject, Headers: e.headers(), Body: e.Stored, Previous: e.Previous, Hash: e.Hash,
	}}
}

// eventRow is an event as columns.
type eventRow struct {
	Sequence    int64      `parquet:"sequence"`
	ID          string     `parquet:"id"`
	Type        string     `parquet:"type,dict"`
	Aggregate   string     `parquet:"aggregate,dict"`
	Key         string     `parquet:"key"`
	Version     int64      `parquet:"version"`
	Recorded    *time.Time `parquet:"recorded,optional,timestamp(nanosecond)"`
	Effective   *time.Time `parquet:"effective,optional,timestamp(nanosecond)"`
	Backfill    bool       `parquet:"backfill"`
	Command     string     `parquet:"command"`
	Actor       string     `parquet:"actor,dict"`
	OnBehalfOf  string     `parquet:"on_behalf_of,dict"`
	Causation   string     `parquet:"causation"`
	Correlation string     `parquet:"correlation"`
	Data        string     `parquet:"data,json"`
	Problem     string     `parquet:"problem"`
	Subject     string     `parquet:"subject"`
	Headers     string     `parquet:"headers,json"`
	Body        []byte     `parquet:"body"`
	Previous    string     `parquet:"previous"`
	Hash        string     `parquet:"hash"`
}

func (e Event) row() eventRow {
	data := string(e.Data)
	if data == "" {
		data = "null"
	}
	return eventRow{
		Sequence: int64(e.Sequence), ID: e.ID, Type: e.Type, Aggregate: e.Aggregate, Key: e.Key, Version: int64(e.Version),
		Recorded: maybeTime(e.Recorded), Effective: maybeTime(e.Effective), Backfill: e.Backfill,
		Command: e.Command, Actor: e.Actor, OnBehalfOf: e.OnBehalfOf, Causation: e.Causation, Correlation: e.Correlation,
		Data: data, Problem: e.Problem, Subject: e.Subject, Headers: headersText(e.headers()), Body: e.Stored, Previous: e.Previous.String(), Hash: e.Hash,
	}
}

func (r eventRow) cells() []string {
	return []string{
		number(r.Sequence), r.ID, r.Type, r.Aggregate, r.Key, number(r.Version), timeText(r.Recorded), timeText(r.Effective), strconv.FormatBool(r.Backfill),
		r.Command, r.Actor, r.OnBehalfOf, r.Causation, r.Correlation, r.Data, r.Problem,
		r.Subject, r.Headers, base64.StdEncoding.EncodeToString(r.Body), r.Previous, r.Hash,
	}
}

// headersText gives headers as JSON, sorted by name.
func headersText(headers map[string][]string) string {
	text, err := json.Marshal(headers)
	if err != nil {
		panic(err) // a map of texts has a JSON form
	}
	return string(text)
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// maybeTime gives nothing for a time that is not known.
func maybeTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func timeText(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

package audit

import (
	"context"
	"encoding/json"
)

// Answers answers questions about the past. The audit store does so from its file, [Client] by asking a projector that has one.
//
// All methods give errors marked [ErrInvalid] for a malformed question, [ErrNotFound] when nothing is known of what was asked
// for, [ErrNoStore], [ErrStoreBehind] and [ErrStoreStopped]; hints say what to do.
type Answers interface {
	// AsOf lists what stood at a moment.
	AsOf(context.Context, AsOfQuestion) (AsOfAnswer, error)
	// Diff lists what differs between two states.
	Diff(context.Context, DiffQuestion) (DiffAnswer, error)
	// Blame says where what a node runs comes from.
	Blame(context.Context, BlameQuestion) (BlameAnswer, error)
	// Log gives a page of the log.
	Log(context.Context, LogQuestion) (LogPage, error)
	// Trace gives the way from commits to nodes.
	Trace(context.Context, TraceQuestion) (TraceAnswer, error)
	// Report counts over a span of time.
	Report(context.Context, ReportQuestion) (ReportAnswer, error)
	// SQL runs a statement that reads.
	SQL(context.Context, SQLQuestion) (SQLAnswer, error)
	// SQLSchema lists what statements can read.
	SQLSchema(context.Context, SQLSchemaQuestion) (SQLSchema, error)
	// Export gives a piece of all there is.
	Export(context.Context, ExportQuestion) (ExportPage, error)
}

var _ Answers = (*Client)(nil)

// Past is an audit store, as the service asks it.
type Past interface {
	Answers
	// Status says how far the store has come.
	Status() StoreState
	// Wait returns when the store has taken in an event. It gives errors marked [ErrStoreBehind] when it will not, and the
	// context's.
	Wait(ctx context.Context, event uint64) error
	// Await returns when the store has an event or a refused command after a place, when it does not go on, or when the context ends.
	Await(ctx context.Context, after LogPlace)
}

// AsOf asks what stood at a moment.
func (c *Client) AsOf(ctx context.Context, q AsOfQuestion) (AsOfAnswer, error) {
	return whole[AsOfAnswer](ctx, c, QuestionAsOf, q)
}

// Diff asks what differs between two states.
func (c *Client) Diff(ctx context.Context, q DiffQuestion) (DiffAnswer, error) {
	return whole[DiffAnswer](ctx, c, QuestionDiff, q)
}

// Blame asks where what a node runs comes from.
func (c *Client) Blame(ctx context.Context, q BlameQuestion) (BlameAnswer, error) {
	return whole[BlameAnswer](ctx, c, QuestionBlame, q)
}

// Trace asks for the way from commits to nodes.
func (c *Client) Trace(ctx context.Context, q TraceQuestion) (TraceAnswer, error) {
	return whole[TraceAnswer](ctx, c, QuestionTrace, q)
}

// Report asks for counts over a span of time.
func (c *Client) Report(ctx context.Context, q ReportQuestion) (ReportAnswer, error) {
	return whole[ReportAnswer](ctx, c, QuestionReport, q)
}

// SQL asks to run a statement that reads.
func (c *Client) SQL(ctx context.Context, q SQLQuestion) (SQLAnswer, error) {
	return whole[SQLAnswer](ctx, c, QuestionSQL, q)
}

// SQLSchema asks what statements can read.
func (c *Client) SQLSchema(ctx context.Context, q SQLSchemaQuestion) (SQLSchema, error) {
	return whole[SQLSchema](ctx, c, QuestionSQLSchema, q)
}

// Export asks for a piece of all there is.
func (c *Client) Export(ctx context.Context, q ExportQuestion) (ExportPage, error) {
	return whole[ExportPage](ctx, c, QuestionExport, q)
}

// whole asks a question whose answer is one JSON value, however many parts it comes in.
func whole[A any](ctx context.Context, c *Client, name string, question any) (A, error) {
	var answer A
	var text []byte
	err := c.ask(ctx, name, question, func(body []byte) error {
		text = append(text, body...)
		return nil
	})
	if err == nil {
		err = markIncomplete(json.Unmarshal(text, &answer), name)
	}
	return answer, err
}

package audit

import "time"

// QuestionExport asks for all there is, piece by piece: catenary.query.export.
const QuestionExport = "export"

// What can be exported.
const (
	ExportEvents      = "events"
	ExportAssignments = "assignments"
)

// ExportQuestion asks for a piece of an export, oldest first.
type ExportQuestion struct {
	// What is ExportEvents or ExportAssignments.
	What string `json:"what"`
	// Since and Until bound the recorded time; Since is part of the span, Until is not.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	Page
}

// ExportPage is a piece of an export: one of the lists is filled.
type ExportPage struct {
	Events      []ExportedEvent      `json:"events,omitempty"`
	Assignments []ExportedAssignment `json:"assignments,omitempty"`
	// Next is the cursor of the next piece; empty on the last one.
	Next string `json:"next,omitempty"`
}

// ExportedEvent is an event as the log shows it, with all that its hash covers: from the hash of the event before it, the subject,
// the headers and the stored body, whoever has the export computes Hash again.
type ExportedEvent struct {
	Item
	Subject string `json:"subject"`
	// Header are the stored headers but the server's own. JSON sorts them by name.
	Header map[string][]string `json:"header"`
	// Stored is the body as stored, in base64.
	Stored []byte `json:"stored"`
	Hash   string `json:"hash"`
}

// ExportedAssignment is what one event said of an assignment, and the span in which that was so as far as is known now.
type ExportedAssignment struct {
	// Shows is ShowsTold or ShowsObserved.
	Shows string `json:"shows"`
	Standing
	// Stands is false from an end on, and for what waits.
	Stands bool `json:"stands"`
	// From is when it became true; Until, in Standing, when something else did.
	From time.Time `json:"from"`
	// Type is the event's stored name.
	Type       string `json:"type"`
	Actor      string `json:"actor,omitempty"`
	OnBehalfOf string `json:"on-behalf-of,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Backfill   bool   `json:"backfill,omitempty"`
}

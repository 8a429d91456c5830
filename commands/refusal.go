package commands

import "catenary/es"

// Codes of the refusals of a malformed command. They are stable and meant for programs.
const (
	CodeUnknownCommand = "unknown-command"
	CodeContentType    = "content-type"
	CodeEmptyBody      = "empty-body"
	CodeMalformed      = "malformed"
	CodeTrailingData   = "trailing-data"
	CodeUnknownField   = "unknown-field"
	CodeDuplicateField = "duplicate-field"
	CodeNullField      = "null-field"
	CodeWrongType      = "wrong-type"
	CodeMissingField   = "missing-field"
	CodeBadName        = "bad-name"
	CodeBadText        = "bad-text"
	CodeBadValue       = "bad-value"
	CodeTooLarge       = "too-large"
	CodeTooDeep        = "too-deep"
)

func invalid(code, message, hint string) *es.Refusal {
	return &es.Refusal{Status: es.StatusInvalid, Code: code, Message: message, Hint: hint}
}

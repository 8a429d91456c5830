package es

import "github.com/cockroachdb/errors"

// EncodeHeaderValue makes a text printable ASCII, as every header of a stored event is: for headers that others than
// events carry.
func EncodeHeaderValue(text string) string { return percentEncode(text) }

// DecodeHeaderValue gives the text that [EncodeHeaderValue] was given. It gives errors marked [ErrMalformed].
func DecodeHeaderValue(value string) (string, error) {
	text, ok := percentDecode(value)
	if !ok {
		return "", errors.Mark(errors.Newf("header value %q is not percent-encoded", value), ErrMalformed)
	}
	return text, nil
}

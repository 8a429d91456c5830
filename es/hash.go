package es

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"iter"
	"slices"
	"strings"

	"github.com/cockroachdb/errors"
)

// Hash is a SHA-256.
type Hash [sha256.Size]byte

// String gives the hash in hex.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText writes the hash in hex.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads a hash in hex.
func (h *Hash) UnmarshalText(text []byte) error {
	v, err := ParseHash(string(text))
	*h = v
	return err
}

// ParseHash reads a hash in hex.
func ParseHash(s string) (Hash, error) {
	var h Hash
	if len(s) != 2*len(h) {
		return h, errors.Newf("a hash has %d hex digits, not %d", 2*len(h), len(s))
	}
	_, err := hex.Decode(h[:], []byte(s))
	return h, errors.Wrap(err, "hash")
}

// Digest gives the SHA-256 of a command's body in hex.
func Digest(body []byte) string {
	h := sha256.Sum256(body)
	return hex.EncodeToString(h[:])
}

// ErrBrokenChain marks a hole, a change or a swap found in the stream. The message names the sequence, the expected and
// the found.
var ErrBrokenChain = errors.New("hash chain broken")

// Head is the end of a verified stretch of the stream: the last sequence and its hash. The zero value is the head of the
// empty stream.
type Head struct {
	Sequence uint64 `json:"sequence"`
	Hash     Hash   `json:"hash"`
}

// Seal gives a message its place after the head: it sets the sequence and the hash header, and returns the new head. The
// message MUST not change afterwards.
func (h Head) Seal(m *Message) Head {
	sum := h.sum(*m)
	m.Sequence = h.Sequence + 1
	m.Header[HeaderHash] = []string{sum.String()}
	return Head{Sequence: m.Sequence, Hash: sum}
}

// Verify checks that a stored message directly follows the head and is what was sealed, and returns the new head. It gives
// errors marked [ErrBrokenChain].
func (h Head) Verify(m Message) (Head, error) {
	if m.Sequence != h.Sequence+1 {
		return h, errors.Mark(errors.Newf("event %d is missing: event %d is followed by %d", h.Sequence+1, h.Sequence, m.Sequence), ErrBrokenChain)
	}
	sum := h.sum(m)
	var text [2 * sha256.Size]byte
	hex.Encode(text[:], sum[:])
	if found := m.get(HeaderHash); found != string(text[:]) {
		return h, errors.Mark(errors.Newf("event %d on %s was changed or does not belong here: it carries hash %.16s…, its content after event %d gives %.16s…",
			m.Sequence, m.Subject, found, h.Sequence, sum), ErrBrokenChain)
	}
	return Head{Sequence: m.Sequence, Hash: sum}, nil
}

// VerifyChain passes messages through and checks that they follow the head without a hole, a change or a swap. It ends
// with an error marked [ErrBrokenChain] at the first message that does not. The head is moved as the messages pass.
func VerifyChain(head *Head, messages iter.Seq2[Message, error]) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for m, err := range messages {
			if err == nil {
				var next Head
				if next, err = head.Verify(m); err == nil {
					*head = next
				}
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// sum hashes the previous hash, the subject, our headers sorted by name, and the body, each preceded by its length so that
// nothing can move from one to the other. The server's own headers (Nats-*) and the hash itself are left out.
func (h Head) sum(m Message) Hash {
	var room [len(sortedHeaders)]covered
	headers := coveredHeaders(m.Header, room[:0])
	buf := make([]byte, 0, 1024)
	buf = append(buf, h.Hash[:]...)
	buf = appendText(buf, m.Subject)
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(headers)))
	for i := range headers {
		buf = appendText(buf, headers[i].name)
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(headers[i].values)))
		for _, v := range headers[i].values {
			buf = appendText(buf, v)
		}
	}
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(m.Body)))
	buf = append(buf, m.Body...)
	return sha256.Sum256(buf)
}

// covered is a header that the hash covers.
type covered struct {
	name   string
	values []string
}

// coveredHeaders gives the headers that the hash covers, sorted by name. An event's own are known in their order, so that they are
// looked up: going over a map takes three times as long. Only in a message with others all are gone over and sorted.
func coveredHeaders(header map[string][]string, headers []covered) []covered {
	for _, name := range sortedHeaders {
		if values, ok := header[name]; ok {
			headers = append(headers, covered{name: name, values: values})
		}
	}
	known := len(headers)
	if _, ok := header[HeaderHash]; ok {
		known++
	}
	if known == len(header) {
		return headers
	}
	headers = headers[:0]
	for name, values := range header {
		if name != HeaderHash && !strings.HasPrefix(name, "Nats-") {
			headers = append(headers, covered{name: name, values: values})
		}
	}
	slices.SortFunc(headers, func(a, b covered) int { return strings.Compare(a.name, b.name) })
	return headers
}

func appendText(buf []byte, s string) []byte {
	buf = binary.BigEndian.AppendUint32(buf, uint32(len(s)))
	return append(buf, s...)
}

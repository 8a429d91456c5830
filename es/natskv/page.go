package natskv

import (
	"container/heap"
	"context"
	"slices"
	"strings"

	"github.com/cockroachdb/errors"

	"catenary/es/natsstore"
)

// Page gives the newest values of the first keys after a key, in the order of the keys: at most limit of them, fewer only
// at the end. A filter is as for [Bucket.Entries]; the empty one matches every key.
//
// The server has no order of keys, so each page reads the newest value of every key that the filter matches, and holds no
// more than a page of them: few large pages are cheaper than many small ones. Errors are as for [Bucket.Get].
func (b *Bucket) Page(ctx context.Context, filter, afterKey string, limit int) ([]Entry, error) {
	if limit <= 0 {
		return nil, errors.AssertionFailedf("bucket %s: a page of %d keys", b.bucket, limit)
	}
	var filters []string
	if filter != "" {
		filters = append(filters, filter)
	}
	subjects, err := b.subjects(filters)
	if err != nil {
		return nil, err
	}
	page := keyHeap{at: map[string]int{}}
	for m, err := range b.read(ctx, query{subjects: subjects, newest: true}) {
		if err != nil {
			return nil, natsstore.ReadError(errors.Wrapf(err, "page after key %q", afterKey))
		}
		page.offer(strings.TrimPrefix(m.subject, b.prefix), m, afterKey, limit)
	}
	entries := make([]Entry, len(page.messages))
	for i, m := range page.messages {
		if entries[i], err = b.entry(m); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
	return entries, nil
}

// keyHeap holds the messages of the least keys seen, the greatest of them first.
type keyHeap struct {
	messages []message
	at       map[string]int // where the message of a subject is
}

// offer takes a message in when its key is one of the least after afterKey. A newer message of a key replaces the older.
func (h *keyHeap) offer(key string, m message, afterKey string, limit int) {
	if key <= afterKey {
		return
	}
	if i, ok := h.at[m.subject]; ok {
		h.messages[i] = m
		return
	}
	if len(h.messages) < limit {
		heap.Push(h, m)
		return
	}
	if m.subject < h.messages[0].subject {
		delete(h.at, h.messages[0].subject)
		h.messages[0] = m
		h.at[m.subject] = 0
		heap.Fix(h, 0)
	}
}

func (h *keyHeap) Len() int           { return len(h.messages) }
func (h *keyHeap) Less(i, j int) bool { return h.messages[i].subject > h.messages[j].subject }
func (h *keyHeap) Swap(i, j int) {
	h.messages[i], h.messages[j] = h.messages[j], h.messages[i]
	h.at[h.messages[i].subject], h.at[h.messages[j].subject] = i, j
}

// Push is for package heap.
func (h *keyHeap) Push(x any) {
	m := x.(message)
	h.at[m.subject] = len(h.messages)
	h.messages = append(h.messages, m)
}

// Pop is for package heap.
func (h *keyHeap) Pop() any {
	m := h.messages[len(h.messages)-1]
	h.messages = h.messages[:len(h.messages)-1]
	delete(h.at, m.subject)
	return m
}

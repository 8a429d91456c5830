package project

import (
	"context"
	"encoding/json"

	"github.com/cockroachdb/errors"

	"catenary/es"
	"catenary/internal/failpoint"
)

// mark is how far a view has read, kept outside its bucket. It counts only for the bucket and the stream it was left over.
type mark struct {
	// Event is the last event the view has passed, Hash its hash.
	Event uint64  `json:"event"`
	Hash  es.Hash `json:"hash"`
	// Revision is where the bucket ended then. A bucket that ends earlier has lost its tail, and the mark with it.
	Revision uint64 `json:"revision"`
	// Fold is the view's version: another one might have found values in the same events.
	Fold int `json:"fold"`
	// Bucket is the name of the generation's bucket; empty where a view has but one.
	Bucket string `json:"bucket,omitempty"`
}

// readMark gives the view's mark, and false when there is none that counts for that bucket at that revision.
func readMark(ctx context.Context, marks Marks, view View, bucket string, revision uint64) (mark, bool, error) {
	if marks == nil {
		return mark{}, false, nil
	}
	raw, err := marks.Get(ctx, view.Name())
	switch {
	case errors.Is(err, es.ErrNotFound):
		return mark{}, false, nil
	case err != nil:
		return mark{}, false, errors.Wrapf(err, "mark of view %s", view.Name())
	}
	var m mark
	if err := json.Unmarshal(raw, &m); err != nil {
		return mark{}, false, nil // Unreadable is as good as lost: the bucket itself says where to go on.
	}
	return m, m.Fold == view.Version() && m.Bucket == bucket && m.Revision <= revision, nil
}

func (m mark) write(ctx context.Context, marks Marks, view string) error {
	raw, err := json.Marshal(m)
	if err != nil {
		return errors.Wrap(err, "encode mark")
	}
	if err := failpoint.Fail(failpoint.ProjectorBeforeMark); err != nil {
		return err
	}
	return errors.Wrapf(marks.Set(ctx, view, raw), "mark of view %s", view)
}

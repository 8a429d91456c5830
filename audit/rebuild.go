package audit

import (
	"context"
	"encoding/json"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/es/project"
	"catenary/internal/topology"
)

// QuestionRebuild is what the projector is asked to do about a bucket, under a subject of its own.
const QuestionRebuild = "rebuild"

// subjectOf is where a question is asked. What changes a bucket is asked elsewhere than what only reads.
func subjectOf(name string) string {
	if name == QuestionRebuild {
		return topology.ProjectorSubject(name)
	}
	return topology.QuerySubject(name)
}

// RebuildQuestion asks for a view's bucket to be mended or rebuilt.
type RebuildQuestion struct {
	View string `json:"view"`
	project.RebuildOptions
}

// rebuildPart is a part of the answer to it: how far it is, and at last what came of it.
type rebuildPart struct {
	Progress *project.WorkProgress `json:"progress,omitempty"`
	Result   *project.Rebuilt      `json:"result,omitempty"`
}

// rebuild has the projector do it and tells how far it is. The work goes on when nobody listens any more; who asks again is told
// of the same.
func (s *Service) rebuild(ctx context.Context, body []byte, a *answer) error {
	var q RebuildQuestion
	if err := decode(body, &q); err != nil {
		return err
	}
	work, err := s.config.Rebuild(q.View, q.RebuildOptions)
	switch {
	case errors.Is(err, project.ErrNoView):
		return errors.Mark(err, ErrInvalid)
	case errors.Is(err, project.ErrWorking):
		return errors.Mark(err, ErrBusy)
	case err != nil:
		return err
	}
	tick := time.NewTicker(aliveInterval / 4)
	defer tick.Stop()
	for {
		select {
		case <-work.Done():
			result, err := work.Result()
			if err != nil {
				return err
			}
			return a.end(rebuildPart{Result: &result})
		case <-tick.C:
			progress := work.Progress()
			if err := a.more(rebuildPart{Progress: &progress}); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Rebuild has the projector mend or rebuild a view's bucket, and waits for it. Progress is told how far it is; it may be nil.
func (c *Client) Rebuild(ctx context.Context, q RebuildQuestion, progress func(project.WorkProgress)) (project.Rebuilt, error) {
	var result project.Rebuilt
	found := false
	err := c.ask(ctx, QuestionRebuild, q, func(body []byte) error {
		var part rebuildPart
		if err := json.Unmarshal(body, &part); err != nil {
			return err
		}
		if part.Result != nil {
			result, found = *part.Result, true
		}
		if part.Progress != nil && progress != nil {
			progress(*part.Progress)
		}
		return nil
	})
	if err == nil && !found {
		err = errors.Mark(errors.Newf("rebuild of %s: the answer has no result", q.View), ErrIncomplete)
	}
	return result, err
}

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
)

// watchLines writes a line for each thing that has changed: for files, pipes and people whose terminal knows no more.
type watchLines struct {
	out  io.Writer
	zone *time.Location
	// shown is how each thing was last shown.
	shown map[string]string
	text  strings.Builder
	at    time.Time
}

var _ watcher = (*watchLines)(nil)

func (w *watchLines) show(s sight) error {
	w.at = s.At
	w.text.Reset()
	now := map[string]string{}
	say := func(of, text string) {
		now[of] = text
		if w.shown[of] != text {
			w.linef("%s", text)
		}
	}
	if s.Behind == "" && w.shown["behind"] != "" {
		w.linef("up to date again")
	}
	// Only that it is behind: by how much changes all the time.
	if s.Behind != "" {
		now["behind"] = "behind"
		if w.shown["behind"] == "" {
			w.linef("perhaps out of date: %s", s.Behind)
		}
	}
	say("fleet", s.fleet())
	for _, g := range s.Rollouts {
		say("rollout "+g.ID, g.headline())
		for _, t := range g.Tiers {
			if t.Entered {
				say("tier "+g.ID+"\x00"+t.Name, fmt.Sprintf("rollout %s: tier %s: %s", g.ID, t.Name, t.says))
			}
		}
		for _, held := range g.Waits {
			if held.Node == "" && g.stands {
				say("waits "+g.ID+"\x00"+held.Reason, fmt.Sprintf("rollout %s waits: %s", g.ID, held))
			}
		}
	}
	for _, step := range s.Steps {
		w.linef("rollout %s: %s %s: %s: %s", step.Rollout, step.Node, step.Module, fromTo(step.Before, step.After, step.Refresh), stepState(step, w.zone))
	}
	for _, t := range s.Trouble {
		say("place "+t.Node+"\x00"+t.Module, t.String())
	}
	for of, text := range w.shown {
		if _, still := now[of]; !still && strings.HasPrefix(of, "place ") {
			w.linef("%s: no more", text)
		}
	}
	w.shown = now
	_, err := io.WriteString(w.out, w.text.String())
	return errors.Wrap(err, "write the output")
}

func (w *watchLines) linef(format string, args ...any) {
	w.text.WriteString(showTime(w.at, w.zone) + "  " + printable(fmt.Sprintf(format, args...)) + "\n")
}

func (w *watchLines) again() error { return nil }

func (w *watchLines) close() error { return nil }

// watchJSON writes an object a line whenever something has changed.
type watchJSON struct {
	out  io.Writer
	last string
}

var _ watcher = (*watchJSON)(nil)

func (w *watchJSON) show(s sight) error {
	at, event := s.At, s.Event
	s.At, s.Event = time.Time{}, 0
	body, err := json.Marshal(s)
	if err != nil {
		return errors.Wrap(err, "encode what is seen")
	}
	if string(body) == w.last {
		return nil
	}
	w.last = string(body)
	s.At, s.Event = at, event
	if body, err = json.Marshal(s); err != nil {
		return errors.Wrap(err, "encode what is seen")
	}
	_, err = w.out.Write(append(body, '\n'))
	return errors.Wrap(err, "write the output")
}

func (w *watchJSON) again() error { return nil }

func (w *watchJSON) close() error { return nil }

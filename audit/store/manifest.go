package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"

	"github.com/cockroachdb/errors"
)

// carried is a line of a build's manifest.
type carried struct {
	Module     string `json:"module"`
	Version    string `json:"version"`
	Repository string `json:"repository"`
	Commit     string `json:"commit"`
}

// maxCarried bounds the lines that are taken of one list of a manifest. A record has 64 KiB, so none has more.
const maxCarried = 10_000

// manifest reads the lists of modules and of commits of a build's manifest; those that say nothing are left out. It is free JSON: what
// has another form says nothing of them.
func manifest(text json.RawMessage) [][]carried {
	var lists struct {
		Modules []json.RawMessage `json:"modules"`
		Commits []json.RawMessage `json:"commits"`
	}
	if len(text) == 0 || json.Unmarshal(text, &lists) != nil {
		return nil
	}
	var found [][]carried
	for _, list := range [][]carried{
		lines(lists.Modules, func(s string) carried { return carried{Module: s} }),
		lines(lists.Commits, func(s string) carried { return carried{Commit: s} }),
	} {
		if len(list) > 0 {
			found = append(found, list)
		}
	}
	return found
}

// lines reads a list whose members are either plain text or say what they are by name.
func lines(members []json.RawMessage, plain func(string) carried) []carried {
	var found []carried
	for _, member := range members {
		var c carried
		var s string
		switch {
		case member[0] == '"' && json.Unmarshal(member, &s) == nil:
			c = plain(s)
		case json.Unmarshal(member, &c) != nil:
			continue
		}
		if c != (carried{}) && len(found) < maxCarried {
			found = append(found, c)
		}
	}
	return found
}

// mostLists bounds the lists that are known to be in the file. It starts anew rather than choose what to forget.
const mostLists = 100_000

// carry notes that a build carries what a list says. Builds that were released together carry the same modules, and each fact of a build
// repeats its manifest, so each list is written once: its id is made of what it says.
func (w *writing) carry(ctx context.Context, build int64, list []carried) error {
	hash := sha256.New()
	if err := json.NewEncoder(hash).Encode(list); err != nil {
		return errors.Wrap(err, "name what a build carries")
	}
	id := int64(binary.BigEndian.Uint64(hash.Sum(nil)) >> 1)
	if err := w.carriers.add(ctx, build, id); err != nil || w.lists[id] {
		return err
	}
	if len(w.lists) >= mostLists {
		clear(w.lists)
	}
	w.lists[id] = true
	for _, l := range list {
		if err := w.carrieds.add(ctx, id, l.Module, l.Version, l.Repository, l.Commit); err != nil {
			return err
		}
	}
	return nil
}

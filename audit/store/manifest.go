package store

import "encoding/json"

// carried is a line of a build's manifest.
type carried struct {
	Module     string `json:"module"`
	Version    string `json:"version"`
	Repository string `json:"repository"`
	Commit     string `json:"commit"`
}

// maxCarried bounds the lines that are taken of one manifest. A record has 64 KiB, so none has more.
const maxCarried = 10_000

// manifest reads the lists of modules and of commits of a build's manifest. It is free JSON: what has another form says nothing of
// them.
func manifest(text json.RawMessage) []carried {
	var lists struct {
		Modules []json.RawMessage `json:"modules"`
		Commits []json.RawMessage `json:"commits"`
	}
	if len(text) == 0 || json.Unmarshal(text, &lists) != nil {
		return nil
	}
	var found []carried
	add := func(member json.RawMessage, plain func(string) carried) {
		var c carried
		var s string
		switch {
		case json.Unmarshal(member, &s) == nil:
			c = plain(s)
		case json.Unmarshal(member, &c) != nil:
			return
		}
		if c != (carried{}) && len(found) < maxCarried {
			found = append(found, c)
		}
	}
	for _, m := range lists.Modules {
		add(m, func(s string) carried { return carried{Module: s} })
	}
	for _, m := range lists.Commits {
		add(m, func(s string) carried { return carried{Commit: s} })
	}
	return found
}

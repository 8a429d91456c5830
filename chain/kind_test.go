package chain_test

import (
	"strings"
	"testing"

	"github.com/cockroachdb/errors"

	"catenary/chain"
	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// TestKeysAreThoseOfCommands: a record must stand under the key of the instance that commands change.
func TestKeysAreThoseOfCommands(t *testing.T) {
	t.Parallel()
	const odd = "a.b/c ä@1:2"
	pkg := events.Reference{Package: &events.Package{Name: odd, Version: "1.20"}}
	digest := events.Reference{Artifact: "sha256:ab"}
	type ref interface{ Ref() es.Ref }
	for _, c := range []struct {
		command ref
		kind    string
		key     func(names ...string) (string, error)
		names   []string
		of      string
	}{
		{commands.RegisterModule{ModuleSpec: events.ModuleSpec{Module: odd}}, chain.Modules.Name(), chain.Modules.Key, []string{odd}, chain.Modules.KeyOf(chain.Module{Name: odd})},
		{commands.RegisterNode{Node: odd}, chain.Nodes.Name(), chain.Nodes.Key, []string{odd}, chain.Nodes.KeyOf(chain.Node{Node: odd})},
		{commands.RecordCommit{Repository: odd, Commit: "c1"}, chain.Commits.Name(), chain.Commits.Key, []string{odd, "c1"}, chain.Commits.KeyOf(chain.Commit{Repository: odd, Commit: "c1"})},
		{commands.UnknownBuild{ID: odd}, chain.Builds.Name(), chain.Builds.Key, []string{odd}, chain.Builds.KeyOf(chain.Build{ID: odd})},
		{commands.RecordPublication{Reference: pkg}, chain.Publications.Name(), chain.Publications.Key, []string{odd, "1.20"}, chain.Publications.KeyOf(chain.Published{Reference: pkg})},
		{commands.RecordPublication{Reference: digest}, chain.Publications.Name(), chain.Publications.Key, []string{"sha256:ab"}, chain.Publications.KeyOf(chain.Published{Reference: digest})},
		{commands.Assign{Node: odd, Module: "web"}, chain.Assignments.Name(), chain.Assignments.Key, []string{odd, "web"}, chain.Assignments.KeyOf(chain.Assignment{Node: odd, Module: "web"})},
		{commands.TakeMerge{Repository: odd, Branch: odd, Commit: "c1"}, chain.Merges.Name(), chain.Merges.Key, []string{odd, odd, "c1"}, chain.Merges.KeyOf(chain.Merge{Repository: odd, Branch: odd, Commit: "c1"})},
		{commands.EndTrack{Track: odd}, chain.Tracks.Name(), chain.Tracks.Key, []string{odd}, chain.Tracks.KeyOf(chain.Track{Track: odd})},
		{commands.EndStrategy{Name: odd}, chain.Strategies.Name(), chain.Strategies.Key, []string{odd}, chain.Strategies.KeyOf(chain.Strategy{Name: odd})},
		{commands.StartRollout{ID: odd}, chain.Rollouts.Name(), chain.Rollouts.Key, []string{odd}, chain.Rollouts.KeyOf(chain.Rollout{ID: odd})},
		{commands.DeclareFreeze{Name: odd}, chain.Freezes.Name(), chain.Freezes.Key, []string{odd}, chain.Freezes.KeyOf(chain.Freeze{Name: odd})},
	} {
		key, err := c.key(c.names...)
		if err != nil {
			t.Errorf("%s: %v", c.kind, err)
			continue
		}
		if want := (es.Ref{Aggregate: c.kind, Key: key}); c.command.Ref() != want || c.of != key {
			t.Errorf("command to %v, record under %v, of the record itself %s", c.command.Ref(), want, c.of)
		}
	}
}

func TestKeyRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key  func(names ...string) (string, error)
		give []string
		says string
	}{
		"one name of two":            {chain.Assignments.Key, []string{"n1"}, "give <node> <module>"},
		"no name":                    {chain.Modules.Key, nil, "give <module>"},
		"three of one or two":        {chain.Publications.Key, []string{"a", "b", "c"}, "give <digest> or <name> <version>"},
		"the empty name":             {chain.Assignments.Key, []string{"n1", ""}, "module is empty"},
		"another normal form":        {chain.Nodes.Key, []string{"e\u0301"}, "U+0065"},
		"a name that can't be seen":  {chain.Nodes.Key, []string{"n\u200b1"}, "U+200B"},
		"a name longer than allowed": {chain.Nodes.Key, []string{strings.Repeat("n", 5000)}, "the limit is 255"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key, err := c.key(c.give...)
			if !errors.Is(err, es.ErrName) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("gave %q and %v, want an error that says %q", key, err, c.says)
			}
		})
	}
}

func TestStands(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stands, want bool
	}{
		"assigned":               {chain.Assignments.Stands(chain.Assignment{Since: noon}), true},
		"ended":                  {chain.Assignments.Stands(chain.Assignment{Ended: noon}), false},
		"pending":                {chain.Assignments.Stands(chain.Assignment{State: events.StatePending}), false},
		"registered":             {chain.Modules.Stands(chain.Module{Registered: noon}), true},
		"forgotten":              {chain.Modules.Stands(chain.Module{Ended: noon}), false},
		"a node":                 {chain.Nodes.Stands(chain.Node{Registered: noon}), true},
		"retired":                {chain.Nodes.Stands(chain.Node{Retired: noon}), false},
		"declared":               {chain.Freezes.Stands(chain.Freeze{Declared: noon}), true},
		"lifted":                 {chain.Freezes.Stands(chain.Freeze{Ended: noon}), false},
		"a merge that waits":     {chain.Merges.Stands(chain.Merge{Waiting: "not planned"}), true},
		"a merge that is placed": {chain.Merges.Stands(chain.Merge{Placed: noon}), false},
		"a track":                {chain.Tracks.Stands(chain.Track{Declared: noon}), true},
		"a track that ended":     {chain.Tracks.Stands(chain.Track{Ended: noon}), false},
		"an ended strategy":      {chain.Strategies.Stands(chain.Strategy{Ended: noon}), false},
		"a paused rollout":       {chain.Rollouts.Stands(chain.Rollout{State: chain.RolloutPaused}), true},
		"a failed rollout":       {chain.Rollouts.Stands(chain.Rollout{State: chain.RolloutFailed}), false},
		"a pending step":         {chain.Steps.Stands(chain.Step{Sent: noon}), true},
		"a step tried again":     {chain.Steps.Stands(chain.Step{Outcome: events.StepFailed, Again: true}), true},
		"a failed step":          {chain.Steps.Stands(chain.Step{Outcome: events.StepFailed}), false},
		"a commit":               {chain.Commits.Stands(chain.Commit{}), true},
		"a failed build":         {chain.Builds.Stands(chain.Build{Failed: "no"}), true},
		"a vetoed publication":   {chain.Publications.Stands(chain.Published{Vetoed: &chain.Veto{}}), true},
	} {
		if c.stands != c.want {
			t.Errorf("%s: stands is %v", name, c.stands)
		}
	}
}

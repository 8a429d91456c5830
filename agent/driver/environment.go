package driver

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// Environment is what a command is told of a task, as NAME=VALUE. What is empty is there all the same, so that nothing of an outer
// environment is taken for it.
func Environment(action string, t Task) []string {
	pkg := ""
	if t.Package != nil {
		pkg = t.Package.Name
	}
	var env []string
	for _, v := range [][2]string{
		{"ACTION", action}, {"NODE", t.Node}, {"MODULE", t.Module}, {"VERSION", t.Version()}, {"PACKAGE", pkg}, {"ARTIFACT", t.Artifact},
		{"BUILD", t.Build}, {"COMMIT", t.Commit}, {"ROLLOUT", t.Rollout},
		{"SOURCE", strconv.FormatUint(t.Source, 10)}, {"ATTEMPT", strconv.Itoa(t.Attempt)},
	} {
		env = append(env, "CATENARY_"+v[0]+"="+v[1])
	}
	return append(env, inputs(t)...)
}

// inputs gives each value that was handed on a variable of its own, and names those that have changed. A name that several values would
// have is none of theirs: the record has all of them.
func inputs(t Task) []string {
	values, times := map[string]string{}, map[string]int{}
	var changed []string
	for _, h := range t.Inputs {
		for name, value := range h.Values {
			v := variable(h.Module, name)
			values[v] = value
			times[v]++
		}
		for _, name := range h.Changed {
			changed = append(changed, variable(h.Module, name))
		}
	}
	var env []string
	for _, v := range slices.Sorted(maps.Keys(values)) {
		if times[v] == 1 {
			env = append(env, v+"="+values[v])
		}
	}
	slices.Sort(changed)
	return append(env, "CATENARY_CHANGED="+strings.Join(slices.Compact(changed), " "))
}

// variable is the name of the environment's variable for a value that a module has handed on.
func variable(module, name string) string {
	return "CATENARY_INPUT_" + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, module+"_"+name)
}

// ConfigDigest is the digest of a driver's configuration: equal ones have equal digests. It gives errors for what is no JSON.
func ConfigDigest(config any) (string, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return "", errors.Wrap(err, "digest of a driver's configuration")
	}
	return es.Digest(text), nil
}

package driver

import (
	"encoding/json"
	"strconv"

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
	return env
}

// ConfigDigest is the digest of a driver's configuration: equal ones have equal digests. It gives errors for what is no JSON.
func ConfigDigest(config any) (string, error) {
	text, err := json.Marshal(config)
	if err != nil {
		return "", errors.Wrap(err, "digest of a driver's configuration")
	}
	return es.Digest(text), nil
}

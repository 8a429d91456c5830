package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"catenary/es"
	"catenary/events"
)

// showReference gives NAME@VERSION, or a digest as far as people compare it.
func showReference(r events.Reference) string {
	if r.Package != nil {
		return r.String()
	}
	const enough = len("sha256:") + 12
	if algorithm, hex, ok := strings.Cut(r.Artifact, ":"); ok && len(algorithm) < 10 && len(hex) > 40 {
		return r.Artifact[:min(enough, len(r.Artifact))]
	}
	return r.Artifact
}

// shortCommit gives a commit id as people write it.
func shortCommit(commit string) string {
	if regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`).MatchString(commit) {
		return commit[:12]
	}
	return commit
}

func showLabels(labels map[string]string) string { return strings.Join(labelList(labels), ", ") }

func labelList(labels map[string]string) []string {
	list := make([]string, 0, len(labels))
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		list = append(list, name+"="+labels[name])
	}
	return list
}

// orAll shows a selector's list, where nothing means all.
func orAll(names []string) string {
	if len(names) == 0 {
		return "all"
	}
	return strings.Join(names, ", ")
}

// showKey gives the names in a key as they are written on the command line.
func showKey(key string) string {
	names, err := es.SplitKey(key)
	if err != nil {
		return key
	}
	for i, n := range names {
		names[i] = shellWord(n)
	}
	return strings.Join(names, " ")
}

// shellWord quotes a name when a shell would take it apart.
func shellWord(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return r < 0x80 && !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./@:,=+%", r)
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

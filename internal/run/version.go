package run

import (
	"regexp"
	"runtime/debug"
	"strings"
)

// unreleased is the version of a program that was not built from a release.
const unreleased = "0.0.0-dev"

// Version is the program's, in semantic form, as the build has noted it.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unreleased
	}
	return semantic(info.Main.Version)
}

// semantic gives a module version without its v, which micro services do not take.
func semantic(version string) string {
	v := strings.TrimPrefix(version, "v")
	if !regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`).MatchString(v) {
		return unreleased
	}
	return v
}

package run

import "runtime"

// slackBytes is how much garbage may lie about before it is collected, on top of as much as there is of what is in use. Every command
// leaves some 35 KiB, most of it messages on their way over connections. A server process of a small fleet holds some tens of MiB in use,
// so that without slack it collects several times a second, which is a quarter of all its work. From a GiB in use on the slack changes
// little.
const slackBytes = 128 << 20

// Slack lets a server process collect its garbage less often, until end is called: it holds memory that is never written to, so that it
// takes none of the machine's, and the collector counts it as being in use. Who says in the environment how to collect (GOGC, GOMEMLIMIT) is
// obeyed. It is for the process as a whole: only a main function calls it, or what stands for one.
func Slack(env func(name string) string) (end func()) {
	if env("GOGC") != "" || env("GOMEMLIMIT") != "" {
		return func() {}
	}
	untouched := make([]byte, slackBytes)
	return func() { runtime.KeepAlive(untouched) }
}

package failpoint

// Bug is a mistake that a program makes on demand, so that whoever looks for mistakes can be tried.
type Bug string

// The bugs that can be planted.
const (
	// AnswerBeforeAppend lets the writer answer accepted before the append stands.
	AnswerBeforeAppend Bug = "answer-before-append"
	// DedupSkipped lets the writer do a command again whose id it has done before.
	DedupSkipped Bug = "dedup-skipped"
	// UnclearRefused lets the writer answer rejected to a command whose append is unclear.
	UnclearRefused Bug = "unclear-refused"
	// ExpectedIgnored lets the writer pass over the version that a command expects.
	ExpectedIgnored Bug = "expected-ignored"
	// VersionSkipped lets the writer leave out a version of an aggregate now and then.
	VersionSkipped Bug = "version-skipped"
	// BodyChanged lets the store change an event's body after it was sealed, now and then.
	BodyChanged Bug = "body-changed"
	// ValueSkipped lets the projector leave out a value now and then.
	ValueSkipped Bug = "value-skipped"
	// EndedDropped lets the projector leave out the values of what has ended.
	EndedDropped Bug = "ended-dropped"
	// BeginTwice lets the writer record the begin of a step twice.
	BeginTwice Bug = "begin-twice"
	// EndTwice lets the writer record the end of a step twice.
	EndTwice Bug = "end-twice"
	// ApplySkipped lets the agent report as done what it has not done.
	ApplySkipped Bug = "apply-skipped"
	// BatonKept keeps standing by though the holder of the baton is gone.
	BatonKept Bug = "baton-kept"
)

// Bugs lists all that can be planted.
func Bugs() []Bug {
	return []Bug{
		AnswerBeforeAppend, DedupSkipped, UnclearRefused, ExpectedIgnored, VersionSkipped, BodyChanged, ValueSkipped, EndedDropped, BeginTwice, EndTwice,
		ApplySkipped, BatonKept,
	}
}

package events

// Writer is a fact about the writer itself.
//
//sumtype:decl
type Writer interface{ isWriter() }

// WriterStarted says that a writer began to append, which fences its predecessor.
type WriterStarted struct {
	ID string `json:"id"`
	// Program is the version of the program, Rules that of its rules.
	Program string `json:"program"`
	Rules   int    `json:"rules"`
}

// WriterKey is the key of the writer's own history.
const WriterKey = "main"

// WriterLossAccepted says that somebody let the writer go on although the stream is not what its witnesses have seen: it ends earlier,
// or holds other events. What is listed was looked at and is not asked again.
type WriterLossAccepted struct {
	// Found is the last event that stood, FoundHash its hash.
	Found     uint64 `json:"found"`
	FoundHash string `json:"found-hash"`
	// Witnesses are those that contradict the stream.
	Witnesses []Witness `json:"witnesses"`
	Reason    string    `json:"reason"`
}

// Witness is what something outside the event stream knows of how far it had come.
type Witness struct {
	// Name says what it is, such as bucket chain-nodes.
	Name string `json:"name"`
	// Sequence is the event it has seen, Hash that event's hash and Event its id, where it knows them.
	Sequence uint64 `json:"sequence"`
	Hash     string `json:"hash,omitempty"`
	Event    string `json:"event,omitempty"`
}

// BucketWitness is the name of a bucket as a witness: its newest value comes from an event.
func BucketWitness(bucket string) string { return "bucket " + bucket }

func (WriterStarted) isWriter()      {}
func (WriterLossAccepted) isWriter() {}

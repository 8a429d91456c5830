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

func (WriterStarted) isWriter() {}

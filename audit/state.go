package audit

// StoreState is what the audit store is doing.
type StoreState struct {
	// Event is the last event taken in. While a new file is built, it is the last one in that file.
	Event uint64 `json:"event"`
	// Building says that a new file is being built. Who asks is answered from the one before, if there is one.
	Building bool `json:"building,omitempty"`
	// Answers says that there is a file that can be asked.
	Answers bool `json:"answers,omitempty"`
	// Stopped says why the store does not go on, Trouble why not at the moment.
	Stopped string `json:"stopped,omitempty"`
	Trouble string `json:"trouble,omitempty"`
}

package commands

// Limits on what one command may say. Each is refused by name, with the limit and the size. Its whole body is bounded by
// [dispatch.MaxBodyBytes].
const (
	// MaxDepth bounds how deep a body's lists and objects lie in each other, so that reading one takes bounded stack.
	MaxDepth = 64
	// MaxTextBytes bounds free text, such as a reason: a page of it, and a small part of a record.
	MaxTextBytes = 4 << 10
	// MaxLineBytes bounds a text of one line that is not a name, such as a path, a URL or a fingerprint.
	MaxLineBytes = 1 << 10
	// MaxRawBytes bounds JSON that is kept byte for byte: a record holds no more by default.
	MaxRawBytes = 64 << 10
	// MaxLabels bounds the labels of one thing.
	MaxLabels = 64
	// MaxLabelBytes bounds a label's value.
	MaxLabelBytes = 255
	// MaxListItems bounds a list.
	MaxListItems = 1000
	// MaxCheckTries bounds how many checks in a row change a verdict.
	MaxCheckTries = 1000
)

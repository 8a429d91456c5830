package desk

// QuestionNodes is the query that tells how nodes are: catenary.query.nodes.
const QuestionNodes = "nodes"

// NodesQuestion asks how nodes are.
type NodesQuestion struct {
	// Node asks for one of them. Empty asks for all.
	Node string `json:"node,omitempty"`
	// Cursor goes on after a page, and Limit bounds it; zero means MaxNodes.
	Cursor string `json:"cursor,omitempty"`
	Limit  int    `json:"limit,omitempty"`
}

// MaxNodes bounds a page: with all that an agent may say, it stays under the limit of a message.
const MaxNodes = 500

// maxPageBytes bounds a page too, for the nodes of which there is much to say.
const maxPageBytes = 700 << 10

// NodesPage is the answer.
type NodesPage struct {
	Nodes []Node `json:"nodes"`
	// Cursor gets the next page. It is empty when there is nothing more.
	Cursor string `json:"cursor,omitempty"`
}

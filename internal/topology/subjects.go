package topology

// Accounts of the server. The ledger has one of its own: in a shared account any client could write into the event
// stream by naming an event's subject as its reply.
const (
	// AccountLedger holds the event stream, the buckets and the processes that write them.
	AccountLedger = "LEDGER"
	// AccountOps holds people, tools and read mirrors of the buckets.
	AccountOps = "OPS"
)

// Subjects of the ledger account.
const (
	// EventPrefix starts every event's subject: evt.<aggregate>.<key>.
	EventPrefix = "evt"
	// CommandPrefix starts every command's subject: catenary.cmd.<aggregate>.<verb>.
	CommandPrefix = "catenary.cmd"
	// QueryPrefix starts every query's subject: catenary.query.<name>.
	QueryPrefix = "catenary.query"
	// LedgerAPIPrefix is where the ops account sees the few JetStream API calls of the ledger that mirrors need.
	LedgerAPIPrefix = "LEDGER.API"
	// MirrorDeliverPrefix is where the ledger delivers to the ops account's mirrors.
	MirrorDeliverPrefix = "mirror.ops"
)

// Micro services, as `nats micro ls` shows them.
const (
	// WriterService answers commands.
	WriterService = "catenary-writer"
	// QueryService answers queries.
	QueryService = "catenary-query"
)

// CommandSubject is the subject a command is sent to.
func CommandSubject(aggregate, verb string) string {
	return CommandPrefix + "." + aggregate + "." + verb
}

// QuerySubject is the subject a query is sent to.
func QuerySubject(name string) string { return QueryPrefix + "." + name }

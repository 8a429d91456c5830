package topology

import "strings"

// Accounts of the server. The ledger has one of its own: in a shared account any client could write into the event
// stream by naming an event's subject as its reply.
const (
	// AccountLedger holds the event stream, the buckets and the processes that write them.
	AccountLedger = "LEDGER"
	// AccountOps holds people, tools and read mirrors of the buckets.
	AccountOps = "OPS"
	// accountSystem is that of the servers themselves.
	accountSystem = "$SYS"
)

// Subjects of the ledger account.
const (
	// EventPrefix starts every event's subject: evt.<aggregate>.<key>.
	EventPrefix = "evt"
	// CommandPrefix starts every command's subject: catenary.cmd.<aggregate>.<verb>.
	CommandPrefix = "catenary.cmd"
	// QueryPrefix starts every query's subject: catenary.query.<name>.
	QueryPrefix = "catenary.query"
	// ProjectorPrefix starts what the projector is asked to do: catenary.projector.<name>.
	ProjectorPrefix = "catenary.projector"
	// InboxPrefix starts the subject of every command that is to be kept until it is done: catenary.inbox.<aggregate>.<verb>.
	InboxPrefix = "catenary.inbox"
	// ParkedPrefix starts what is asked of parked commands: catenary.parked.retry and catenary.parked.discard.
	ParkedPrefix = "catenary.parked"
	// OutcomePrefix starts the subject on which a kept command's receipt is told: catenary.outcome.<command id>.
	OutcomePrefix = "catenary.outcome"
	// ToldPrefix starts the subject on which a node hears of each value of its assignments: told.<node>.<module>.
	ToldPrefix = "told"
	// AgentPrefix starts the subject on which the agent of a node checks in: catenary.agent.<node>.
	AgentPrefix = "catenary.agent"
	// InboxStoredPrefix starts the subjects of the inbox's stream: inbox.<aggregate>.<key>. Nobody outside the ledger reaches it.
	InboxStoredPrefix = "inbox"
	// ParkedStoredPrefix starts the subjects of the stream of parked commands: parked.<id>.
	ParkedStoredPrefix = "parked"
	// ServersSubject is where the ops account asks all servers how they and their streams are: each answers.
	ServersSubject = "catenary.servers"
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
	// TailService tells where the event stream ends, also while no projector answers queries.
	TailService = "catenary-tail"
	// StoreService tells how the store is: how full its places are, whether its streams are configured as they must be; and it gives out what a
	// backup needs.
	StoreService = "catenary-store"
	// ProofService gives checkpoints and proofs.
	ProofService = "catenary-proof"
	// EngineService says why rollouts do not move. The engine that walks them serves it.
	EngineService = "catenary-engine"
	// NodesService answers agents that check in, and tells how nodes are.
	NodesService = "catenary-nodes"
	// InboxService keeps commands until they are done, and answers what became of them.
	InboxService = "catenary-inbox"
	// HealthService says how a process is. Every process in the ledger serves it, and each of them answers.
	HealthService = "catenary-health"
)

// CommandSubject is the subject a command is sent to.
func CommandSubject(aggregate, verb string) string {
	return CommandPrefix + "." + aggregate + "." + verb
}

// QuerySubject is the subject a query is sent to.
func QuerySubject(name string) string { return QueryPrefix + "." + name }

// ToldSubject is the subject on which a node hears of a module's assignment. Both are tokens of a key; as the module, "*" stands for
// all of them.
func ToldSubject(node, module string) string { return ToldPrefix + "." + node + "." + module }

// AgentSubject is the subject on which the agent of a node checks in. The node is a token of a key.
func AgentSubject(node string) string { return AgentPrefix + "." + node }

// agentUserPrefix starts the names of the users of agents, and of nobody else.
const agentUserPrefix = "agent."

// AgentUser is the name of the user of a node's agent. The node is a token of a key.
func AgentUser(node string) string { return agentUserPrefix + node }

// AgentUserNode gives the node, as a token of a key, whose agent has a user of this name; false for everybody else.
func AgentUserNode(user string) (node string, ok bool) {
	return strings.CutPrefix(user, agentUserPrefix)
}

// ProjectorSubject is the subject on which the projector is asked to do something.
func ProjectorSubject(name string) string { return ProjectorPrefix + "." + name }

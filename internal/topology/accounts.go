package topology

import (
	"cmp"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cockroachdb/errors"
)

// Users that our own processes connect as.
const (
	// UserLedger is the ledger account's one user: writer, projector and engine.
	UserLedger = "ledger"
	// UserMirrors is the ops account's user that makes the mirrors. Only the process that embeds or administers the server
	// holds it: it alone may create and delete streams in the ops account.
	UserMirrors = "mirrors"
	// UserOperator is the person at the keyboard, in the ops account.
	UserOperator = "operator"
)

// Limits of the server itself.
const (
	// MaxPayloadBytes bounds one message. It is the server's default, stated: every limit above it is void.
	MaxPayloadBytes = 1 << 20
	// MaxConsumersPerStream bounds the consumers of one stream. The server's own default, 1,000, is reached by a thousand
	// people watching one mirror; `-1` on a stream does not lift it.
	MaxConsumersPerStream = 100_000
	// MaxMemoryStoreBytes bounds streams kept in memory. None of ours is; consumers of readers have a little state there.
	MaxMemoryStoreBytes = 64 << 20
	// maxPasswordBytes is what bcrypt takes.
	maxPasswordBytes = 72
)

// ErrLayout is given for a server layout that can't be rendered; the message names the field.
var ErrLayout = errors.New("server layout is not valid")

// User is one who may connect, by name and password or by nkey.
type User struct {
	// Name is what the writer sees as the actor of a user with a password.
	Name string
	// Password is plain or a bcrypt hash ("$2a$…"); a rendered layout shows it as it stands here.
	Password string
	// NKey is a public user nkey ("U…"). It excludes Name and Password, and is then itself what the writer sees.
	NKey string
	// Node makes the user an agent's: of what nodes are told it hears that of this one, and nothing else. It is the node's name as one
	// token of a key. Empty for people and tools.
	Node string
}

// ID is what the server puts into Nats-Request-Info as the user.
func (u User) ID() string {
	if u.NKey != "" {
		return u.NKey
	}
	return u.Name
}

// ClusterLayout joins servers.
type ClusterLayout struct {
	Name   string
	Listen string
	// Routes are the cluster addresses (host:port) of every server of the cluster.
	Routes []string
	// Secret is what the servers show each other. Empty lets in whoever reaches the address, who can then do anything in any
	// account: only for addresses that nobody else reaches.
	Secret string
}

// routeUser is who servers are to each other.
const routeUser = "server"

// Layout is a server with Catenary's two accounts. Its zero sections are left out of the text, so that the accounts alone
// can be rendered for a server that is configured elsewhere.
type Layout struct {
	// ServerName must be unique in a cluster.
	ServerName string
	// Listen is host:port for clients; port -1 takes a free one. Empty leaves it to the server's own configuration.
	Listen string
	// StoreDir and MaxStoreBytes configure JetStream; empty leaves it to the server's own configuration.
	StoreDir      string
	MaxStoreBytes int64
	// SyncAlways makes every acknowledged event durable against power loss.
	SyncAlways bool
	// Ledger and Mirrors authenticate our own processes. Their names are fixed.
	Ledger, Mirrors User
	// People lists everyone else: people, tools, agents.
	People []User
	// Anonymous names the one of People that a client without credentials becomes; its password is a plain one, since the
	// server presents it to itself. MUST be empty on a server that listens beyond loopback.
	Anonymous string
	// MirrorsLater leaves the ops account's JetStream off. A mirror that is recovered before its origin asks in vain and may not
	// ask again for half a minute, so who starts a single server turns it on when the ledger account has been recovered.
	MirrorsLater bool
	Cluster      *ClusterLayout
}

// Config renders the layout as nats-server configuration text. It is the one source of the accounts, which the embedded
// server parses. It gives ErrLayout.
func (l Layout) Config() (string, error) {
	if err := l.validate(); err != nil {
		return "", err
	}
	var w configWriter
	if l.ServerName != "" {
		w.line("server_name: ", quote(l.ServerName))
	}
	if l.Listen != "" {
		w.line("listen: ", quote(l.Listen))
	}
	w.line("max_payload: ", strconv.Itoa(MaxPayloadBytes))
	if l.StoreDir != "" {
		l.jetstream(&w)
	}
	if l.Cluster != nil {
		l.cluster(&w)
	}
	if l.Anonymous != "" {
		w.line("no_auth_user: ", quote(l.Anonymous))
	}
	w.open("accounts {")
	systemAccount(&w)
	l.ledgerAccount(&w)
	l.opsAccount(&w)
	w.close("}")
	return w.String(), nil
}

func (l Layout) jetstream(w *configWriter) {
	w.open("jetstream {")
	w.line("store_dir: ", quote(l.StoreDir))
	w.line("max_file_store: ", strconv.FormatInt(l.MaxStoreBytes, 10))
	w.line("max_memory_store: ", strconv.Itoa(MaxMemoryStoreBytes))
	if l.SyncAlways {
		w.line("sync_interval: always")
	}
	w.line("limits { default_max_consumers: ", strconv.Itoa(MaxConsumersPerStream), " }")
	w.close("}")
}

func (l Layout) cluster(w *configWriter) {
	w.open("cluster {")
	w.line("name: ", quote(l.Cluster.Name))
	w.line("listen: ", quote(l.Cluster.Listen))
	var who *url.Userinfo
	if l.Cluster.Secret != "" {
		w.line("authorization { user: ", quote(routeUser), ", password: ", quote(l.Cluster.Secret), " }")
		who = url.UserPassword(routeUser, l.Cluster.Secret)
	}
	w.open("routes: [")
	for _, r := range l.Cluster.Routes {
		route := url.URL{Scheme: "nats", User: who, Host: r}
		w.line(quote(route.String()))
	}
	w.close("]")
	w.close("}")
}

// systemAccount lets people ask all servers how they and their streams are, and nothing else of it. Its name MUST stay the server's own: the
// servers of a cluster keep what they agree on below it, and would find nothing there under another name, and remove all streams.
func systemAccount(w *configWriter) {
	w.open(quote(accountSystem) + ": {")
	w.line("exports: [ ", exportService(serversQuestion, "stream"), " ]")
	w.close("}")
}

// ledgerAccount exports services only. A service's answer travels back on a subject of the server's making, so whatever
// reply a client of the ops account names, nothing is published under it in the ledger.
func (l Layout) ledgerAccount(w *configWriter) {
	w.open(AccountLedger + ": {")
	w.line("jetstream: enabled")
	w.line("users: [ ", userText(l.Ledger), " ]")
	w.open("exports: [")
	for _, s := range sharedServices() {
		w.line(exportService(s, responseType(s)))
	}
	w.line(exportService(serviceDiscovery, "stream"))
	for _, c := range mirrorCalls() {
		w.line(exportService("$JS.API."+c, "singleton"))
	}
	w.line(exportService(flowControl, "singleton"))
	for _, s := range sharedStreams() {
		w.line("{ stream: ", quote(s), ", accounts: [", AccountOps, "] }")
	}
	w.close("]")
	w.close("}")
}

func (l Layout) opsAccount(w *configWriter) {
	w.open(AccountOps + ": {")
	if !l.MirrorsLater {
		w.line("jetstream: enabled")
	}
	w.open("users: [")
	w.line(userText(l.Mirrors))
	for _, u := range l.People {
		w.line(userText(u, permissionsText(u)))
	}
	w.close("]")
	w.open("imports: [")
	for _, s := range sharedServices() {
		w.line(importService(s, "", true))
	}
	w.line(importService(serviceDiscovery, "", false))
	for _, c := range mirrorCalls() {
		w.line(importService("$JS.API."+c, LedgerAPIPrefix+"."+c, false))
	}
	w.line(importService(flowControl, "", false))
	w.line("{ service: {account: ", quote(accountSystem), ", subject: ", quote(serversQuestion), "}, to: ", quote(ServersSubject), " }")
	for _, s := range sharedStreams() {
		w.line("{ stream: {account: ", AccountLedger, ", subject: ", quote(s), "} }")
	}
	w.close("]")
	w.close("}")
}

const (
	serviceDiscovery = "$SRV.>"
	flowControl      = "$JS.FC.>"
	// serversQuestion is answered by each server, with how it and its streams are.
	serversQuestion = "$SYS.REQ.SERVER.PING.JSZ"
)

// sharedServices are called with the caller's identity: `share` makes the server stamp it on the request as the header
// Nats-Request-Info, replacing what the sender put there. A service that acts on it MUST
//
//   - look for this very spelling, since the server lets other spellings pass untouched; without the header, the call came from
//     inside the ledger account;
//   - accept only kind "Client" with account OPS and a user: what the server sends by itself (a consumer's delivery, a trace)
//     has kind "JetStream" or "Account" and no user;
//   - refuse, and not answer, a request whose reply does not start with "_R_.": without a reply it is somebody's answer to another
//     request, sent with the name of the one who answered; with "$JS.ACK." it is a delivery, and an answer would be an ack.
func sharedServices() []string {
	return []string{CommandPrefix + ".>", InboxPrefix + ".>", ParkedPrefix + ".>", QueryPrefix + ".>", ProjectorPrefix + ".>", AgentPrefix + ".>", ArtifactPrefix + ".>", LogsPrefix + ".>"}
}

// responseType says how many messages answer one call of a shared service. Of a call that may be answered in many the server
// remembers for two minutes where the answers go; of one that is answered once, no longer than until then. At 5,000 commands a second the
// former would be 600,000 calls at any time, and a few hundred MB that the garbage collector looks through.
func responseType(service string) string {
	switch service {
	case CommandPrefix + ".>", InboxPrefix + ".>", AgentPrefix + ".>":
		return "singleton"
	default:
		return "stream"
	}
}

// sharedStreams are what the ledger tells the ops account unasked.
func sharedStreams() []string {
	return []string{MirrorDeliverPrefix + ".>", OutcomePrefix + ".>", ToldPrefix + ".>"}
}

// mirrorCalls are the JetStream calls a mirror makes to its origin, below "$JS.API.". They name each bucket: with a
// wildcard, whoever got hold of them could read or disturb the event stream.
func mirrorCalls() []string {
	var calls []string
	for _, b := range copied() {
		calls = append(calls,
			"CONSUMER.CREATE."+BucketStream(b),
			// A mirror that is deleted takes its consumer with it; without an answer the server waits for ten seconds.
			"CONSUMER.DELETE."+BucketStream(b)+".*",
		)
	}
	return calls
}

// PeoplePublishDeny lists what people, tools and agents may not publish in the ops account. Each would let them forge a
// mirror, delete one, or stand between a mirror and its origin. Creating a consumer is not among them, since watching a bucket
// needs one. A pull may ask for delivery to a command's subject: see sharedServices for how a service tells.
func PeoplePublishDeny() []string {
	return append([]string{
		// The ledger's JetStream calls, and the subjects it delivers a mirror's values and answers on.
		LedgerAPIPrefix + ".>",
		MirrorDeliverPrefix + ".>",
		"$JSC.>",
		// What became of a command is for the ledger to tell.
		OutcomePrefix + ".>",
		// So is what a node is told.
		ToldPrefix + ".>",
		// The same calls under the name a JetStream domain would give them.
		"$JS.*.API.>",
	}, deniedCalls()...)
}

// deniedCalls are the JetStream calls of the ops account that change or copy a stream, or administer the server.
func deniedCalls() []string {
	return []string{
		"$JS.API.STREAM.CREATE.>",
		"$JS.API.STREAM.UPDATE.>",
		"$JS.API.STREAM.DELETE.>",
		"$JS.API.STREAM.PURGE.>",
		"$JS.API.STREAM.RESTORE.>",
		"$JS.API.STREAM.SNAPSHOT.>",
		"$JS.API.STREAM.MSG.DELETE.>",
		"$JS.API.STREAM.PEER.>",
		"$JS.API.STREAM.CANCEL_MOVE.>",
		"$JS.API.STREAM.LEADER.>",
		"$JS.API.CONSUMER.LEADER.>",
		"$JS.API.CONSUMER.PEER.>",
		"$JS.API.META.>",
		"$JS.API.SERVER.>",
		"$JS.API.ACCOUNT.>",
		"$JS.SNAPSHOT.>",
	}
}

// PeopleSubscribeDeny lists what people, tools and agents may not listen on in the ops account: who hears a request can
// answer it before the one it is meant for does.
func PeopleSubscribeDeny() []string {
	return []string{
		CommandPrefix + ".>",
		InboxPrefix + ".>",
		ParkedPrefix + ".>",
		QueryPrefix + ".>",
		ProjectorPrefix + ".>",
		AgentPrefix + ".>",
		ArtifactPrefix + ".>",
		LogsPrefix + ".>",
		ServersSubject,
		LedgerAPIPrefix + ".>",
		MirrorDeliverPrefix + ".>",
		"$JSC.>",
		"$JS.API.>",
		"$JS.*.API.>",
		"$JS.ACK.>",
		"$JS.FC.>",
	}
}

// AgentSubscribeAllow lists all that the agent of a node may listen on: what the node is told, the answers to its own requests, and
// what became of the commands it left in the inbox.
func AgentSubscribeAllow(node string) []string {
	return []string{ToldSubject(node, "*"), AgentInbox(node) + ".>", OutcomePrefix + ".>"}
}

// AgentPublishAllow lists all that the agent of a node may send: its check-ins, reports for the inbox, requests for artifacts, and its own
// logs. That a report is about its own node the inbox sees to.
func AgentPublishAllow(node string) []string {
	return append([]string{AgentSubject(node), InboxPrefix + ".assignment.observe"}, agentBulk(node)...)
}

// AgentInbox is what the subjects begin with on which the agent of a node gets its answers. It is the node's own, so that no agent hears
// what another is answered.
func AgentInbox(node string) string { return "_INBOX_" + node }

func permissionsText(u User) string {
	publish, subscribe := "deny: ["+quoteAll(PeoplePublishDeny())+"]", "deny: ["+quoteAll(PeopleSubscribeDeny())+"]"
	if u.Node != "" {
		publish, subscribe = "allow: ["+quoteAll(AgentPublishAllow(u.Node))+"]", "allow: ["+quoteAll(AgentSubscribeAllow(u.Node))+"]"
	}
	return "permissions: { publish: { " + publish + " }, subscribe: { " + subscribe + " } }"
}

func (l Layout) validate() error {
	if err := validateOwn("ledger", l.Ledger, UserLedger); err != nil {
		return err
	}
	if err := validateOwn("mirrors", l.Mirrors, UserMirrors); err != nil {
		return err
	}
	seen := []string{UserLedger, UserMirrors}
	for _, u := range l.People {
		if err := u.validate(); err != nil {
			return err
		}
		if slices.Contains(seen, u.ID()) {
			return errors.Wrapf(ErrLayout, "user %q is named twice or is the name of one of Catenary's own; give it another name", u.ID())
		}
		seen = append(seen, u.ID())
	}
	if l.Anonymous != "" {
		i := slices.IndexFunc(l.People, func(u User) bool { return u.ID() == l.Anonymous })
		if i < 0 {
			return errors.Wrapf(ErrLayout, "anonymous clients would become %q, who is not among the people of the ops account", l.Anonymous)
		}
		if strings.HasPrefix(l.People[i].Password, "$2") {
			return errors.Wrapf(ErrLayout, "anonymous clients would become %q, whose password is a hash; the server needs a plain one for that", l.Anonymous)
		}
		if l.Listen != "" && !loopbackListen(l.Listen) {
			return errors.Wrapf(ErrLayout, "clients without credentials on %s, which others can reach; listen on loopback or drop the anonymous user", l.Listen)
		}
	}
	for field, text := range map[string]string{"server name": l.ServerName, "listen": l.Listen, "store directory": l.StoreDir} {
		if err := validateText(field, text); err != nil {
			return err
		}
	}
	if l.StoreDir != "" && l.MaxStoreBytes <= 0 {
		return errors.Wrapf(ErrLayout, "store %s has no size limit; a full disk stops the server until it is restarted, a limit refuses cleanly", l.StoreDir)
	}
	if c := l.Cluster; c != nil && (c.Name == "" || c.Listen == "" || len(c.Routes) == 0) {
		return errors.Wrap(ErrLayout, "a cluster needs a name, an address and the routes to all its servers")
	}
	return nil
}

func loopbackListen(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func validateOwn(field string, u User, name string) error {
	if err := u.validate(); err != nil {
		return err
	}
	if u.Node != "" {
		return errors.Wrapf(ErrLayout, "user of %s is of node %q; it is of none", field, u.Node)
	}
	if u.NKey == "" && u.Name != name {
		return errors.Wrapf(ErrLayout, "user of %s is named %q; it is always %q", field, u.Name, name)
	}
	return nil
}

func (u User) validate() error {
	if strings.ContainsFunc(u.Node, notOfToken) {
		return errors.Wrapf(ErrLayout, "node %q of user %q is not a token of a key: letters, digits, _, - and =XX for every other byte", u.Node, u.ID())
	}
	// By its name alone the writer knows an agent's user, and the node it may report for.
	if _, agent := AgentUserNode(u.Name); agent != (u.Node != "") || agent && u.Name != AgentUser(u.Node) {
		return errors.Wrapf(ErrLayout, "user %q is of node %q: the user of a node's agent has a password and is named %q, and nobody else is", u.ID(), u.Node, AgentUser(cmp.Or(u.Node, "NODE")))
	}
	if u.NKey != "" {
		if u.Name != "" || u.Password != "" {
			return errors.Wrapf(ErrLayout, "user %q has an nkey besides a name or password; give one or the other", u.Name)
		}
		if len(u.NKey) != 56 || u.NKey[0] != 'U' {
			return errors.Wrapf(ErrLayout, "%q is not a public user nkey: 56 characters that begin with U", u.NKey)
		}
		return validateText("nkey", u.NKey)
	}
	if u.Name == "" || u.Password == "" {
		return errors.Wrapf(ErrLayout, "user %q needs a name and a password, or an nkey", u.Name)
	}
	if len(u.Password) > maxPasswordBytes {
		return errors.Wrapf(ErrLayout, "password of user %q has %d bytes, at most %d are taken", u.Name, len(u.Password), maxPasswordBytes)
	}
	if err := validateText("user name", u.Name); err != nil {
		return err
	}
	return validateText("password of user "+u.Name, u.Password)
}

func notOfToken(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' || r == '=')
}

func validateText(field, text string) error {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return errors.Wrapf(ErrLayout, "%s has control characters or is not UTF-8", field)
	}
	return nil
}

func userText(u User, more ...string) string {
	fields := []string{"user: " + quote(u.Name), "password: " + quote(u.Password)}
	if u.NKey != "" {
		fields = []string{"nkey: " + quote(u.NKey)}
	}
	return "{ " + strings.Join(append(fields, more...), ", ") + " }"
}

func exportService(subject, response string) string {
	return "{ service: " + quote(subject) + ", accounts: [" + AccountOps + "], response_type: " + response + " }"
}

func importService(subject, to string, share bool) string {
	text := "{ service: {account: " + AccountLedger + ", subject: " + quote(subject) + "}"
	if to != "" {
		text += ", to: " + quote(to)
	}
	if share {
		text += ", share: true"
	}
	return text + " }"
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func quoteAll(subjects []string) string {
	quoted := make([]string, len(subjects))
	for i, s := range subjects {
		quoted[i] = quote(s)
	}
	return strings.Join(quoted, ", ")
}

// configWriter writes indented lines.
type configWriter struct {
	strings.Builder
	depth int
}

func (w *configWriter) line(parts ...string) {
	w.WriteString(strings.Repeat("  ", w.depth))
	for _, p := range parts {
		w.WriteString(p)
	}
	w.WriteByte('\n')
}

func (w *configWriter) open(s string)  { w.line(s); w.depth++ }
func (w *configWriter) close(s string) { w.depth--; w.line(s) }

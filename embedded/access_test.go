package embedded_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/embedded"
	"catenary/internal/topology"
)

const requestInfo = "Nats-Request-Info"

// caller is the rule by which the writer must tell who sent a command. The server guarantees what it rests on, and the tests
// below show each condition to be needed.
func caller(m *nats.Msg) (string, error) {
	stamps, crossed := m.Header[requestInfo] // the exact spelling: the server does not touch any other
	if !crossed {
		return "inside the ledger account", nil
	}
	var info struct {
		Account string `json:"acc"`
		User    string `json:"user"`
		Kind    string `json:"kind"`
	}
	if len(stamps) != 1 {
		return "", errors.Newf("%d stamps", len(stamps))
	}
	if err := json.Unmarshal([]byte(stamps[0]), &info); err != nil {
		return "", err
	}
	switch {
	case info.Kind != "Client":
		return "", errors.Newf("not sent by a client but by the server itself (%s)", info.Kind)
	case info.Account != topology.AccountOps || info.User == "":
		return "", errors.Newf("no user of account %s", topology.AccountOps)
	case !strings.HasPrefix(m.Reply, "_R_."):
		return "", errors.Newf("nobody waits for an answer: reply is %q", m.Reply)
	}
	return info.User, nil
}

// actorSpy answers commands and returns a function that sends one and tells who the writer sees.
func actorSpy(t *testing.T, b bus) func(*nats.Conn) string {
	t.Helper()
	ledger := connectLedger(t, b)
	_, err := ledger.Subscribe(topology.CommandPrefix+".>", func(m *nats.Msg) {
		who, err := caller(m)
		if err != nil {
			who = err.Error()
		}
		check(t, m.Respond([]byte(who)))
	})
	check(t, err)
	check(t, ledger.Flush())
	return func(nc *nats.Conn) string {
		t.Helper()
		var answer *nats.Msg
		eventually(t, "a server that knows who answers", func() bool {
			// Another server of a cluster hears a moment later that somebody does.
			answer, err = nc.Request(topology.CommandSubject("node", "register"), []byte("{}"), patience)
			return !errors.Is(err, nats.ErrNoResponders)
		})
		check(t, err)
		return string(answer.Data)
	}
}

// scene is a ledger with one value in a bucket, its mirrors, a writer that answers, and an operator who means harm.
type scene struct {
	server   *embedded.Server
	ledger   *nats.Conn
	js       jetstream.JetStream
	operator *nats.Conn
	refusals chan error     // what the server refused the operator
	commands chan *nats.Msg // what reached the writer's subjects
	before   map[string]jetstream.StreamState
}

// order is what the operator would have the ledger's JetStream do: deliver values into the event stream.
const order = `{"stream_name":"KV_chain-assignments","config":{"name":"deputy","deliver_subject":"evt.forged.x","ack_policy":"none","deliver_policy":"all"}}`

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{
		server:   start(t, embedded.Config{}),
		refusals: make(chan error, 100),
		commands: make(chan *nats.Msg, 100),
	}
	s.ledger, s.js = ledgerOf(t, s.server)
	check(t, s.server.EnsureMirrors(testContext(t)))
	kv, err := s.js.KeyValue(testContext(t), topology.BucketAssignments)
	check(t, err)
	last, err := kv.Put(testContext(t), "n1.web", []byte(order))
	check(t, err)
	awaitMirror(t, s.server, topology.BucketAssignments, last)

	_, err = s.ledger.Subscribe(topology.CommandPrefix+".>", func(m *nats.Msg) {
		s.commands <- m
		if strings.HasPrefix(m.Reply, "_") {
			check(t, m.Respond([]byte(`{"status":"accepted"}`)))
		}
	})
	check(t, err)
	// A query that answers with what it was asked: the answer is the operator's to choose.
	_, err = s.ledger.Subscribe(topology.QueryPrefix+".>", func(m *nats.Msg) { check(t, m.Respond(m.Data)) })
	check(t, err)
	check(t, s.ledger.Flush())
	s.operator = dial(t, s.server.ClientURL(), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		s.refusals <- err
	}))
	s.before = s.states(t)
	return s
}

// states are the ends of all streams of both accounts.
func (s *scene) states(t *testing.T) map[string]jetstream.StreamState {
	t.Helper()
	all := map[string]jetstream.StreamState{}
	mirrors, err := s.server.Mirrors()
	check(t, err)
	defer mirrors.Close()
	for account, js := range map[string]jetstream.JetStream{"ledger": s.js, "ops": jetstreamOf(t, mirrors)} {
		list := js.ListStreams(testContext(t))
		for info := range list.Info() {
			state := info.State
			state.Consumers = 0
			all[account+" "+info.Config.Name] = state
		}
		check(t, list.Err())
	}
	return all
}

// unharmed checks that no stream changed and that nobody but the mirrors reads the ledger.
func (s *scene) unharmed(t *testing.T) {
	t.Helper()
	s.settle(t)
	if diff := cmp.Diff(s.before, s.states(t)); diff != "" {
		t.Errorf("streams changed (-before +after):\n%s", diff)
	}
	stream, err := s.js.Stream(testContext(t), topology.BucketStream(topology.BucketAssignments))
	check(t, err)
	list := stream.ConsumerNames(testContext(t))
	for name := range list.Name() {
		if !strings.HasPrefix(name, "JS_MIRROR_") {
			t.Errorf("consumer %s in the ledger", name)
		}
	}
	check(t, list.Err())
}

// settle returns when the server has done what it was asked before: the operator's requests, the writer's answers to them,
// JetStream's calls and its deliveries each go their own way, so one of each is sent after.
func (s *scene) settle(t *testing.T) {
	t.Helper()
	_, err := s.operator.Request(topology.QuerySubject("settle"), nil, patience)
	check(t, err)
	kv, err := jetstreamOf(t, s.operator).KeyValue(testContext(t), topology.BucketAssignments)
	check(t, err)
	_, err = kv.History(testContext(t), "n1.web")
	check(t, err)
	check(t, s.ledger.Flush())
}

func (s *scene) send(t *testing.T, subject, reply, body string, header nats.Header) {
	t.Helper()
	check(t, s.operator.PublishMsg(&nats.Msg{Subject: subject, Reply: reply, Data: []byte(body), Header: header}))
	check(t, s.operator.Flush())
}

// consumer creates a consumer of a mirror, which people may: watching a bucket needs it.
func (s *scene) consumer(t *testing.T, name, config string) {
	t.Helper()
	body := fmt.Sprintf(`{"stream_name":"KV_chain-assignments","config":{"name":%q,"ack_policy":"none","deliver_policy":"all",%s}}`, name, config)
	answer, err := s.operator.Request("$JS.API.CONSUMER.CREATE.KV_chain-assignments."+name, []byte(body), patience)
	check(t, err)
	var failed struct {
		Error *jetstream.APIError `json:"error"`
	}
	check(t, json.Unmarshal(answer.Data, &failed))
	if failed.Error != nil {
		t.Fatalf("create consumer %s: %v", name, failed.Error)
	}
}

// listen gives a subject a listener in the ops account, without which the server delivers nothing there. People may not listen
// there themselves, and a wildcard does not count; this is what would happen if somebody could.
func (s *scene) listen(t *testing.T, subject string) {
	t.Helper()
	mirrors, err := s.server.Mirrors()
	check(t, err)
	t.Cleanup(mirrors.Close)
	_, err = mirrors.SubscribeSync(subject)
	check(t, err)
	check(t, mirrors.Flush())
}

func TestActorIsWhoConnected(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	subject := topology.CommandSubject("node", "register")
	forged := `{"acc":"OPS","user":"root","kind":"Client"}`
	for name, header := range map[string]nats.Header{
		"plain":            nil,
		"forged":           {requestInfo: {forged}},
		"forged twice":     {requestInfo: {forged, forged}},
		"lower-case copy":  {strings.ToLower(requestInfo): {forged}},
		"upper-case copy":  {strings.ToUpper(requestInfo): {forged}},
		"forged and copy":  {requestInfo: {forged}, strings.ToLower(requestInfo): {forged}},
		"empty":            {requestInfo: {""}},
		"forged as inside": {requestInfo: {`{}`}},
	} {
		t.Run(name, func(t *testing.T) {
			s.send(t, subject, nats.NewInbox(), "{}", header)
			m := await(t, "the command", s.commands)
			if who, err := caller(m); err != nil || who != topology.UserOperator {
				t.Errorf("caller is %q, %v; want the operator", who, err)
			}
			// A copy in another spelling passes untouched: whoever reads headers without regard to case is fooled.
			for spelling := range header {
				if spelling != requestInfo && m.Header[spelling] == nil {
					t.Errorf("the server now removes %s; the writer's rule may be relaxed", spelling)
				}
			}
		})
	}
	t.Run("inside", func(t *testing.T) {
		_, err := s.ledger.Request(subject, nil, patience)
		check(t, err)
		m := await(t, "the command", s.commands)
		if m.Header[requestInfo] != nil {
			t.Errorf("a call inside the ledger account is stamped: %v", m.Header)
		}
	})
	s.unharmed(t)
}

// Case F01, the server's half: a reply is published in the account of the one who named it, never in the ledger.
func TestForeignRepliesChangeNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for _, reply := range []string{
		"evt.assignment.x",
		topology.BucketSubject(topology.BucketAssignments, "n1.web"),
		topology.CommandSubject("node", "retire"),
		topology.QuerySubject("x"),
		topology.LedgerAPIPrefix + ".CONSUMER.CREATE.KV_chain-assignments",
		topology.LedgerAPIPrefix + ".CONSUMER.DELETE.KV_chain-assignments.x",
		topology.MirrorDeliverPrefix + ".M.x",
	} {
		t.Run(reply, func(t *testing.T) {
			s.send(t, topology.CommandSubject("node", "register"), reply, "{}", nil)
			await(t, "the command", s.commands)
			s.send(t, topology.QuerySubject("echo"), reply, order, nil)
			s.send(t, "$SRV.PING", reply, "", nil)
			s.send(t, "$JS.API.STREAM.INFO.KV_chain-assignments", reply, "", nil)
			s.unharmed(t)
			if n := len(s.commands); n != 0 {
				t.Errorf("%d commands out of answers: %+v", n, <-s.commands)
			}
		})
	}
	for _, reply := range []string{"$JS.API.STREAM.DELETE.KV_chain-assignments", "$JS.ACK.CATENARY.c.1.1.1.1.1", "_R_.x.y"} {
		t.Run(reply, func(t *testing.T) {
			s.send(t, topology.CommandSubject("node", "register"), reply, "{}", nil)
			if err := await(t, "the refusal", s.refusals); !strings.Contains(err.Error(), "Reply of") {
				t.Errorf("refused with %v", err)
			}
			s.unharmed(t)
		})
	}
}

// Whatever the server itself sends to a command's subject on the operator's behalf is no command: the writer can tell.
func TestDeliveriesAreNotCommands(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	command := topology.CommandSubject("node", "retire")
	cases := []struct {
		name string
		do   func(t *testing.T)
		says string
	}{
		{
			name: "a consumer that delivers there",
			do: func(t *testing.T) {
				s.listen(t, command)
				s.consumer(t, "push", `"deliver_subject":"`+command+`"`)
			},
			says: "(JetStream)",
		},
		{
			name: "a pull that asks for delivery there",
			do: func(t *testing.T) {
				s.consumer(t, "pull", `"durable_name":"pull"`)
				s.send(t, "$JS.API.CONSUMER.MSG.NEXT.KV_chain-assignments.pull", command, `{"batch":1,"no_wait":true}`, nil)
			},
			says: "(JetStream)",
		},
		{
			name: "a trace that reports there",
			do: func(t *testing.T) {
				s.send(t, "some.subject", "", "", nats.Header{"Nats-Trace-Dest": {command}})
			},
			says: "(Account)",
		},
		{
			name: "somebody else's service that answers there",
			do: func(t *testing.T) {
				other := dial(t, s.server.ClientURL())
				_, err := other.Subscribe("echo", func(m *nats.Msg) { check(t, m.Respond(m.Data)) })
				check(t, err)
				check(t, other.Flush())
				s.send(t, "echo", command, "{}", nil)
			},
			says: "nobody waits",
		},
		{
			name: "no reply at all",
			do:   func(t *testing.T) { s.send(t, command, "", "{}", nil) },
			says: "nobody waits",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.do(t)
			m := await(t, "the message", s.commands)
			if who, err := caller(m); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("caller is %q, %v; want a refusal that says %q (%+v)", who, err, c.says, m)
			}
			s.unharmed(t)
		})
	}
}

// A consumer of a mirror is not a way into the ledger's JetStream, whose calls have another name in the ops account.
func TestConsumersAreNoDeputies(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for i, target := range []string{
		topology.LedgerAPIPrefix + ".CONSUMER.CREATE.KV_chain-assignments",
		topology.LedgerAPIPrefix + ".CONSUMER.DELETE.KV_chain-assignments.x",
		"evt.forged.x",
		topology.BucketSubject(topology.BucketModules, "x"),
	} {
		t.Run(target, func(t *testing.T) {
			name := "push" + strconv.Itoa(i)
			s.listen(t, target)
			s.consumer(t, name, `"deliver_subject":"`+target+`"`)
			eventually(t, "the delivery", func() bool {
				answer, err := s.operator.Request("$JS.API.CONSUMER.INFO.KV_chain-assignments."+name, nil, patience)
				check(t, err)
				var info jetstream.ConsumerInfo
				check(t, json.Unmarshal(answer.Data, &info))
				return info.Delivered.Stream > 0
			})
			s.send(t, "$JS.API.CONSUMER.MSG.NEXT.KV_chain-assignments.pull"+strconv.Itoa(i), target, "", nil)
			s.unharmed(t)
		})
	}
	// The ledger's own JetStream, where such a consumer would write, is closed.
	s.send(t, topology.LedgerAPIPrefix+".CONSUMER.CREATE.KV_chain-assignments", nats.NewInbox(), order, nil)
	if err := await(t, "the refusal", s.refusals); !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("refused with %v", err)
	}
	s.unharmed(t)
}

// Forging, deleting or changing a mirror, and standing between a mirror and its origin, is refused by subject.
func TestPeopleAreDenied(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	literal := func(pattern string) string {
		return strings.NewReplacer(">", "KV_chain-assignments", "*", "domain").Replace(pattern)
	}
	for _, pattern := range topology.PeoplePublishDeny() {
		s.send(t, literal(pattern), "", `{"name":"KV_chain-assignments"}`, nil)
		if err := await(t, "the refusal to publish to "+pattern, s.refusals); !strings.Contains(err.Error(), literal(pattern)) {
			t.Errorf("publish to %s: refused with %v", pattern, err)
		}
	}
	for _, pattern := range topology.PeopleSubscribeDeny() {
		for _, subscribe := range []func() (*nats.Subscription, error){
			func() (*nats.Subscription, error) { return s.operator.SubscribeSync(literal(pattern)) },
			func() (*nats.Subscription, error) { return s.operator.QueueSubscribeSync(literal(pattern), "q") },
		} {
			_, err := subscribe()
			check(t, err)
			check(t, s.operator.Flush())
			if err := await(t, "the refusal to listen on "+pattern, s.refusals); !strings.Contains(err.Error(), literal(pattern)) {
				t.Errorf("listen on %s: refused with %v", pattern, err)
			}
		}
	}
	s.unharmed(t)
}

// A mirror accepts what arrives on a subject that only the server knows. Nobody who listens to everything may learn it.
func TestMirrorsDeliverySubjectsStaySecret(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	var heard []*nats.Subscription
	for _, pattern := range []string{">", "*.ops.>", "mirror.*.>", "*.*.*.*"} {
		sub, err := s.operator.SubscribeSync(pattern)
		check(t, err)
		heard = append(heard, sub)
	}
	check(t, s.operator.Flush())
	mirrors, err := s.server.Mirrors()
	check(t, err)
	beats := make(chan string, 1000)
	_, err = mirrors.Subscribe(topology.MirrorDeliverPrefix+".>", func(m *nats.Msg) { beats <- m.Subject })
	check(t, err)
	check(t, mirrors.Flush())
	// A mirror that is made anew asks for a new delivery subject; each sends a heartbeat on it every second.
	modules := topology.BucketStream(topology.BucketModules)
	check(t, jetstreamOf(t, mirrors).DeleteStream(testContext(t), modules))
	check(t, s.server.EnsureMirrors(testContext(t)))
	secrets := map[string]bool{}
	for len(secrets) < len(topology.MirroredBuckets()) {
		if subject := await(t, "a heartbeat", beats); strings.HasPrefix(subject, topology.MirrorDeliverPrefix) {
			secrets[subject] = true
		}
	}
	s.settle(t)
	for _, sub := range heard {
		pending, _, err := sub.Pending()
		check(t, err)
		for range pending {
			m, err := sub.NextMsg(patience)
			check(t, err)
			for secret := range secrets {
				if strings.Contains(m.Subject+m.Reply+string(m.Data)+fmt.Sprint(m.Header), secret) {
					t.Errorf("%s hears %s on %s", sub.Subject, secret, m.Subject)
				}
			}
		}
	}
}

// readingCalls are the JetStream calls that people keep. All others of the server MUST be denied: a new server version with
// a new call fails here until somebody has decided.
var readingCalls = []string{
	"$JS.API.INFO",
	"$JS.API.STREAM.NAMES", "$JS.API.STREAM.LIST", "$JS.API.STREAM.INFO.*", "$JS.API.STREAM.MSG.GET.*",
	"$JS.API.DIRECT.GET.*", "$JS.API.DIRECT.GET.*.*", "$JS.API.DIRECT.GET.*.>",
	"$JS.API.CONSUMER.CREATE.*", "$JS.API.CONSUMER.CREATE.*.>", "$JS.API.CONSUMER.DURABLE.CREATE.*.*",
	"$JS.API.CONSUMER.NAMES.*", "$JS.API.CONSUMER.LIST.*", "$JS.API.CONSUMER.INFO.*.*", "$JS.API.CONSUMER.DELETE.*.*",
	"$JS.API.CONSUMER.PAUSE.*.*", "$JS.API.CONSUMER.UNPIN.*.*", "$JS.API.CONSUMER.RESET.*.*", "$JS.API.CONSUMER.MSG.NEXT.*.*",
}

func TestEveryCallOfTheServerIsDecided(t *testing.T) {
	t.Parallel()
	calls := serverCalls(t)
	if len(calls) < 40 {
		t.Fatalf("found %d calls in the server's source", len(calls))
	}
	for _, call := range calls {
		denied := slices.ContainsFunc(topology.PeoplePublishDeny(), func(d string) bool {
			prefix, open := strings.CutSuffix(d, ">")
			return call == d || open && strings.HasPrefix(call, prefix)
		})
		if allowed := slices.Contains(readingCalls, call); denied == allowed {
			t.Errorf("%s: denied %v, kept for reading %v; decide it in topology or here", call, denied, allowed)
		}
	}
}

// serverCalls reads the JetStream calls from the source of the server that this test runs.
func serverCalls(t *testing.T) []string {
	t.Helper()
	pkg, err := build.Import("github.com/nats-io/nats-server/v2/server", ".", build.FindOnly)
	check(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(pkg.Dir, "jetstream_api.go"), nil, 0)
	check(t, err)
	found := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(literal.Value)
		check(t, err)
		text = strings.ReplaceAll(text, "%s.%s.%s", "*.>")
		text = strings.ReplaceAll(text, "%s", "*")
		tokens := strings.Split(text, ".")
		// Prefixes of several calls are no calls: they end with a dot or an open wildcard, or are the bare prefix.
		if strings.HasPrefix(text, "$JS.API.") && !slices.Contains(tokens, "") && tokens[2] != ">" {
			found[text] = true
		}
		return true
	})
	delete(found, "$JS.API.DIRECT.GET")
	var calls []string
	for call := range found {
		if call != "$JS.API.STREAM.>" && call != "$JS.API.CONSUMER.>" && call != "$JS.API.DIRECT.>" {
			calls = append(calls, call)
		}
	}
	return calls
}

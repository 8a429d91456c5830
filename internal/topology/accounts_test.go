package topology

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func layout() Layout {
	return Layout{
		Ledger:  User{Name: UserLedger, Password: "l"},
		Mirrors: User{Name: UserMirrors, Password: "m"},
		People:  []User{{Name: UserOperator, Password: "o"}},
	}
}

// What is printed for a server that is configured elsewhere holds the accounts and nothing else. That a server accepts it and
// what it then permits is tested with a real one, in embedded.
func TestAccountsAlone(t *testing.T) {
	t.Parallel()
	text, err := layout().Config()
	if err != nil {
		t.Fatal(err)
	}
	for _, unwanted := range []string{"listen", "jetstream {", "cluster", "no_auth_user", "server_name"} {
		if strings.Contains(text, unwanted) {
			t.Errorf("has %q:\n%s", unwanted, text)
		}
	}
	for _, want := range []string{
		`  LEDGER: {`, `  OPS: {`,
		`{ service: "catenary.cmd.>", accounts: [OPS], response_type: singleton }`,
		`{ service: "catenary.query.>", accounts: [OPS], response_type: stream }`,
		`{ service: {account: LEDGER, subject: "catenary.cmd.>"}, share: true }`,
		`{ service: {account: LEDGER, subject: "catenary.query.>"}, share: true }`,
		`{ service: {account: LEDGER, subject: "$JS.API.CONSUMER.CREATE.KV_chain-nodes"}, to: "LEDGER.API.CONSUMER.CREATE.KV_chain-nodes" }`,
		`{ user: "mirrors", password: "m" }`,
		`{ user: "operator", password: "o", permissions: { publish: { deny: ["LEDGER.API.>"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
}

// The agent of a node hears of its node and of nothing else.
func TestAgentPermissions(t *testing.T) {
	t.Parallel()
	l := layout()
	l.People = append(l.People, User{Name: "agent.n=201", Password: "a", Node: "n=201"})
	text, err := l.Config()
	if err != nil {
		t.Fatal(err)
	}
	want := `permissions: { publish: { allow: ["catenary.agent.n=201", "catenary.inbox.assignment.observe", "catenary.artifact.get", "catenary.artifact.name", "catenary.logs.n=201.*"] }, ` +
		`subscribe: { allow: ["told.n=201.*", "_INBOX_n=201.>", "catenary.outcome.>"] } }`
	if strings.Count(text, want) != 1 {
		t.Errorf("lacks %q:\n%s", want, text)
	}
	for _, node := range []string{"n 1", "n.1", "*", ">", "é"} {
		l.People[1].Name, l.People[1].Node = AgentUser(node), node
		if _, err := l.Config(); !errors.Is(err, ErrLayout) {
			t.Errorf("node %q: %v", node, err)
		}
	}
	for _, u := range []User{
		{Name: "agent.n2", Password: "a", Node: "n1"}, {Name: "ana", Password: "a", Node: "n1"}, {Name: "agent.n1", Password: "a"},
		{NKey: "UCNJ4DTI7T6XJBQTSOC2IZ4QBKQZRLWQKQRLKZ3K4DZ2Q2FZK6YYDTYC", Node: "n1"},
	} {
		l.People[1] = u
		if _, err := l.Config(); !errors.Is(err, ErrLayout) {
			t.Errorf("user %+v: %v", u, err)
		}
	}
	l = layout()
	l.Ledger.Node = "n1"
	if _, err := l.Config(); !errors.Is(err, ErrLayout) {
		t.Errorf("the ledger's user is an agent: %v", err)
	}
}

func TestMirrorsLater(t *testing.T) {
	t.Parallel()
	for later, want := range map[bool]int{false: 2, true: 1} {
		l := layout()
		l.MirrorsLater = later
		text, err := l.Config()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(text, "jetstream: enabled"); got != want {
			t.Errorf("later %v: JetStream is on in %d accounts, want %d", later, got, want)
		}
	}
}

// Nothing of the ledger's JetStream is exported but what mirrors call, each for one bucket by name.
func TestExportsNameEachBucket(t *testing.T) {
	t.Parallel()
	text, err := layout().Config()
	if err != nil {
		t.Fatal(err)
	}
	var exported []string
	for line := range strings.Lines(text) {
		if subject, ok := strings.CutPrefix(strings.TrimSpace(line), `{ service: "$JS.API.`); ok {
			subject, _, _ = strings.Cut(subject, `"`)
			exported = append(exported, subject)
		}
	}
	var want []string
	for _, b := range MirroredBuckets() {
		want = append(want, "CONSUMER.CREATE.KV_"+b, "CONSUMER.DELETE.KV_"+b+".*")
		for n := 2; n <= MaxGenerations && slices.Contains(ChainBuckets(), b); n++ {
			want = append(want, fmt.Sprintf("CONSUMER.CREATE.KV_%s-g%d", b, n), fmt.Sprintf("CONSUMER.DELETE.KV_%s-g%d.*", b, n))
		}
	}
	if diff := cmp.Diff(want, exported); diff != "" {
		t.Errorf("exported calls (-want +got):\n%s", diff)
	}
}

func TestLayoutRefused(t *testing.T) {
	t.Parallel()
	const nkey = "UAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	cases := []struct {
		says   string
		change func(*Layout)
	}{
		{`it is always "ledger"`, func(l *Layout) { l.Ledger.Name = "writer" }},
		{`it is always "mirrors"`, func(l *Layout) { l.Mirrors.Name = "x" }},
		{"needs a name and a password", func(l *Layout) { l.Ledger.Password = "" }},
		{"needs a name and a password", func(l *Layout) { l.People = append(l.People, User{Password: "x"}) }},
		{"named twice", func(l *Layout) { l.People = append(l.People, l.People[0]) }},
		{"one of Catenary's own", func(l *Layout) { l.People = append(l.People, User{Name: UserLedger, Password: "x"}) }},
		{"one or the other", func(l *Layout) { l.People[0].NKey = nkey }},
		{"not a public user nkey", func(l *Layout) { l.People[0] = User{NKey: "A" + nkey[1:]} }},
		{"at most 72", func(l *Layout) { l.People[0].Password = strings.Repeat("x", 73) }},
		{"control characters", func(l *Layout) { l.People[0].Name = "a\nb" }},
		{"control characters", func(l *Layout) { l.StoreDir, l.MaxStoreBytes = "a\x00", 1 }},
		{"not among the people", func(l *Layout) { l.Anonymous = "nobody" }},
		{"needs a plain one", func(l *Layout) { l.Anonymous, l.People[0].Password = UserOperator, "$2a$04$x" }},
		{"others can reach", func(l *Layout) { l.Anonymous, l.Listen = UserOperator, "0.0.0.0:4222" }},
		{"others can reach", func(l *Layout) { l.Anonymous, l.Listen = UserOperator, "example.org:4222" }},
		{"no size limit", func(l *Layout) { l.StoreDir = "/store" }},
		{"routes to all its servers", func(l *Layout) { l.Cluster = &ClusterLayout{Name: "c", Listen: "127.0.0.1:1"} }},
	}
	for _, c := range cases {
		l := layout()
		c.change(&l)
		if _, err := l.Config(); !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("got error %v, want ErrLayout that says %q", err, c.says)
		}
	}
}

// However limits are given, all streams fit into the store or it is said that they don't.
func TestFit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		store := rapid.Int64Range(0, 1<<40).Draw(t, "store")
		given := Options{
			Replicas:        rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "replicas"),
			EventStoreBytes: rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, 1<<38)).Draw(t, "events"),
			BucketBytes:     rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, 1<<38)).Draw(t, "bucket"),
		}
		got, err := Fit(store, given)
		if err != nil {
			if !errors.Is(err, ErrStoreTooSmall) {
				t.Fatalf("got error %v, want ErrStoreTooSmall", err)
			}
			return
		}
		need := ReservedBytes(got)
		if given.EventStoreBytes > 0 && given.BucketBytes > 0 {
			need = neededBytes(got)
		}
		if need > store {
			t.Errorf("%+v need %d bytes of %d", got, need, store)
		}
		if got.Replicas != given.Replicas ||
			given.EventStoreBytes != 0 && got.EventStoreBytes != given.EventStoreBytes ||
			given.BucketBytes != 0 && got.BucketBytes != given.BucketBytes {
			t.Errorf("given %+v became %+v", given, got)
		}
		if got.EventStoreBytes <= 0 || got.BucketBytes <= 0 {
			t.Errorf("no limit: %+v", got)
		}
	})
}

// TestFitNamesWhatIsEnough: the figure in the message is the smallest store that will do.
func TestFitNamesWhatIsEnough(t *testing.T) {
	t.Parallel()
	limit := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(MinStreamBytes, 1<<34))
	rapid.Check(t, func(t *rapid.T) {
		given := Options{EventStoreBytes: limit.Draw(t, "events")}
		if given.EventStoreBytes == 0 {
			given.BucketBytes = limit.Draw(t, "bucket")
		}
		_, err := Fit(1<<20, given)
		var bytes, buckets, enough int64
		if err == nil {
			t.Fatal("a megabyte is enough")
		}
		if _, scanErr := fmt.Sscanf(err.Error(), "%d bytes, but the event stream and %d buckets and mirrors need %d;", &bytes, &buckets, &enough); scanErr != nil {
			t.Fatalf("%v: %v", err, scanErr)
		}
		if _, err := Fit(enough, given); err != nil {
			t.Errorf("what is said to be enough is not: %v", err)
		}
		if _, err := Fit(enough-4*headroomParts, given); !errors.Is(err, ErrStoreTooSmall) {
			t.Errorf("less than %d is enough: %v", enough, err)
		}
	})
}

func TestFitGivesDefaultsWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	got, err := Fit(1<<40, Options{})
	if err != nil || got.EventStoreBytes != DefaultEventStoreBytes || got.BucketBytes != DefaultBucketBytes {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := Fit(neededBytes(got), Options{EventStoreBytes: DefaultEventStoreBytes, BucketBytes: DefaultBucketBytes}); err != nil {
		t.Errorf("exactly enough: %v", err)
	}
}

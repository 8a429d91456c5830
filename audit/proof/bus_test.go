package proof_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"catenary/audit/proof"
	"catenary/es"
	"catenary/es/estest"
	"catenary/es/natskv"
	"catenary/internal/topology"
)

// onBus runs a log whose tiles and checkpoints stand on a real bus, and gives a client of it.
func onBus(t *testing.T) (*fixture, *proof.Client, *nats.Conn) {
	t.Helper()
	f := newFixture(t)
	nc := estest.Server(t, false).Connect(t)
	options := topology.Options{BucketBytes: 16 << 20}
	if err := errors.CombineErrors(natskv.Ensure(t.Context(), nc, topology.Tiles(options)), proof.EnsureCheckpoints(t.Context(), nc, options)); err != nil {
		t.Fatal(err)
	}
	tiles, err := natskv.OpenKeyValue(t.Context(), nc, topology.BucketTiles)
	if err != nil {
		t.Fatal(err)
	}
	checkpoints, err := proof.OpenCheckpoints(t.Context(), nc)
	if err != nil {
		t.Fatal(err)
	}
	c := f.config()
	c.Tiles, c.Checkpoints = proof.BucketTiles{Bucket: tiles}, checkpoints
	f.serve(nc, c)
	return f, proof.NewClient(nc.RequestMsgWithContext), nc
}

// serve runs a log that answers on a bus, until the test ends or the function it gives is called.
func (f *fixture) serve(nc *nats.Conn, c proof.Config) (stop func()) {
	f.t.Helper()
	log, _ := f.run(c)
	service, err := proof.Serve(nc, "0.0.0", log)
	if err != nil {
		f.t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		if err := service.Stop(); err != nil {
			f.t.Error(err)
		}
	})
	f.t.Cleanup(stop)
	return stop
}

// TestOneOfSeveralSigns: whichever service takes a question, the answer is that of one which has the keys. Without any, one that has none
// gives what others have signed.
func TestOneOfSeveralSigns(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	nc := estest.Server(t, false).Connect(t)
	stop := f.serve(nc, f.config())
	keyless := f.config()
	keyless.Signers, keyless.Public = nil, nil
	f.serve(nc, keyless)
	client, ctx := proof.NewClient(nc.RequestMsgWithContext), bounded(t)
	var last uint64
	for n := range 20 {
		f.append(1)
		last++
		found, err := client.Checkpoint(ctx)
		if err != nil || !slices.Equal(found.Keys, f.keys.Public) {
			t.Fatalf("question %d: the keys are %v, %v", n, found.Keys, err)
		}
		f.append(1)
		last++
		if p, err := client.Prove(ctx, last); err != nil || len(p.Keys) == 0 {
			t.Fatalf("question %d: the proof of event %d has the keys %v, %v", n, last, p.Keys, err)
		}
		_, err = client.Prove(ctx, last+1)
		wantKind(t, err, es.ErrNotFound)
	}
	stop()
	if p, err := client.Prove(ctx, last); err != nil || len(p.Keys) != 0 {
		t.Errorf("without one that signs, the proof has the keys %v, %v", p.Keys, err)
	}
	f.append(1)
	_, err := client.Prove(ctx, last+1)
	wantKind(t, err, es.ErrNotFound)
}

// TestOverTheBus asks every question as the tool does.
func TestOverTheBus(t *testing.T) {
	t.Parallel()
	f, client, nc := onBus(t)
	keys := public(t, f.keys)
	ctx := bounded(t)
	_, err := client.Checkpoint(ctx)
	wantKind(t, err, es.ErrNotFound)

	f.append(600)
	first, err := client.Checkpoint(ctx)
	if err != nil {
		t.Fatal(err)
	}
	earlier, err := proof.Open([]byte(first.Checkpoint), keys)
	if err != nil || earlier.Size != 600 || !slices.Equal(first.Keys, f.keys.Public) {
		t.Fatalf("the checkpoint has %d events, %v; the keys are %v", earlier.Size, err, first.Keys)
	}
	f.append(700)
	p, err := client.Prove(ctx, 1234)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := p.Verify(keys); err != nil || c.Size < 1234 {
		t.Errorf("event 1234: %+v, %v", c, err)
	}
	g, err := client.Growth(ctx, earlier.Size)
	if err != nil {
		t.Fatal(err)
	}
	now, err := proof.Open([]byte(g.Checkpoint), keys)
	if err != nil {
		t.Fatal(err)
	}
	if err := now.Follows(earlier, g.Path); err != nil {
		t.Error(err)
	}
	var told uint64
	found, err := client.VerifyChain(ctx, [][]byte{[]byte(first.Checkpoint)}, keys, func(events uint64) { told = events })
	if err != nil || found.Events != 1300 || found.Newest != 1300 || found.Checkpoints < 3 || told != 1300 {
		t.Errorf("the whole record gives %+v, %v, and %d events were told", found, err, told)
	}
	forked := earlier
	forked.Root[0] ^= 1
	_, err = client.VerifyChain(ctx, [][]byte{sign(t, forked, f.keys.Signers...)}, keys, nil)
	wantKind(t, err, proof.ErrForked)
	longer := earlier
	longer.Size = 5000
	_, err = client.VerifyChain(ctx, [][]byte{sign(t, longer, f.keys.Signers...)}, keys, nil)
	wantKind(t, err, proof.ErrShortened)

	_, err = client.Prove(ctx, 5000)
	wantKind(t, err, es.ErrNotFound)
	_, err = client.Roots(ctx, proof.RootsQuestion{State: proof.Accumulator{Head: es.Head{Sequence: 3}}})
	wantKind(t, err, proof.ErrFailed)
	answer, err := nc.RequestWithContext(ctx, topology.QuerySubject(proof.QuestionProof), []byte(`{"evnt":3}`))
	if err != nil || answer.Header.Get("Nats-Service-Error-Code") != "400" {
		t.Errorf("a misspelt question gives %+v, %v", answer, err)
	}
	nobody := proof.NewClient(func(context.Context, *nats.Msg) (*nats.Msg, error) { return nil, nats.ErrNoResponders })
	_, err = nobody.Checkpoint(ctx)
	wantKind(t, err, proof.ErrNoService)
}

// TestCheckpointsAreKept: what was signed can't be taken back, and a stream where it could is refused.
func TestCheckpointsAreKept(t *testing.T) {
	t.Parallel()
	f, client, nc := onBus(t)
	f.append(3)
	if _, err := client.Checkpoint(bounded(t)); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), topology.CheckpointStream)
	if err != nil {
		t.Fatal(err)
	}
	if stream.DeleteMsg(t.Context(), 1) == nil || stream.Purge(t.Context()) == nil {
		t.Error("a checkpoint could be deleted")
	}
	unsafe := estest.Server(t, false).Connect(t)
	if js, err = jetstream.New(unsafe); err != nil {
		t.Fatal(err)
	}
	config := topology.Checkpoints(topology.Options{})
	config.DenyDelete, config.DenyPurge, config.MaxAge = false, false, time.Hour
	if _, err := js.CreateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if err := proof.EnsureCheckpoints(t.Context(), unsafe, topology.Options{}); err == nil {
		t.Error("a stream that loses checkpoints is taken")
	}
}

// TestAnswersShareNothingWithTheirRequests: answers leave from other goroutines than the one that the library reads a request in. The
// race detector sees it if they meet in one.
func TestAnswersShareNothingWithTheirRequests(t *testing.T) {
	t.Parallel()
	_, _, nc := onBus(t)
	const questions = 200
	replies := nc.NewInbox()
	answers, err := nc.SubscribeSync(replies)
	if err != nil {
		t.Fatal(err)
	}
	for range questions {
		if err := nc.PublishRequest(topology.QuerySubject(proof.QuestionProof), replies, []byte(`{"evnt":3}`)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range questions {
		m, err := answers.NextMsg(30 * time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if code := m.Header.Get("Nats-Service-Error-Code"); code != "400" && code != "429" {
			t.Errorf("answer %d is %q with the headers %v", i, m.Data, m.Header)
		}
	}
	stats, err := nc.Request("$SRV.STATS."+topology.ProofService, nil, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var found struct {
		Endpoints []micro.EndpointStats `json:"endpoints"`
	}
	if err := json.Unmarshal(stats.Data, &found); err != nil {
		t.Fatal(err)
	}
	for _, e := range found.Endpoints {
		if e.NumErrors != 0 {
			t.Errorf("the library has noted %d errors of the endpoint %s", e.NumErrors, e.Name)
		}
	}
}

package natskv_test

import (
	"testing"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go/jetstream"

	"catenary/es"
	"catenary/es/estest"
	"catenary/es/natskv"
	"catenary/internal/topology"
)

func TestEnsure(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	ctx := bounded(t)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []jetstream.StreamConfig{small("chain-things"), topology.Actors(topology.Options{}), topology.Marks(topology.Options{})} {
		for range 2 {
			if err := natskv.Ensure(ctx, nc, cfg); err != nil {
				t.Fatalf("%s: %v", cfg.Name, err)
			}
		}
	}

	raised := small("chain-things")
	raised.MaxBytes *= 2
	for _, cfg := range []jetstream.StreamConfig{raised, small("chain-things")} {
		if err := natskv.Ensure(ctx, nc, cfg); err != nil {
			t.Fatal(err)
		}
		s, err := js.Stream(ctx, cfg.Name)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.CachedInfo().Config.MaxBytes; got != raised.MaxBytes {
			t.Errorf("the limit is %d, want %d: raised, and never lowered", got, raised.MaxBytes)
		}
	}

	for _, c := range []struct {
		field string
		spoil func(*jetstream.StreamConfig)
	}{
		{"Subjects", func(c *jetstream.StreamConfig) { c.Subjects = append(c.Subjects, "elsewhere") }},
		{"Discard", func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld }},
		{"Retention", func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy }},
		{"Storage", func(c *jetstream.StreamConfig) {
			c.Storage, c.PersistMode = jetstream.MemoryStorage, jetstream.DefaultPersistMode
		}},
		{"MaxMsgsPerSubject", func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 64 }},
		{"MaxMsgs", func(c *jetstream.StreamConfig) { c.MaxMsgs = 1000 }},
		{"MaxAge", func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }},
		{"DenyDelete", func(c *jetstream.StreamConfig) { c.DenyDelete = false }},
		{"DenyPurge", func(c *jetstream.StreamConfig) { c.DenyPurge = false }},
		{"AllowDirect", func(c *jetstream.StreamConfig) { c.AllowDirect = true }},
		{"AllowMsgTTL", func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true }},
	} {
		t.Run(c.field, func(t *testing.T) {
			cfg := small("spoilt")
			cfg.Name, cfg.Subjects = "KV_spoilt-"+c.field, []string{"$KV.spoilt-" + c.field + ".>"}
			want := cfg
			c.spoil(&cfg)
			if _, err := js.CreateStream(ctx, cfg); err != nil {
				t.Fatal(err)
			}
			var unsafe *natskv.ConfigError
			if err := natskv.Ensure(ctx, nc, want); !errors.As(err, &unsafe) || unsafe.Field != c.field {
				t.Errorf("error %v, want one about %s", err, c.field)
			}
		})
	}
	if err := natskv.Ensure(ctx, nc, topology.Events(topology.Options{})); err == nil {
		t.Error("the event stream was taken for a bucket")
	}
}

func TestOpenSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	nc := estest.Server(t, false).Connect(t)
	if _, err := natskv.Open(bounded(t), nc, "none"); !errors.Is(err, es.ErrUnavailable) {
		t.Errorf("error %v, want one marked unavailable", err)
	}
	open(t, nc, small("things"))
	if _, err := natskv.OpenKeyValue(bounded(t), nc, "things"); err == nil {
		t.Error("a projector's bucket was opened to be changed by hand")
	}
}

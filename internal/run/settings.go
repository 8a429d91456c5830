package run

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
	"gopkg.in/yaml.v3"

	"catenary/audit/proof"
	"catenary/commands"
	"catenary/es/dispatch"
	"catenary/internal/natsconn"
	"catenary/internal/topology"
	"catenary/rollout"
)

// ErrSettings marks settings that can't work; the message names the setting.
var ErrSettings = errors.New("settings are not valid")

// ErrHelp means that only the help was asked for, which was shown.
var ErrHelp = pflag.ErrHelp

// Settings are what the binaries writer, projector and engine are told. Each comes from a flag, or else from the environment
// (CATENARY_LOG_LEVEL for log-level), or else from the file that config names, or else from the defaults.
type Settings struct {
	// Config is the path of a YAML file with settings under the flags' names.
	Config string `koanf:"config"`
	// Server, Creds and Context say where the bus is; what is empty comes from the NATS_ variables, as with every NATS tool.
	Server  string `koanf:"server"`
	Creds   string `koanf:"creds"`
	Context string `koanf:"context"`
	// NKey is the seed file of the ledger account's user, MirrorsNKey that of the mirrors user, and MirrorsCreds its credentials file: a
	// projector that has one of them makes and keeps the copies of the buckets that people read.
	NKey         string `koanf:"nkey"`
	MirrorsNKey  string `koanf:"mirrors-nkey"`
	MirrorsCreds string `koanf:"mirrors-creds"`
	// LogLevel is debug, info, warn or error.
	LogLevel string `koanf:"log-level"`
	// HTTP is where /healthz, /readyz and /metrics are served: see [ListenHTTP]. Empty serves none.
	HTTP string `koanf:"http"`
	// Traces is a file that spans are appended to. Empty writes none.
	Traces string `koanf:"traces"`
	// Durability is what the server does with the event stream: fsync or interval. It only decides how appends are grouped.
	Durability string `koanf:"durability"`
	// Replicas is 1 on a single server and 3 in a cluster.
	Replicas int `koanf:"replicas"`
	// EventStoreBytes and BucketBytes bound the event stream and each bucket. Zero means the defaults of the topology.
	EventStoreBytes int64 `koanf:"event-store-bytes"`
	BucketBytes     int64 `koanf:"bucket-bytes"`
	// Audit is the file of the projector's audit store. Empty means that it keeps none.
	Audit string `koanf:"audit"`
	// DiscardSnapshots makes a writer read the whole event stream.
	DiscardSnapshots bool `koanf:"discard-snapshots"`
	// SnapshotEvery is how many events a writer lets come before it makes the next snapshot.
	SnapshotEvery int `koanf:"snapshot-every"`
	// CheckpointKey is the file with the keys that checkpoints are signed with; empty signs none. Chain is the name that the first key
	// bears. NewCheckpointKey says why keys sign that have not before; empty lets none. CheckpointEvery and CheckpointEvents say when one is due.
	CheckpointKey    string        `koanf:"checkpoint-key"`
	NewCheckpointKey string        `koanf:"new-checkpoint-key"`
	Chain            string        `koanf:"chain"`
	CheckpointEvery  time.Duration `koanf:"checkpoint-every"`
	CheckpointEvents uint64        `koanf:"checkpoint-events"`
	// AcceptTruncatedAt goes on although the stream has lost events, when it ends at just this one, and AcceptReason says why. Empty
	// accepts nothing.
	AcceptTruncatedAt string `koanf:"accept-truncated-at"`
	AcceptReason      string `koanf:"accept-reason"`
	// LeaseTTL is how long an engine's lease holds without renewal.
	LeaseTTL time.Duration `koanf:"lease-ttl"`
}

const environmentPrefix = "CATENARY_"

// variable is the environment's name of a setting.
func variable(setting string) string {
	return environmentPrefix + strings.ToUpper(strings.ReplaceAll(setting, "-", "_"))
}

// parse reads flags, beside which there are no arguments. It gives errors marked [ErrSettings], or [ErrHelp] after writing the help.
func parse(f *pflag.FlagSet, about string, args []string, help io.Writer) error {
	f.SetOutput(help)
	f.Usage = func() {
		_, _ = fmt.Fprintf(help, "%s\n\nSettings (also %sNAME in the environment, or in the file):\n%s", about, environmentPrefix, f.FlagUsages())
	}
	err := f.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return ErrHelp
	case err == nil && f.NArg() > 0:
		err = errors.Newf("%q is no setting: all are flags", f.Arg(0))
	}
	return errors.Mark(err, ErrSettings)
}

// flags gives the flags of the settings, with the defaults.
func flags(program string) *pflag.FlagSet {
	f := pflag.NewFlagSet(program, pflag.ContinueOnError)
	f.SortFlags = false
	f.String("config", "", "YAML `file` with settings under these names")
	f.String("server", "", "`URL` of the bus (default NATS_URL)")
	f.String("creds", "", "credentials `file` of the ledger account (default NATS_CREDS)")
	f.String("nkey", "", "seed `file` of the ledger account's user (default NATS_NKEY)")
	f.String("mirrors-nkey", "", "projector: seed `file` of the mirrors user; with it, it makes and keeps the copies that people read")
	f.String("mirrors-creds", "", "projector: credentials `file` of the mirrors user, instead")
	f.String("context", "", "`name` of a nats context (default NATS_CONTEXT)")
	f.String("log-level", "info", "debug, info, warn or error")
	f.String("http", "", "serve /healthz, /readyz and /metrics at `HOST:PORT`, or at a port of loopback (default not at all)")
	f.String("traces", "", "append traces to a `file`, a span a line (OTEL_EXPORTER_OTLP_ENDPOINT sends them on)")
	f.String("durability", "fsync", "what the server does with the event stream: fsync or interval")
	f.Int("replicas", 1, "servers that hold each stream: 1, 3 or 5")
	f.Int64("event-store-bytes", topology.DefaultEventStoreBytes, "limit of the event stream")
	f.Int64("bucket-bytes", topology.DefaultBucketBytes, "limit of each bucket")
	f.String("audit", "", "`file` in which a projector keeps the audit store, which answers questions about the past (default none)")
	f.Bool("discard-snapshots", false, "read the whole event stream at this start (writer only)")
	f.Int("snapshot-every", dispatch.DefaultSnapshotEvery, "writer: `events` between two snapshots, which are what a start has to read at most")
	f.String("checkpoint-key", "", "projector: `file` with the keys that checkpoints are signed with, made at the first start; without one none are signed")
	f.String("new-checkpoint-key", "", "projector: the `reason` why the key is lost for good: a new one signs, and a checkpoint says so")
	f.String("chain", "", "projector: `name` of the chain, for a new key (default one by chance)")
	f.Duration("checkpoint-every", proof.DefaultEvery, "projector: longest `span` that an event stands without a checkpoint")
	f.Uint64("checkpoint-events", proof.DefaultEvents, "projector: most events that stand without a checkpoint")
	f.String("accept-truncated-at", "", "writer: go on although events are lost, when the stream ends at this `event`; it is recorded")
	f.String("accept-reason", "", "writer: `why` the loss is accepted")
	f.Duration("lease-ttl", rollout.DefaultTTL, "engine: `span` that its lease holds without renewal; another takes over within twice of it")
	return f
}

// values are settings of one origin, for koanf.
type values map[string]any

// Read gives the values.
func (v values) Read() (map[string]any, error) { return v, nil }

// ReadBytes is what koanf asks of origins that are text, which this one is not.
func (v values) ReadBytes() ([]byte, error) { return nil, errors.New("these settings are not text") }

// LoadSettings reads the settings. Help goes to the writer. It gives errors marked [ErrSettings], or [ErrHelp].
func LoadSettings(program, about string, args []string, env func(string) string, help io.Writer) (Settings, error) {
	f := flags(program)
	if err := parse(f, about, args, help); err != nil {
		return Settings{}, err
	}
	defaults, environment, given := values{}, values{}, values{}
	f.VisitAll(func(flag *pflag.Flag) {
		defaults[flag.Name] = flag.DefValue
		if v := env(variable(flag.Name)); v != "" {
			environment[flag.Name] = v
		}
		if flag.Changed {
			given[flag.Name] = flag.Value.String()
		}
	})
	path, _ := given["config"].(string)
	if path == "" {
		path, _ = environment["config"].(string)
	}
	file, err := readFile(path)
	if err != nil {
		return Settings{}, err
	}
	// Names have no parts, so any character that is in none of them serves as the delimiter.
	k := koanf.New(".")
	for _, origin := range []values{defaults, file, environment, given} {
		if err := k.Load(origin, nil); err != nil {
			return Settings{}, errors.Mark(err, ErrSettings)
		}
	}
	var s Settings
	err = k.UnmarshalWithConf("", &s, koanf.UnmarshalConf{Tag: "koanf", DecoderConfig: &mapstructure.DecoderConfig{
		Result: &s, TagName: "koanf", ErrorUnused: true, WeaklyTypedInput: true, DecodeHook: mapstructure.StringToTimeDurationHookFunc(),
	}})
	if err != nil {
		return Settings{}, errors.Mark(err, ErrSettings)
	}
	return s, s.validate()
}

func readFile(path string) (values, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.Mark(errors.Wrap(err, "setting config"), ErrSettings)
	}
	found := values{}
	if err := yaml.Unmarshal(text, &found); err != nil {
		return nil, errors.Mark(errors.Wrapf(err, "settings in %s", path), ErrSettings)
	}
	return found, nil
}

func (s Settings) validate() error {
	fail := func(format string, args ...any) error { return errors.Mark(errors.Newf(format, args...), ErrSettings) }
	switch {
	case s.Durability != "fsync" && s.Durability != "interval":
		return fail("durability is %q: it is fsync or interval", s.Durability)
	case !slices.Contains([]int{1, 3, 5}, s.Replicas):
		return fail("replicas is %d: it is 1, 3 or 5", s.Replicas)
	case s.EventStoreBytes <= 0, s.BucketBytes <= 0:
		return fail("event-store-bytes is %d and bucket-bytes is %d: both must be above zero", s.EventStoreBytes, s.BucketBytes)
	case s.SnapshotEvery <= 0:
		return fail("snapshot-every is %d: it must be above zero", s.SnapshotEvery)
	case s.CheckpointEvery <= 0, s.CheckpointEvents == 0:
		return fail("checkpoint-every is %s and checkpoint-events is %d: both must be above zero", s.CheckpointEvery, s.CheckpointEvents)
	}
	if err := proof.CheckNewKeysReason(s.NewCheckpointKey); err != nil {
		return errors.Mark(errors.Wrap(err, "new-checkpoint-key"), ErrSettings)
	}
	if s.LeaseTTL < rollout.MinTTL || s.LeaseTTL > commands.MaxLeaseTTL {
		return fail("lease-ttl is %s: it is between %s and %s", s.LeaseTTL, rollout.MinTTL, commands.MaxLeaseTTL)
	}
	if _, err := s.Accept(); err != nil {
		return err
	}
	_, err := s.level()
	return err
}

// Proofs say how checkpoints are signed.
func (s Settings) Proofs() ProofConfig {
	return ProofConfig{KeyFile: s.CheckpointKey, NewKeys: s.NewCheckpointKey, Chain: s.Chain, Every: s.CheckpointEvery, AfterEvents: s.CheckpointEvents}
}

// Accept is the loss that is accepted; nil for none. It gives errors marked [ErrSettings].
func (s Settings) Accept() (*AcceptedLoss, error) {
	return ParseAcceptedLoss(s.AcceptTruncatedAt, s.AcceptReason)
}

// ParseAcceptedLoss reads what accepts a loss: the last event that stands and the reason, or neither. It gives errors marked
// [ErrSettings].
func ParseAcceptedLoss(at, reason string) (*AcceptedLoss, error) {
	if at == "" && reason == "" {
		return nil, nil
	}
	sequence, err := strconv.ParseUint(at, 10, 64)
	switch {
	case err != nil:
		return nil, errors.Mark(errors.Newf("accept-truncated-at is %q: it is the last event that stands, as the refusal to start has named it", at), ErrSettings)
	case reason == "":
		return nil, errors.Mark(errors.New("accept-reason is empty: say why the loss is accepted; it is recorded"), ErrSettings)
	}
	return &AcceptedLoss{At: sequence, Reason: reason}, nil
}

func (s Settings) level() (slog.Level, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.LogLevel)); err != nil {
		return level, errors.Mark(errors.Newf("log-level is %q: it is debug, info, warn or error", s.LogLevel), ErrSettings)
	}
	return level, nil
}

// Streams are the limits of the streams.
func (s Settings) Streams() topology.Options {
	return topology.Options{Replicas: s.Replicas, EventStoreBytes: s.EventStoreBytes, BucketBytes: s.BucketBytes}
}

// Bus says where the bus is, and who connects.
func (s Settings) Bus(name string, env func(string) string, log *slog.Logger) natsconn.Config {
	c := natsconn.Config{Server: s.Server, Creds: s.Creds, NKey: s.NKey, Context: s.Context}.WithEnvironment(env)
	c.Name, c.Logger = name, log
	return c
}

// ConnectMirrors connects as the mirrors user, if the settings say who that is; nil otherwise. It gives the errors of natsconn.Connect.
func (s Settings) ConnectMirrors(ctx context.Context, name string, env func(string) string, log *slog.Logger) (*natsconn.Conn, error) {
	if s.MirrorsNKey == "" && s.MirrorsCreds == "" {
		return nil, nil
	}
	where := s.Bus(name, env, log)
	return natsconn.Connect(ctx, natsconn.Config{
		Server: where.Server, Context: where.Context, Creds: s.MirrorsCreds, NKey: s.MirrorsNKey, Cert: where.Cert, Key: where.Key, CA: where.CA, Name: where.Name, Logger: log,
	})
}

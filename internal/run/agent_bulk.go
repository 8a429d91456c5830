package run

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/cockroachdb/errors"

	"catenary/agent"
	"catenary/agent/artifacts"
	"catenary/agent/depot"
	"catenary/agent/logs"
	"catenary/es"
	"catenary/events"
	"catenary/internal/natsconn"
)

const (
	// cacheDir is where artifacts are cached, in an agent's state directory.
	cacheDir = "artifacts"
	// logsPatience is how long an agent that stops waits until what was said is handed in.
	logsPatience = 3 * time.Second
)

// agentArtifacts is where an agent gets artifacts, over whichever connection it has.
type agentArtifacts struct {
	*artifacts.Cache
	depot atomic.Pointer[depot.Client]
	// names holds the digests of the packages that were asked for.
	names sync.Map
}

// newAgentArtifacts makes the cache of an agent, in front of the places that the settings name and the depot. It gives errors marked
// [ErrSettings], and those of the file system.
func newAgentArtifacts(s AgentSettings, log *slog.Logger) (*agentArtifacts, error) {
	a := &agentArtifacts{}
	var from artifacts.Places
	for place := range strings.FieldsSeq(s.Artifacts) {
		if filepath.IsAbs(place) {
			place = "file:" + place
		}
		source, err := artifacts.ParsePlace(place, http.DefaultClient)
		if err != nil {
			return nil, errors.Mark(errors.Wrap(err, "setting artifacts"), ErrSettings)
		}
		from = append(from, source)
	}
	memory := agent.Dir(s.State)
	var err error
	a.Cache, err = artifacts.OpenCache(artifacts.CacheConfig{
		Dir: filepath.Join(s.State, cacheDir), Bytes: s.CacheBytes, Places: append(from, depotLine{a}), Now: agentClock(), Logger: log,
		Applied: func() ([]string, error) { return a.applied(memory) },
	})
	return a, err
}

// over says which connection there is.
func (a *agentArtifacts) over(conn *natsconn.Conn) {
	a.depot.Store(depot.NewClient(conn.Conn, conn.WithDenial))
}

func errNoConnection() error {
	return errors.Mark(errors.New("there is no connection yet"), artifacts.ErrUnavailable)
}

// depotLine is the depot over the connection that there is.
type depotLine struct{ a *agentArtifacts }

// Open implements [artifacts.Source].
func (l depotLine) Open(ctx context.Context, digest string, from int64) (io.ReadCloser, error) {
	d := l.a.depot.Load()
	if d == nil {
		return nil, errNoConnection()
	}
	return d.Open(ctx, digest, from)
}

// namePatience is how long it is asked what a package is, while nobody answers.
const namePatience = 30 * time.Second

// Named implements [artifacts.Names]: the depot knows, and what it says holds for ever.
func (a *agentArtifacts) Named(ctx context.Context, name, version string) (string, error) {
	p := events.Package{Name: name, Version: version}
	if digest, known := a.names.Load(p); known {
		return digest.(string), nil
	}
	digest, err := backoff.Retry(ctx, func() (string, error) {
		d := a.depot.Load()
		if d == nil {
			return "", errNoConnection()
		}
		digest, err := d.Named(ctx, name, version)
		if err != nil && !errors.IsAny(err, artifacts.ErrUnavailable, es.ErrUnavailable) {
			err = backoff.Permanent(err)
		}
		return digest, err
	}, backoff.WithBackOff(backoff.NewExponentialBackOff()), backoff.WithMaxElapsedTime(namePatience))
	if err == nil {
		a.names.Store(p, digest)
	}
	return digest, err
}

// applied are the artifacts that the node was brought to, and is told to be brought to.
func (a *agentArtifacts) applied(memory agent.Memory) ([]string, error) {
	state, _, err := memory.Load()
	if err != nil {
		return nil, err
	}
	var digests []string
	add := func(r events.Reference) {
		digest := r.Artifact
		if r.Package != nil {
			// One that was not asked for since the start is not in use by this program.
			if known, ok := a.names.Load(*r.Package); ok {
				digest = known.(string)
			}
		}
		if digest != "" {
			digests = append(digests, digest)
		}
	}
	for _, m := range state.Modules {
		if m.Applied != nil {
			add(m.Applied.Instruction.Reference)
		}
		if m.Told.Stands {
			add(m.Told.Reference)
		}
	}
	return digests, nil
}

// agentLogs keeps what is said of an agent's deeds.
type agentLogs struct{ keeper *logs.Keeper }

func newAgentLogs(conn *natsconn.Conn, log *slog.Logger) agentLogs {
	return agentLogs{logs.NewKeeper(logs.NewClient(conn.Conn, conn.WithDenial).Put, newID, log)}
}

// Open implements [agent.Logs].
func (l agentLogs) Open(s agent.Span) io.WriteCloser {
	return l.keeper.Open(logs.Span{Node: s.Node, Module: s.Module, Rollout: s.Rollout, Source: s.Source, Attempt: s.Attempt, Deed: string(s.Deed)})
}

// end waits for a while until what was said is handed in. What is not then is lost, and that is logged.
func (l agentLogs) end(log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), logsPatience)
	defer cancel()
	if err := l.keeper.Close(ctx); err != nil {
		log.Warn("not all that was said is kept", "error", err)
	}
}

package run

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/agent"
	"catenary/agent/artifacts"
	"catenary/agent/depot"
	"catenary/agent/logs"
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
}

// newAgentArtifacts makes the cache of an agent, in front of the places that the settings name and the depot. It gives errors marked
// [ErrSettings], and those of the file system.
func newAgentArtifacts(s AgentSettings, log *slog.Logger) (*agentArtifacts, error) {
	a := &agentArtifacts{}
	var from artifacts.First
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
		Dir: filepath.Join(s.State, cacheDir), Bytes: s.CacheBytes, Source: append(from, depotLine{a}), Now: time.Now, Logger: log,
		Applied: func() ([]string, error) { return appliedArtifacts(memory) },
	})
	return a, err
}

// over says which connection there is.
func (a *agentArtifacts) over(conn *natsconn.Conn) {
	a.depot.Store(depot.NewClient(conn.Conn, conn.WithDenial))
}

// depotLine is the depot over the connection that there is.
type depotLine struct{ a *agentArtifacts }

// Open implements [artifacts.Source].
func (l depotLine) Open(ctx context.Context, digest string, from int64) (io.ReadCloser, error) {
	d := l.a.depot.Load()
	if d == nil {
		return nil, errors.Mark(errors.New("there is no connection yet"), artifacts.ErrUnavailable)
	}
	return d.Open(ctx, digest, from)
}

// appliedArtifacts are those that the node was brought to, and is told to be brought to.
func appliedArtifacts(memory agent.Memory) ([]string, error) {
	state, _, err := memory.Load()
	if err != nil {
		return nil, err
	}
	var digests []string
	for _, m := range state.Modules {
		if m.Applied != nil && m.Applied.Instruction.Artifact != "" {
			digests = append(digests, m.Applied.Instruction.Artifact)
		}
		if m.Told.Stands && m.Told.Artifact != "" {
			digests = append(digests, m.Told.Artifact)
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

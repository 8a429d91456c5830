package audit

import (
	"strings"
	"testing"

	"github.com/cockroachdb/errors"
	"github.com/nats-io/nats.go"

	"catenary/es/project"
	"catenary/internal/topology"
)

// TestRebuildThatCanNotBegin asks for what the projector does not do.
func TestRebuildThatCanNotBegin(t *testing.T) {
	t.Parallel()
	var asked []string
	a := serve(t, func(c *Config) {
		c.Rebuild = func(view string, o project.RebuildOptions) (*project.Work, error) {
			asked = append(asked, view)
			switch {
			case view != "chain-nodes":
				return nil, errors.Mark(errors.Newf("no view %q", view), project.ErrNoView)
			case o.DryRun:
				return nil, errors.Wrap(project.ErrWorking, "it is building")
			default:
				return nil, errors.New("out of order")
			}
		}
	})
	for _, c := range []struct {
		question RebuildQuestion
		want     error
		says     string
	}{
		{RebuildQuestion{View: "x"}, ErrInvalid, `no view "x"`},
		{RebuildQuestion{View: "chain-nodes", RebuildOptions: project.RebuildOptions{DryRun: true}}, ErrBusy, "it is building"},
		{RebuildQuestion{View: "chain-nodes"}, ErrFailed, "out of order"},
	} {
		if _, err := a.client.Rebuild(t.Context(), c.question, nil); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: error %v, want %v", c.question, err, c.want)
		}
	}
	m, err := a.nc.RequestMsg(&nats.Msg{Subject: topology.ProjectorSubject(QuestionRebuild), Data: []byte(`{"veiw":"chain-nodes"}`)}, waitLimit)
	if err != nil || m.Header.Get("Nats-Service-Error-Code") != codeInvalid || len(asked) != 3 {
		t.Errorf("a misspelt question: %v, %v, and %v were asked for", m, err, asked)
	}
}

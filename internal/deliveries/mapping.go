package deliveries

import (
	"strconv"
	"strings"

	"github.com/cockroachdb/errors"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
)

// ErrUnclear marks a row that is well formed but does not say whether deployments are stopped. It changes nothing.
var ErrUnclear = errors.New("unclear value")

// Command is what the row asks of the chain. It gives errors marked [ErrUnclear], and refusals for names that can't be
// used.
//
// Whatever it returns is hashed under the row's id: a change of a single field would make every import that was done
// before a different one.
func (r Row) Command() (es.Payload, error) {
	switch r.Kind {
	case KindDeploy, KindAdd:
		return commands.Assign{
			Node: r.Environment, Module: r.App, Reference: packageOf(r.App, *r.New), Reason: r.reason(),
		}, nil
	case KindRemove:
		return commands.Unassign{Node: r.Environment, Module: r.App, Reason: r.reason()}, nil
	}
	stops, err := r.stops()
	if err != nil {
		return nil, err
	}
	if stops {
		return commands.DeclareFreeze{
			Name:     r.freeze(),
			Selector: events.Selector{Modules: []string{r.App}, Nodes: []string{r.Environment}},
			Reason:   r.reason(),
		}, nil
	}
	return commands.LiftFreeze{Name: r.freeze(), Reason: r.reason()}, nil
}

func packageOf(app, version string) events.Reference {
	return events.Reference{Package: &events.Package{Name: app, Version: version}}
}

func (r Row) reason() string {
	if r.Commit == "" {
		return string(r.Kind)
	}
	return string(r.Kind) + " by commit " + r.Commit
}

// stops says whether the switch stops deployments from then on. A switch that is not set stops nothing.
func (r Row) stops() (bool, error) {
	if r.New == nil {
		return false, nil
	}
	on, err := isTrue(*r.New)
	if err != nil {
		return false, errors.Wrapf(err, "%s of %s in %s", r.Policy, r.App, r.Environment)
	}
	if r.Policy == PolicyManual {
		return on, nil
	}
	return !on, nil
}

// isTrue reads a free text by its first word, since people write "True" and remarks after it.
func isTrue(s string) (bool, error) {
	word := strings.TrimSpace(s)
	if end := strings.IndexFunc(word, func(c rune) bool { return (c|0x20) < 'a' || (c|0x20) > 'z' }); end >= 0 {
		word = word[:end]
	}
	switch {
	case strings.EqualFold(word, "true"):
		return true, nil
	case strings.EqualFold(word, "false"):
		return false, nil
	}
	return false, errors.Mark(errors.Newf("value %q begins with neither true nor false, so it changes nothing", s), ErrUnclear)
}

// freeze is the name of the freeze that holds while the switch stops deployments, such as
// "promote_deployment integration whitehall". Names in which the parts could not be told apart are quoted.
func (r Row) freeze() string {
	return string(r.Policy) + " " + quoted(r.Environment) + " " + quoted(r.App)
}

func quoted(name string) string {
	if strings.ContainsAny(name, ` "`) {
		return strconv.Quote(name)
	}
	return name
}

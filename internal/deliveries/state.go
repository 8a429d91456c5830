package deliveries

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/internal/ndjson"
)

// MaxStateBytes bounds a state file, which is read as a whole: a hundred thousand apps fit.
const MaxStateBytes = 16 << 20

// State is what ran where before the first row.
type State struct {
	// At is the time it is known for.
	At    time.Time
	Pairs []Pair
}

// Pair is one app in one environment.
type Pair struct{ Environment, App, Version string }

// ReadState reads a state file: a JSON object of environments, each an object of apps with their version. The pairs come
// sorted.
func ReadState(r io.Reader, at time.Time) (State, error) {
	body, err := io.ReadAll(io.LimitReader(r, MaxStateBytes+1))
	if err != nil {
		return State{}, errors.Wrap(err, "read the state file")
	}
	if len(body) > MaxStateBytes {
		return State{}, errors.Newf("the state file is over %d bytes, which is the limit: split it", MaxStateBytes)
	}
	s := State{At: at.UTC()}
	err = ndjson.ScanObject(body, func(name, apps []byte) error {
		environment, err := ndjson.Text(name)
		if err != nil {
			return err
		}
		if apps[0] != '{' {
			return errors.Newf("environment %q: %s is no object of apps and versions", environment, ndjson.Abridge(apps))
		}
		return ndjson.ScanObject(apps, func(name, value []byte) error {
			app, err := ndjson.Text(name)
			if err != nil {
				return err
			}
			version, err := ndjson.Text(value)
			if err == nil && version == "" {
				err = errors.New("the version is empty")
			}
			if err != nil {
				return errors.Wrapf(err, "app %q in environment %q", app, environment)
			}
			s.Pairs = append(s.Pairs, Pair{Environment: environment, App: app, Version: version})
			return nil
		})
	})
	if err != nil {
		return State{}, errors.Wrap(err, "state file")
	}
	slices.SortFunc(s.Pairs, Pair.compare)
	for i := 1; i < len(s.Pairs); i++ {
		if a, b := s.Pairs[i-1], s.Pairs[i]; a.Environment == b.Environment && a.App == b.App {
			return State{}, errors.Newf("state file: app %q in environment %q stands there twice", a.App, a.Environment)
		}
	}
	return s, nil
}

func (p Pair) compare(o Pair) int {
	return cmp.Or(strings.Compare(p.Environment, o.Environment), strings.Compare(p.App, o.App))
}

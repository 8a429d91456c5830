package deliveries

import (
	"time"

	"github.com/cockroachdb/errors"

	"catenary/internal/ndjson"
)

// Kind is what a row says happened.
type Kind string

// The kinds of rows.
const (
	// KindDeploy says that an app runs at another version.
	KindDeploy Kind = "deploy"
	// KindAdd says that an app runs where it did not run before.
	KindAdd Kind = "add"
	// KindRemove says that an app does not run there any more.
	KindRemove Kind = "remove"
	// KindPolicy says that a switch that lets or stops deployments has changed.
	KindPolicy Kind = "policy"
)

// Policy is a switch that lets or stops the deployments of an app to an environment.
type Policy string

// The switches. While one stops deployments, a freeze of its name holds.
const (
	// PolicyPromote lets deployments be promoted to the next environment; false stops that.
	PolicyPromote Policy = "promote_deployment"
	// PolicyAutomatic lets deployments happen by themselves; false stops that.
	PolicyAutomatic Policy = "automatic_deploys_enabled"
	// PolicyManual leaves deployments to people; true stops the others.
	PolicyManual Policy = "manual_deployment"
)

// Row is one line of a delivery history.
type Row struct {
	// At is when it happened.
	At time.Time
	// Environment is where, App what.
	Environment, App string
	Kind             Kind
	// Policy is the switch, for rows of kind policy.
	Policy Policy
	// Old and New are the version, or the switch's value, before and after. Nil means that there was none.
	Old, New *string
	// By is who did it, Commit the change that led to it. Both may be empty.
	By, Commit string
}

// ParseRow reads a row. Fields it does not know are left alone. Its errors say which field is wrong and how.
func ParseRow(line []byte) (Row, error) {
	var r Row
	var seen fieldSet
	var at string
	err := ndjson.ScanObject(line, func(name, value []byte) error {
		field, known := rowFields[string(name)]
		if !known {
			return nil
		}
		if !seen.add(field) {
			return errors.Newf("field %s stands there twice", name)
		}
		null := string(value) == "null"
		if null && field.optional() {
			return nil
		}
		s, err := ndjson.Text(value)
		if err != nil {
			return errors.Wrapf(err, "field %s", name)
		}
		switch field {
		case fieldAt:
			at = s
		case fieldEnvironment:
			r.Environment = s
		case fieldApp:
			r.App = s
		case fieldKind:
			r.Kind = Kind(s)
		case fieldPolicy:
			r.Policy = Policy(s)
		case fieldOld:
			r.Old = &s
		case fieldNew:
			r.New = &s
		case fieldBy:
			r.By = s
		case fieldCommit:
			r.Commit = s
		}
		return nil
	})
	if err != nil {
		return Row{}, err
	}
	if r.At, err = parseTime(at); err != nil {
		return Row{}, errors.Wrap(err, `field "t"`)
	}
	return r, r.check()
}

// field is one of the fields a row may have.
type field uint

const (
	fieldAt field = iota
	fieldEnvironment
	fieldApp
	fieldKind
	fieldPolicy
	fieldOld
	fieldNew
	fieldBy
	fieldCommit
)

// rowFields are the fields by their name as it stands in JSON; it is never changed.
var rowFields = map[string]field{
	`"t"`: fieldAt, `"env"`: fieldEnvironment, `"app"`: fieldApp, `"kind"`: fieldKind, `"key"`: fieldPolicy,
	`"old"`: fieldOld, `"new"`: fieldNew, `"by"`: fieldBy, `"commit"`: fieldCommit,
}

// optional says whether null means the same as leaving the field out.
func (f field) optional() bool { return f >= fieldPolicy }

type fieldSet uint

func (s *fieldSet) add(f field) bool {
	fresh := *s&(1<<f) == 0
	*s |= 1 << f
	return fresh
}

func parseTime(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, errors.New("is missing: give the time in RFC 3339, such as 2026-05-01T07:34:45Z")
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, errors.Newf("%q is no time in RFC 3339, such as 2026-05-01T07:34:45Z", s)
	}
	if t.Before(time.Unix(0, 0)) {
		// The zero time among them would mean that none is given: the row would be recorded as of now.
		return time.Time{}, errors.Newf("%q lies before 1970, where the chain's time begins", s)
	}
	return t.UTC(), nil
}

func (r Row) check() error {
	switch {
	case r.Environment == "":
		return errors.New(`field "env" is missing or empty: say where it happened`)
	case r.App == "":
		return errors.New(`field "app" is missing or empty: say what was delivered`)
	}
	switch r.Kind {
	case KindDeploy, KindAdd:
		if r.New == nil || *r.New == "" {
			return errors.Newf(`field "new" is missing or empty: a row of kind %s says which version runs from then on`, r.Kind)
		}
	case KindRemove:
		if r.New != nil {
			return errors.Newf(`field "new" is %q: a row of kind remove leaves nothing running, so it must be null`, *r.New)
		}
	case KindPolicy:
		switch r.Policy {
		case PolicyPromote, PolicyAutomatic, PolicyManual:
		default:
			return errors.Newf(`field "key" is %q: a row of kind policy names one of %s, %s, %s`, r.Policy, PolicyPromote, PolicyAutomatic, PolicyManual)
		}
	case "":
		return errors.New(`field "kind" is missing or empty: it is one of deploy, add, remove, policy`)
	default:
		return errors.Newf(`field "kind" is %q: it is one of deploy, add, remove, policy`, r.Kind)
	}
	return nil
}

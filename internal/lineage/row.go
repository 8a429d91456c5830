package lineage

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/cockroachdb/errors"

	"catenary/internal/ndjson"
)

// root is what rows call the module at a repository's root.
const root = "."

// Commit is a row about a commit: when it came onto the branch, who wrote it, and the places of the modules it touches.
type Commit struct {
	At      time.Time
	Commit  string
	By      string
	Modules []string
}

// Release is a row about a version of a module: when it was released, and at which commit.
type Release struct {
	At      time.Time
	Module  string
	Version string
	Commit  string
}

// ParseCommit reads a row about a commit. Fields it does not know are left alone. Its errors say which field is wrong and how.
func ParseCommit(line []byte) (Commit, error) {
	var c Commit
	err := fields(line, map[string]func([]byte) error{
		"t": c.readTime, "commit": textInto(&c.Commit), "by": textInto(&c.By), "modules": c.readModules,
	})
	switch {
	case err != nil:
	case c.At.IsZero():
		err = errMissing("t")
	case c.Commit == "":
		err = errMissing("commit")
	}
	return c, err
}

func (c *Commit) readTime(value []byte) (err error) {
	c.At, err = seconds(value)
	return err
}

func (c *Commit) readModules(value []byte) error {
	if err := json.Unmarshal(value, &c.Modules); err != nil {
		return errors.Newf("%s is no list of texts", ndjson.Abridge(value))
	}
	return nil
}

// ParseRelease reads a row about a version. Fields it does not know are left alone. Its errors say which field is wrong and
// how.
func ParseRelease(line []byte) (Release, error) {
	var r Release
	err := fields(line, map[string]func([]byte) error{
		"t": r.readTime, "commit": textInto(&r.Commit), "module": textInto(&r.Module), "version": textInto(&r.Version),
	})
	switch {
	case err != nil:
	case r.At.IsZero():
		err = errMissing("t")
	case r.Module == "":
		err = errMissing("module")
	case r.Version == "":
		err = errMissing("version")
	case r.Commit == "":
		err = errMissing("commit")
	}
	return r, err
}

func (r *Release) readTime(value []byte) (err error) {
	r.At, err = seconds(value)
	return err
}

func errMissing(field string) error { return errors.Newf("field %q is missing or empty", field) }

// fields hands the value of each known field to its reader.
func fields(line []byte, readers map[string]func([]byte) error) error {
	seen := map[string]bool{}
	return ndjson.ScanObject(line, func(name, value []byte) error {
		field, err := ndjson.Text(name)
		if err != nil {
			return err
		}
		read, known := readers[field]
		if !known {
			return nil
		}
		if seen[field] {
			return errors.Newf("field %q stands there twice", field)
		}
		seen[field] = true
		return errors.Wrapf(read(value), "field %q", field)
	})
}

func textInto(field *string) func([]byte) error {
	return func(value []byte) (err error) {
		*field, err = ndjson.Text(value)
		return err
	}
}

// lastSecond is the end of the year 9999, the last that RFC 3339 can write.
const lastSecond = 253402300799

// seconds reads a time as whole seconds since 1970.
func seconds(value []byte) (time.Time, error) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n <= 0 || n > lastSecond {
		return time.Time{}, errors.Newf("%s is no time in whole seconds since 1970", ndjson.Abridge(value))
	}
	return time.Unix(n, 0).UTC(), nil
}

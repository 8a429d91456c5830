package events

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// PlanDigest stands for the steps of a plan, one after another. The zero value stands for none.
type PlanDigest [sha256.Size]byte

// With gives the digest of the steps so far and these. It depends on their order, and not on how they are divided into parts. It
// gives an error for steps that have no stored form, which none have.
func (d PlanDigest) With(steps ...PlannedStep) (PlanDigest, error) {
	for _, s := range steps {
		body, err := es.Msgpack{}.Marshal(s)
		if err != nil {
			return d, errors.Wrapf(err, "digest of the step %s", s.StepName)
		}
		d = sha256.Sum256(append(d[:], body...))
	}
	return d, nil
}

// String gives it in hex.
func (d PlanDigest) String() string { return hex.EncodeToString(d[:]) }

package natskv

import (
	"strings"

	"github.com/cockroachdb/errors"

	"catenary/es"
)

// checkKey says whether a bucket takes a key, by the rules of the nats tool, so that it can read every key. The server
// closes a connection for good on a subject over its limit, so the length is checked before anything is sent.
func (s *source) checkKey(key string) error {
	switch {
	case key == "", key[0] == '.', key[len(key)-1] == '.', strings.Contains(key, ".."):
		return errors.Mark(errors.Newf("bucket %s: key %q is empty or has an empty token", s.bucket, key), es.ErrName)
	case len(s.prefix)+len(key) > es.MaxSubjectBytes:
		return errors.Mark(errors.Newf("bucket %s: key %.40s… has %d bytes, the limit is %d; use shorter names", s.bucket, key, len(key), es.MaxSubjectBytes-len(s.prefix)), es.ErrTooLarge)
	}
	for i := range len(key) {
		if c := key[i]; !inKey(c) {
			return errors.Mark(errors.Newf("bucket %s: key %q has the byte %q at %d: escape names with es.Key", s.bucket, key, c, i), es.ErrName)
		}
	}
	return nil
}

func inKey(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-/_=.", c) >= 0
}

// checkFilter says whether a filter is made of key tokens, of which each may be a wildcard: n1.web, n1.*, *.web. A last
// token > stands for one or more.
func (s *source) checkFilter(filter string) error {
	tokens := strings.Split(filter, ".")
	for i, token := range tokens {
		if token == "*" || token == ">" && i == len(tokens)-1 {
			continue
		}
		if err := s.checkKey(token); err != nil {
			return errors.Wrapf(err, "filter %q", filter)
		}
	}
	if len(s.prefix)+len(filter) > es.MaxSubjectBytes {
		return errors.Mark(errors.Newf("bucket %s: the filter %.40s… has %d bytes, the limit is %d", s.bucket, filter, len(filter), es.MaxSubjectBytes-len(s.prefix)), es.ErrTooLarge)
	}
	return nil
}

// subjects gives the subjects of filters; none means every key.
func (s *source) subjects(filters []string) ([]string, error) {
	out := make([]string, len(filters))
	for i, filter := range filters {
		if err := s.checkFilter(filter); err != nil {
			return nil, err
		}
		out[i] = s.prefix + filter
	}
	return out, nil
}

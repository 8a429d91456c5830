package natsstore

import "time"

// AckTimeout is how long an append waits for its answer.
func (s *Store) AckTimeout() time.Duration { return s.config.AckTimeout }

package dispatch

import "github.com/nats-io/nats.go/jetstream"

func refusedConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{Name: "REFUSED", Subjects: []string{"refused.>"}, Storage: jetstream.FileStorage, Discard: jetstream.DiscardOld, MaxBytes: 1 << 20, Replicas: 1}
}

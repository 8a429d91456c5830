package estest_test

import (
	"log/slog"
	"strings"
	"testing"

	"catenary/es/estest"
)

func TestLog(t *testing.T) {
	t.Parallel()
	var log estest.Log
	grown := log.Grown()
	said := make(chan struct{})
	go func() {
		defer close(said)
		log.Logger(slog.LevelWarn).Info("too quiet")
		log.Logger(slog.LevelWarn).Warn("first")
		<-grown
		log.Logger(slog.LevelWarn).Warn("second")
	}()
	log.Await(t, func() bool { return strings.Contains(log.String(), "second") })
	<-said
	if text := log.String(); !strings.Contains(text, "first") || strings.Contains(text, "too quiet") {
		t.Errorf("it has %q", text)
	}
}

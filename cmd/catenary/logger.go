package main

import (
	"context"
	"log/slog"
	"time"

	"catenary/internal/run"
)

// logger writes the log of a process to standard error, for people.
func (a *app) logger(level slog.Level) *slog.Logger {
	return run.Logger(a.Stderr, level, time.TimeOnly, a.colours(a.Stderr))
}

// quieter passes on only what is at least as grave as a level.
type quieter struct {
	slog.Handler
	level slog.Level
}

// Enabled says whether a record of the level is passed on.
func (q quieter) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= q.level && q.Handler.Enabled(ctx, level)
}

// WithAttrs keeps the level.
func (q quieter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quieter{Handler: q.Handler.WithAttrs(attrs), level: q.level}
}

// WithGroup keeps the level.
func (q quieter) WithGroup(name string) slog.Handler {
	return quieter{Handler: q.Handler.WithGroup(name), level: q.level}
}

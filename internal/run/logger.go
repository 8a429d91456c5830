package run

import (
	"io"
	"log/slog"

	"github.com/lmittmann/tint"
)

// Logger gives the log of a process, for people: one line a record, errors by their message alone. Where an error was made
// says nothing to whoever runs the program, and takes up a screen.
func Logger(w io.Writer, level slog.Level, timeFormat string, colours bool) *slog.Logger {
	return slog.New(tint.NewTextHandler(w, &tint.Options{
		Level: level, TimeFormat: timeFormat, NoColor: !colours,
		ReplaceAttr: func(_ []string, attr slog.Attr) slog.Attr {
			if err, ok := attr.Value.Any().(error); ok && err != nil {
				attr.Value = slog.StringValue(err.Error())
			}
			return attr
		},
	}))
}

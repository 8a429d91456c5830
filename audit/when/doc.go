// Package when reads the times that people write: 2026-08-01, "yesterday 16:00", "2h ago".
//
// It owns the notation, what each of its forms means, and how a wrong one is explained. It leaves to its callers which
// zone a person lives in and what is asked about the moment.
//
// # The notation
//
//   - RFC 3339: 2026-08-01T16:00:00Z, also with a space for the T, and without the seconds.
//   - A day, and a time of day: 2026-08-01, yesterday, "last tuesday 16:00", "3 days ago 9:30". A day alone means its first
//     moment. Today and yesterday are days of the zone. A weekday is the latest one that is not after now, today
//     included; with last it is before today.
//   - A time of day alone, 16:00, 4pm or noon: the latest one that is not after now.
//   - A span back from now: "2h ago", 90m, "1 hour 30 minutes ago", 7d. A day is 24 hours, a week seven days.
//   - Any day or time of day may be followed by a zone: UTC, +02:00, Europe/Berlin. Otherwise it is the zone of the caller.
//
// # Where clocks are set
//
// A time of day that clocks skip, or show twice, is an error that names the moments on both sides: nobody can know which
// one was meant, and a wrong guess would answer for another hour. A day alone is always clear: it begins with its first
// moment, whatever the clocks show then.
//
// # Invariants
//
//   - The result depends on the arguments alone; the clock is one of them.
//   - A result lies between 1970 and 9999 and is in UTC, so that it can be written in RFC 3339 and is never the zero time.
//   - Every error says what was not understood and shows how a time is written.
package when

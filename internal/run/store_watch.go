package run

import (
	"context"
	"slices"
	"strings"
	"time"

	"catenary/internal/guard"
	"catenary/internal/health"
	"catenary/internal/room"
	"catenary/internal/telemetry"
)

// lookAtRoom begins to look at how full the store is, whenever somebody asks; what is given ends that.
func (m Monitor) lookAtRoom(watch *room.Watch) (forget func()) {
	unlook := m.Health.Look(func(context.Context) []health.Check {
		return []health.Check{{Name: health.CheckRoom, Finding: judgeRoom(watch.State(), time.Now())}}
	})
	unmeasure := m.Metrics.Look(func(_ context.Context, set telemetry.Set) {
		for _, p := range watch.State().Places {
			set(telemetry.StoreBytes, float64(p.Used), string(p.Kind), p.Name)
			set(telemetry.StoreLimit, float64(p.Limit), string(p.Kind), p.Name)
		}
	})
	return func() {
		unlook()
		unmeasure()
	}
}

// lookAtGuard begins to look at whether the streams are as they must be, whenever somebody asks; what is given ends that.
func (m Monitor) lookAtGuard(watch *guard.Watch) (forget func()) {
	return m.Health.Look(func(context.Context) []health.Check {
		return []health.Check{{Name: "guard", Finding: judgeGuard(watch.State())}}
	})
}

// judgeGuard says whether the streams are as they must be.
func judgeGuard(s guard.State) health.Finding {
	open := s.Open()
	switch {
	case len(open) > 0:
		reasons, next := make([]string, len(open)), make([]string, len(open))
		for i, a := range open {
			reasons[i], next[i] = a.String(), a.Advice()
		}
		slices.Sort(next)
		return health.Finding{
			State: health.Fail, Code: health.Damaged, Reason: strings.Join(reasons, "; "), Next: strings.Join(slices.Compact(next), "; "), Since: open[0].Since,
		}
	case len(s.Alarms) > 0:
		undone := s.Alarms[0]
		return health.Finding{State: health.Warn, Code: health.Damaged, Reason: undone.String(), Next: undone.Advice(), Since: undone.Since}
	case s.Problem != "":
		return health.Finding{
			State: health.Warn, Code: health.Away, Reason: "the streams can't be looked at: " + s.Problem, Next: "see whether the server answers; what was seen last counts until then",
		}
	}
	if s.At.IsZero() {
		return health.Finding{State: health.OK, Reason: "the streams are not looked at yet"}
	}
	return health.Finding{State: health.OK, Reason: "all streams are as they must be"}
}

// awayAfter is for how long the store may not answer until whoever needs it is not ready: more than one look of the room's watch.
const awayAfter = 15 * time.Second

// judgeRoom says how full the store is, by its fullest place, and whether it answers.
func judgeRoom(s room.State, now time.Time) health.Finding {
	f := health.Finding{State: health.OK}
	if len(s.Places) > 0 {
		fullest := s.Places[0]
		f.Measures = []health.Measure{{Name: health.Used, Value: float64(fullest.Used), Unit: "bytes", Limit: float64(fullest.Limit)}}
		f.Reason = fullest.String()
	}
	switch narrow := s.Not(); {
	case s.Level == room.Full:
		f.State, f.Code, f.Next = health.Fail, health.Full, narrow[0].Advice()
	case s.Level == room.Scarce:
		f.State, f.Code, f.Next = health.Warn, health.Scarce, narrow[0].Advice()
	case s.Problem != "":
		f.State, f.Code, f.Reason, f.Next = health.Warn, health.Away, "it can't be looked at: "+s.Problem, "see whether the server answers; what was seen last counts until then"
		if !s.At.IsZero() && now.Sub(s.At) > awayAfter {
			f.State, f.Since = health.Fail, s.At
		}
	}
	return f
}

package diagnosis

import (
	"strings"

	"catenary/agent/desk"
	"catenary/internal/health"
)

// measure gathers the figures. Of what several processes tell, the worst counts: what each of them tells is true of itself.
func (d *Diagnosis) measure(e Evidence) {
	m := &d.Measures
	m.Event = e.Tail
	for _, r := range e.Reports {
		parked, counted := 0, false
		for _, c := range r.Checks {
			for _, figure := range c.Measures {
				switch figure.Name {
				case health.BehindEvents:
					m.Behind = highest(m.Behind, uint64(figure.Value))
				case health.Lag:
					m.LagSeconds = highest(m.LagSeconds, figure.Value)
				case health.ParkedCount:
					if strings.HasPrefix(c.Name, health.CheckView) {
						parked, counted = parked+int(figure.Value), true
					}
				case health.Used:
					if figure.Limit > 0 {
						m.UsedShare = highest(m.UsedShare, figure.Value/figure.Limit)
					}
				case health.Pending:
					m.Pending = highest(m.Pending, int(figure.Value))
				case health.Unsigned:
					m.Unsigned = highest(m.Unsigned, uint64(figure.Value))
				}
			}
		}
		if counted {
			m.Parked = highest(m.Parked, parked)
		}
	}
	if len(e.having(health.CheckProjector)) == 0 {
		if behind, ok := e.behindByCopies(); ok {
			m.Behind = highest(m.Behind, behind)
		}
	}
	if e.NodesError != nil {
		return
	}
	off := 0
	for _, n := range e.Nodes {
		if n.Retired || n.State == desk.External {
			continue
		}
		m.Agents++
		if n.State == desk.Off {
			off++
		}
	}
	m.Off = &off
}

// highest gives the higher of what is known and what was found.
func highest[T uint64 | int | float64](known *T, found T) *T {
	if known != nil && *known >= found {
		return known
	}
	return &found
}

package walk

import (
	"time"

	"catenary/es"
	"catenary/events"
)

// Waits before a command that was refused is asked again, unless the refusal says when.
const (
	firstBackoff = time.Second
	lastBackoff  = 15 * time.Second
)

// ask makes an action, and counts it as under way.
func (s *State) ask(r *rollout, payload es.Payload) Action {
	s.actions++
	s.inFlight++
	a := Action{Payload: payload, number: s.actions}
	if r != nil {
		a.Rollout = r.id
	}
	return a
}

// askStep asks for the begin or the end of a step. A begin takes its place among those that are under way at once.
func (s *State) askStep(r *rollout, st *step, payload es.Payload, begins bool) Action {
	a := s.ask(r, payload)
	a.Step = st.name
	st.asked = asked{number: a.number, begins: begins}
	r.asking++
	if begins {
		st.tier.asking++
		s.take(st.tier, 1)
	}
	return a
}

// free takes a step's command as answered, and gives back what a begin has taken. Who waits for that is looked at again: another rollout's step
// at the same place, and whoever waits for a semaphore.
func (s *State) free(r *rollout, st *step) {
	if st.asked.number == 0 {
		return
	}
	if st.asked.begins {
		st.tier.asking--
		s.take(st.tier, -1)
		for _, o := range st.place.steps {
			o.rollout.dirty = true
		}
		if len(st.tier.semaphores) > 0 && st.phase != pending {
			s.touchAll()
		}
	}
	r.asking--
	s.answered(&st.asked)
}

// answered takes a command as answered.
func (s *State) answered(a *asked) {
	if a.number != 0 {
		*a = asked{}
		s.inFlight--
	}
}

// Answered says what came of an action. What was accepted is under way until its events have come; what was refused, or came to no answer
// at all, is asked again later, if it is due then.
func (s *State) Answered(a Action, answer es.Answer, err error, now time.Time) {
	r, walked := s.rollouts[a.Rollout]
	switch {
	case a.Rollout == "":
		if m, ok := s.merges[a.Payload.Ref().Key]; ok && s.over(a, m.asked, &m.hindrance, answer, err, now) {
			s.answered(&m.asked)
		}
	case !walked:
	case a.Step == (events.StepName{}):
		if s.over(a, r.asked, &r.hindrance, answer, err, now) {
			s.answered(&r.asked)
			r.dirty = true
		}
	default:
		if st, ok := r.steps[a.Step]; ok && s.over(a, st.asked, &st.hindrance, answer, err, now) {
			s.free(r, st)
			r.back(st)
			r.dirty = true
		}
	}
}

// over takes an answer in, and says whether the command is under way no more.
func (s *State) over(a Action, as asked, h *hindrance, answer es.Answer, err error, now time.Time) bool {
	if as.number != a.number {
		return false // its events have come already
	}
	if err == nil && (answer.Status == es.StatusAccepted || answer.Status == es.StatusUnchanged) {
		*h = hindrance{}
		return answer.Status == es.StatusUnchanged || answer.Sequence <= s.position
	}
	h.times++
	wait := min(lastBackoff, firstBackoff<<min(h.times-1, 4))
	h.code, h.message = string(answer.Status), "no more than that"
	switch {
	case err != nil:
		h.code, h.message = CodeNoAnswer, err.Error()
	case answer.Error != nil:
		h.code, h.message = answer.Error.Code, answer.Error.Message
		if after := time.Duration(answer.Error.RetryAfterMillis) * time.Millisecond; after > 0 {
			wait = min(wait, after)
		}
	}
	h.until = now.Add(wait).UnixNano()
	return true
}

// CodeNoAnswer is the reason of what waits because the writer has not answered.
const CodeNoAnswer = "no-answer"

// holds says whether a hindrance keeps a command from being asked.
func (h *hindrance) holds(now time.Time) bool { return h.until > now.UnixNano() }

func (h *hindrance) ends() time.Time { return time.Unix(0, h.until).UTC() }

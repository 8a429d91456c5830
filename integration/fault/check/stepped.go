package check

import (
	"catenary/events"
	"catenary/rollout/simulate/check"
)

// Rules that can't be judged from the stream: it does not say under which lease a command was sent, and a plan that nobody has started was left by a
// sender who was stopped. That every rollout comes to its end that was started is judged as I8.
const (
	ruleFence = "fence"
	ruleStuck = "stuck"
)

// Stepped judges I6. What a rollout may do is judged by the rules that simulated rollouts are held to; here is what each step, try and lease
// come to.
func Stepped(ev Evidence) []Violation {
	f := &findings{invariant: "I6"}
	type try struct {
		rollout, tier string
		step          events.StepName
		attempt       int
	}
	begun, ended := map[try]uint64{}, map[try]uint64{}
	engines := map[string]bool{}
	leased := false
	for _, e := range ev.Events {
		switch d := e.Data.(type) {
		case events.LeaseTaken:
			leased, engines[e.Command.Actor] = true, true
		case events.LeaseReleased:
			leased = false
		case events.RolloutStepBegun:
			t := try{e.Ref.Key, d.Tier, d.StepName, d.Attempt}
			if before := begun[t]; before != 0 {
				f.say("try %d of %s in rollout %s begins with event %d and with event %d", d.Attempt, d.StepName, e.Ref.Key, before, e.Sequence)
			}
			begun[t] = e.Sequence
			if !leased {
				f.say("event %d begins %s in rollout %s, and nobody has the lease", e.Sequence, d.StepName, e.Ref.Key)
			}
		case events.RolloutStepEnded:
			t := try{e.Ref.Key, d.Tier, d.StepName, d.Attempt}
			if before := ended[t]; before != 0 && d.From == "" {
				f.say("try %d of %s in rollout %s ends with event %d and with event %d", d.Attempt, d.StepName, e.Ref.Key, before, e.Sequence)
			}
			if begun[t] == 0 && d.From == "" {
				f.say("event %d ends try %d of %s in rollout %s, which has not begun", e.Sequence, d.Attempt, d.StepName, e.Ref.Key)
			}
			ended[t] = e.Sequence
		}
	}
	for _, v := range check.All(check.History{Events: ev.Events, Engines: engines}) {
		if v.Rule != ruleFence && v.Rule != ruleStuck {
			f.say("%s", v)
		}
	}
	return f.list
}

package simulate

import (
	"fmt"
	"math/rand/v2"
	"time"

	"catenary/commands"
	"catenary/es"
	"catenary/events"
	"catenary/rollout/plan"
)

// builder is the actor that hears of merges and builds them.
const builder = "ci"

// merge lets a commit come onto the branch of a repository. Its modules are built a while later, or never.
func (s *simulation) merge(d Incident) {
	chance := rand.New(rand.NewPCG(uint64(d.A), uint64(d.B)))
	s.merged++
	repository, commit := s.fleet.modules[chance.IntN(len(s.fleet.modules))].repository, fmt.Sprintf("c%d", s.merged)
	hold := commands.HoldMerge{
		Repository: repository, Branch: branch, Commit: commit, Merged: s.now, Heard: s.now, Alone: chance.IntN(6) == 0, Waiting: "it is not planned yet",
	}
	heard := time.Duration(0)
	if chance.IntN(4) == 0 { // others are heard of before
		heard = time.Duration(chance.IntN(600)) * time.Second
	}
	s.after(heard, func() { s.hear(hold) })
	for _, m := range s.fleet.modules {
		if m.repository == repository && chance.IntN(8) > 0 {
			built := time.Duration(1+chance.IntN(120)) * time.Second
			s.after(built, func() { s.build(m, commit, firstBuilt+s.merged) })
		}
	}
}

// branch is that of all repositories, firstBuilt the version before that of the first merge.
const (
	branch     = "main"
	firstBuilt = 10
)

// build builds a module of a commit, and publishes it.
func (s *simulation) build(m fleetModule, commit string, n int) {
	id := fmt.Sprintf("b-%s-%s", m.name, commit)
	request := &commands.RecordedBuild{Module: m.name, Repository: m.repository, Commit: commit}
	s.hear(commands.SucceedBuild{ID: id, Request: request})
	s.after(5*time.Second, func() { s.hear(commands.PublishBuild{ID: id, Reference: version(m.name, n)}) })
}

// hear sends what the builder has to say, who says it again until somebody answers.
func (s *simulation) hear(p es.Payload) {
	s.send(command{Payload: p, actor: builder}, func(_ es.Answer, err error) {
		if err != nil {
			s.hear(p)
		}
	})
}

// change changes a track, ends it, or declares it again.
func (s *simulation) change(d Incident) {
	if len(s.fleet.tracks) == 0 {
		return
	}
	t := s.fleet.tracks[d.A%len(s.fleet.tracks)]
	switch d.B % 4 {
	case 0:
		s.ask(commands.EndTrack{Track: t.Track, Reason: "not now"})
	case 1:
		s.ask(commands.DeclareTrack{TrackSpec: t.TrackSpec})
	default:
		t.On = []string{events.OnMerge, events.OnPublication, events.OnManual}[d.C%3]
		s.ask(commands.ChangeTrack{TrackSpec: t.TrackSpec})
	}
}

// trigger lets a track plan, and starts that.
func (s *simulation) trigger(d Incident) {
	names := s.chart.declared()
	if len(names) == 0 {
		return
	}
	made, hold, err := s.due(s.chart.tracks[names[d.A%len(names)]], plan.Asked{ByPerson: true, Reason: "somebody asks"})
	switch {
	case err != nil:
		s.fail(err)
	case hold == nil:
		s.made++
		s.person(made, true)
	}
}

// person writes a plan down as somebody does who gives up when something goes wrong, and mostly starts it.
func (s *simulation) person(p plan.TrackPlan, starts bool) {
	send := func(payload es.Payload, then func(bool)) {
		s.send(command{Payload: payload, actor: person}, func(a es.Answer, err error) { then(err == nil && a.Status == es.StatusAccepted) })
	}
	s.write(p, send, func(ok bool) {
		if ok && starts {
			s.ask(commands.ApproveRollout{ID: p.ID})
			s.after(time.Second, func() { s.ask(commands.StartRollout{ID: p.ID}) })
		}
	})
}

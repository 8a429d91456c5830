package main

import (
	"strconv"

	"catenary/internal/deliveries"
	"catenary/internal/lineage"
)

// mostProblems bounds the problems that are shown and listed one by one; the counts have them all.
const mostProblems = 1000

// shownProblem is a problem of an import as it is shown.
type shownProblem struct {
	where, what, code, message string
	// shade colours what it is.
	shade colour
}

// problemList shows problems of an import as they are found, and keeps the first ones.
type problemList[P any] struct {
	bar  *progressBar
	show func(P) shownProblem
	list []P
	more int
}

func newProblemList[P any](bar *progressBar, show func(P) shownProblem) *problemList[P] {
	return &problemList[P]{bar: bar, show: show, list: []P{}}
}

func (l *problemList[P]) add(problem P) {
	if len(l.list) == mostProblems {
		l.more++
		return
	}
	l.list = append(l.list, problem)
	p := l.show(problem)
	if p.code != "" {
		p.what += " (" + p.code + ")"
	}
	l.bar.sayf("%s: %s: %s", printable(p.where), l.bar.app.paint(p.shade, p.what), printable(p.message))
}

// all gives what was kept, never nil. It says how many were not shown.
func (l *problemList[P]) all() []P {
	if l.more > 0 {
		l.bar.sayf("and %s more problems", count(l.more))
		l.more = 0
	}
	return l.list
}

func deliveryProblem(p deliveries.Problem) shownProblem {
	shown := shownProblem{where: "state file", what: p.Kind, code: p.Code, message: p.Message, shade: red}
	if p.Line > 0 {
		shown.where = "line " + strconv.Itoa(p.Line)
	}
	if p.Kind == deliveries.ProblemUnclear {
		shown.shade = yellow
	}
	return shown
}

func lineageProblem(p lineage.Problem) shownProblem {
	shown := shownProblem{where: p.File, what: p.Kind, code: p.Code, message: p.Message, shade: red}
	if p.Line > 0 {
		shown.where += " line " + strconv.Itoa(p.Line)
	}
	return shown
}

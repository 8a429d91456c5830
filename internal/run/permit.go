package run

import (
	"fmt"

	"catenary/commands"
	"catenary/es"
	"catenary/es/dispatch"
	"catenary/internal/topology"
)

// CodeNotItsNode is that of the refusal of a command that an agent may not send.
const CodeNotItsNode = "not-its-node"

// permit lets agents report about their own node, and do nothing else. Whose agent it is says the user it has connected as, never the
// report. Everybody else may send what the rules allow.
func permit(who dispatch.Who, payload es.Payload) error {
	node, isAgent := topology.AgentUserNode(who.Name)
	if !isAgent || who.Account == "" {
		return nil
	}
	if report, ok := payload.(commands.Observe); ok && es.EscapeToken(report.Node) == node {
		return nil
	}
	return &es.Refusal{
		Status: es.StatusDenied, Code: CodeNotItsNode,
		Message: fmt.Sprintf("%s may report about its own node, and nothing else: not %s %s", who.Name, payload.Ref(), payload.Verb()),
		Hint:    "connect as the agent of that node, or as a person",
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/cockroachdb/errors"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"catenary/internal/diagnosis"
	"catenary/internal/health"
)

const checkHelp = `Check says in one line how the chain is, for a program that watches it: Nagios, Icinga, Sensu and their like, or a script.

It ends with 0 for OK, 1 for WARNING, 2 for CRITICAL and 3 for UNKNOWN: that nobody could be asked for a reason of the asker's own. A bus that can't be
reached is CRITICAL. Behind the bar come the figures, each with its two thresholds.

A threshold is WARN,CRIT: from which value on the figure counts. 0 means never. What a threshold judges, it alone judges; whatever else catenary doctor
would name counts too.`

// The exit codes of check are those of monitoring plugins.
const (
	checkOK       = 0
	checkWarning  = 1
	checkCritical = 2
	checkUnknown  = 3
)

// checked is how a check has ended. Its message was shown.
type checked struct{ code int }

func (c *checked) Error() string { return "checked: " + strconv.Itoa(c.code) }

const formatNagios format = "nagios"

// thresholdFlag is a flag that holds a threshold.
type thresholdFlag struct{ value *diagnosis.Threshold }

var _ pflag.Value = thresholdFlag{}

// String gives the threshold.
func (f thresholdFlag) String() string {
	if f.value == nil {
		return ""
	}
	return f.value.String()
}

// Set reads a threshold.
func (f thresholdFlag) Set(text string) error {
	t, err := diagnosis.ParseThreshold(text)
	if err == nil {
		*f.value = t
	}
	return err
}

// Type is shown in the help.
func (f thresholdFlag) Type() string { return "WARN,CRIT" }

func (a *app) checkCommand() *cobra.Command {
	t := diagnosis.DefaultThresholds()
	cmd := &cobra.Command{
		Use: "check", Short: "Say in one line how the chain is, for monitoring", Long: checkHelp, GroupID: groupRun,
		Example: "  catenary check\n  catenary check --lag 5s,30s --used 70,90 --off 0,0\n  catenary check -o json",
	}
	flags := cmd.Flags()
	flags.Var(thresholdFlag{&t.Behind}, "behind", "events that a view is behind")
	flags.Var(thresholdFlag{&t.Lag}, "lag", "age of the oldest event that a view does not show")
	flags.Var(thresholdFlag{&t.Used}, "used", "percent that are used of the fullest stream, bucket or disk")
	flags.Var(thresholdFlag{&t.Parked}, "parked", "instances that are parked")
	flags.Var(thresholdFlag{&t.Off}, "off", "nodes whose agent is silent")
	flags.Var(thresholdFlag{&t.Pending}, "pending", "steps of rollouts that are under way")
	output := formatFlag(cmd, formatNagios, formatNagios, formatJSON)
	a.answersUnknown(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		evidence, err := a.evidence(cmd.Context(), "")
		if err != nil {
			return a.unknown(err)
		}
		if evidence.Denied {
			return a.unknown(evidence.Unreached)
		}
		d := diagnosis.Diagnose(evidence)
		return a.showCheck(d, len(evidence.Reports), d.Hold(t), *output)
	}
	return cmd
}

// answersUnknown makes a command say so when its arguments are wrong: that is no state of the chain.
func (a *app) answersUnknown(cmd *cobra.Command) {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := cobra.NoArgs(cmd, args); err != nil {
			return a.unknown(err)
		}
		return nil
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return a.unknown(err) })
}

// unknown says why nothing can be said of the chain.
func (a *app) unknown(err error) error {
	text := err.Error()
	for _, hint := range errors.GetAllHints(err) {
		text += "; " + hint
	}
	if _, writing := fmt.Fprintf(a.Stdout, "CATENARY UNKNOWN - %s\n", oneLine(text)); writing != nil {
		return errors.Wrap(writing, "write the output")
	}
	return &checked{code: checkUnknown}
}

// checkCode gives the exit code of a state, as monitoring programs have it.
func checkCode(s health.State) int {
	return map[health.State]int{health.OK: checkOK, health.Warn: checkWarning, health.Fail: checkCritical}[s]
}

// checkedWith gives the error that sets the exit code; nil for OK.
func checkedWith(code int) error {
	if code == checkOK {
		return nil
	}
	return &checked{code: code}
}

func (a *app) showCheck(d diagnosis.Diagnosis, processes int, h diagnosis.Held, output format) error {
	code := checkCode(h.State)
	status := exitNames()[h.State]
	text := nagios("CATENARY", status, h.Problems, fmt.Sprintf("%s well at event %d", counted(processes, "process"), d.Measures.Event), figures(h.Figures))
	if output == formatJSON {
		body, err := json.Marshal(struct {
			Status string `json:"status"`
			Exit   int    `json:"exit"`
			Event  uint64 `json:"event,omitempty"`
			diagnosis.Held
		}{status, code, d.Measures.Event, h})
		if err != nil {
			return errors.Wrap(err, "encode the check")
		}
		text = string(body) + "\n"
	}
	if _, err := a.Stdout.Write([]byte(text)); err != nil {
		return errors.Wrap(err, "write the output")
	}
	return checkedWith(code)
}

// nagios writes a check as plugins do: a line with the worst problem, or how well all is, and the figures behind a bar; then a line for each
// further problem.
func nagios(title, status string, problems []diagnosis.Problem, well string, figures []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s - ", title, status)
	if len(problems) == 0 {
		b.WriteString(well)
	} else {
		b.WriteString(problemText(problems[0]))
		if more := len(problems) - 1; more > 0 {
			fmt.Fprintf(&b, " (and %d more)", more)
		}
	}
	if len(figures) > 0 {
		b.WriteString(" | " + strings.Join(figures, " "))
	}
	b.WriteByte('\n')
	for _, p := range problems[min(1, len(problems)):] {
		fmt.Fprintf(&b, "%s: %s\n", exitNames()[p.State], problemText(p))
	}
	return b.String()
}

// figures writes measures with their thresholds.
func figures(all []diagnosis.Figure) (written []string) {
	for _, f := range all {
		written = append(written, fmt.Sprintf("%s=%s%s;%s;%s;0", f.Name, strconv.FormatFloat(f.Value, 'f', -1, 64), f.Unit, bound(f.Warn), bound(f.Fail)))
	}
	return written
}

// bound writes a threshold's value; nothing for one that never counts.
func bound(v float64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

func problemText(p diagnosis.Problem) string { return oneLine(p.About + ": " + p.What) }

// oneLine makes one line of a text, without the bar that ends it for those who read it.
func oneLine(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(printable(text)), " "), "|", "/")
}

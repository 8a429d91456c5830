package audit

import "time"

// QuestionReport asks for counts over a span of time: catenary.query.report.
const QuestionReport = "report"

// Reports.
const (
	// ReportDeliveries counts what was told: started, changed and ended assignments.
	ReportDeliveries = "deliveries"
	// ReportRollbacks counts the changes to a lower version, and those back to what stood there before.
	ReportRollbacks = "rollbacks"
	// ReportDrift counts the modules that stand on two nodes and differ, and those that run otherwise than told.
	ReportDrift = "drift"
	// ReportLeadTime measures how long it took from a commit, or else from the first time it was published or told
	// anywhere, until a node was told.
	ReportLeadTime = "lead-time"
)

// What a report is counted by.
const (
	ByNode   = "node"
	ByModule = "module"
	ByWeek   = "week"
)

// MaxDriftNodes bounds the nodes of a drift report: every two of them are compared.
const MaxDriftNodes = 16

// ReportQuestion asks for a report.
type ReportQuestion struct {
	// Report is one of the Report constants.
	Report string `json:"report"`
	// By is one of the By constants, ByNode by default. Weeks begin on Monday in Zone. Drift is always by pairs of nodes.
	By string `json:"by,omitempty"`
	// Since and Until bound when it became true; Since is part of the span, Until is not. Drift is taken at Until.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Nodes and Module ask for some only. A drift report compares every two of the nodes; without any it takes all nodes, up
	// to MaxDriftNodes.
	Nodes  []string `json:"nodes,omitempty"`
	Module string   `json:"module,omitempty"`
	// Zone is the time zone of weeks, as in Europe/Berlin. Default: UTC.
	Zone string `json:"zone,omitempty"`
}

// ReportAnswer is a report: one of the lists is filled, by the report asked for. Rows are sorted by what they are counted by.
type ReportAnswer struct {
	Report string    `json:"report"`
	By     string    `json:"by"`
	Since  time.Time `json:"since,omitzero"`
	Until  time.Time `json:"until,omitzero"`

	Deliveries []DeliveryCount `json:"deliveries,omitempty"`
	Rollbacks  []RollbackCount `json:"rollbacks,omitempty"`
	Drift      []DriftCount    `json:"drift,omitempty"`
	LeadTimes  []LeadTime      `json:"lead-times,omitempty"`
	Basis
}

// DeliveryCount counts what was told of one node or module, or in one week.
type DeliveryCount struct {
	// Of is the node, the module, or the Monday a week begins with (2026-05-04).
	Of string `json:"of"`
	// Started counts modules that came to a node, Changed those that were told to run something else, Ended those that were
	// told to run no more.
	Started int `json:"started"`
	Changed int `json:"changed"`
	Ended   int `json:"ended"`
}

// RollbackCount counts roll-backs of one node or module, or in one week.
type RollbackCount struct {
	Of string `json:"of"`
	// Lower counts changes to a lower version of the same form (v8 after v9, 1.9 after 1.10).
	Lower int `json:"lower"`
	// Returned counts the other changes back to something the node had been told to run before.
	Returned int `json:"returned"`
}

// DriftCount says how two nodes differ, or what a node was told and what it runs.
type DriftCount struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Observed is set on the line of one node, From and To the same: told against observed.
	Observed bool `json:"observed,omitempty"`
	// Modules lists the modules that stand on both and differ, Alike counts those that do not differ, and Single those that
	// stand on one of the two only.
	Modules []string `json:"modules"`
	Alike   int      `json:"alike"`
	Single  int      `json:"single"`
}

// LeadTime says how long deliveries to a node, of a module, or in a week took.
type LeadTime struct {
	Of string `json:"of"`
	// Deliveries counts those measured; FromCommit counts those measured from a commit's merge.
	Deliveries int `json:"deliveries"`
	FromCommit int `json:"from-commit"`
	// Median, P90 and Longest are spans such as 1h2m3s.
	Median  Duration `json:"median"`
	P90     Duration `json:"p90"`
	Longest Duration `json:"longest"`
}

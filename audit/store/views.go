package store

import "fmt"

// at gives the expression for a time as text: RFC 3339 in UTC, of fixed width, so that text compares as times do. What has no end
// is NULL.
func at(column string) string {
	return fmt.Sprintf("iif(%[1]s = %[2]d, NULL, strftime('%%Y-%%m-%%dT%%H:%%M:%%S', %[1]s / 1000000000, 'unixepoch') || printf('.%%09dZ', %[1]s %% 1000000000))", column, forever)
}

const timeText = "time"

// span gives the columns of a row's valid time and of since when it is known.
func span(alias string) []column {
	return []column{
		{name: "valid_from", kind: timeText, from: at(alias + ".valid_from"), about: "when it became true"},
		{name: "valid_to", kind: timeText, from: at(alias + ".valid_to"), about: "when something else did; NULL while it is true"},
		{name: "known_from", kind: timeText, from: at("r.known_from"), about: "when it was recorded"},
	}
}

// views are what people read in SQL.
func views() []table {
	told := []column{
		{name: "node", kind: "text", from: "k.node"},
		{name: "module", kind: "text", from: "k.module"},
		{name: "stands", kind: "0 or 1", from: "r.stands", about: "0 from an end on, and for what waits"},
		{name: "state", kind: "text", from: "r.state", about: "stands, ended or pending"},
		{name: "turn", kind: "text", from: "CASE r.turn WHEN 1 THEN 'started' WHEN 2 THEN 'changed' WHEN 3 THEN 'lowered' WHEN 4 THEN 'returned' WHEN 5 THEN 'ended' END", about: "what changed: started, changed, lowered (to a lower version), returned (to what it was told before) or ended; NULL where it was told the same again"},
		{name: "package", kind: "text", from: "r.package"},
		{name: "version", kind: "text", from: "r.version"},
		{name: "artifact", kind: "text", from: "r.artifact", about: "the digest"},
		{name: "build", kind: "text", from: "r.build"},
		{name: "commit", kind: "text", from: `r."commit"`},
		{name: "rollout", kind: "text", from: "r.rollout", about: "the rollout that put it there"},
		{name: "required_by", kind: "JSON", from: "r.required_by", about: "the modules that pulled it in"},
		{name: "assigned", kind: timeText, from: at("r.assigned"), about: "when the module came to the node"},
		{name: "since", kind: timeText, from: at("r.since"), about: "when what is told was first told"},
	}
	who := []column{
		{name: "sequence", kind: "number", from: "r.sequence", about: "the event that says so"},
	}
	const ofKind = `FROM record r JOIN "key" k ON k.id = r."key" WHERE k.kind = '%s' AND r.valid_from < r.valid_to`
	all := []table{
		{
			name: "assignments", about: "What nodes were told, and when, as far as is known now. A node runs what stands: WHERE stands AND valid_to IS NULL.",
			columns: join(told, span("r"), who), from: fmt.Sprintf(ofKind, kindTold),
		},
		{
			name:  "assignments_known",
			about: "The same with what was thought before, in both times: at most one row for each node and module has valid_from <= T AND (valid_to > T OR valid_to IS NULL) AND known_from <= K AND (known_to > K OR known_to IS NULL).",
			columns: join(told, span("p"), []column{
				{name: "known_to", kind: timeText, from: at("p.known_to"), about: "when something better was known; NULL while it is not"},
			}, who),
			from: fmt.Sprintf(`FROM (
  SELECT id AS record, valid_from, valid_to, %d AS known_to FROM record WHERE valid_from < valid_to
  UNION ALL SELECT id, outlook_from, outlook_to, outlook_known FROM record WHERE outlook_known IS NOT NULL
  UNION ALL SELECT record, valid_from, valid_to, known_to FROM past
) p JOIN record r ON r.id = p.record JOIN "key" k ON k.id = r."key" WHERE k.kind = '%s'`, forever, kindTold),
		},
		{
			name: "observations", about: "What nodes reported to run, and when.",
			columns: join([]column{
				{name: "node", kind: "text", from: "k.node"},
				{name: "module", kind: "text", from: "k.module"},
				{name: "runs", kind: "0 or 1", from: "r.stands"},
				{name: "state", kind: "text", from: "r.state", about: "runs, removed or failed"},
				{name: "package", kind: "text", from: "r.package"},
				{name: "version", kind: "text", from: "r.version"},
				{name: "artifact", kind: "text", from: "r.artifact"},
				{name: "build", kind: "text", from: "r.build"},
				{name: "rollout", kind: "text", from: "r.rollout"},
				{name: "healthy", kind: "0 or 1", from: "r.healthy", about: "NULL while it is not known"},
				{name: "drift", kind: "text", from: "r.drift", about: "how it differs from what was applied"},
				{name: "since", kind: timeText, from: at("r.since")},
				{name: "reported", kind: timeText, from: at("r.reported")},
			}, span("r"), who), from: fmt.Sprintf(ofKind, kindRan),
		},
	}
	for _, kind := range []struct {
		view, name, about string
		columns           []column
	}{
		{"modules", "module", "Modules, and what was said of them when.", []column{field("repository"), field("path"), field("kind")}},
		{"nodes", "node", "Nodes, and what was said of them when.", []column{field("managed-by")}},
		{"commits", "commit", "Commits of repositories.", []column{field("repository"), field("branch"), field("commit"), field("merged"), field("author")}},
		{"builds", "build", "Builds, and what became of them.", []column{field("module"), field("repository"), field("commit"), field("state"), field("failed"), field("asked"), field("at")}},
		{"publications", "publication", "What was published.", []column{
			{name: "package", kind: "text", from: "r.package"}, {name: "version", kind: "text", from: "r.version"},
			{name: "artifact", kind: "text", from: "r.artifact"}, field("build"), field("commit"), field("module"), field("at"),
		}},
		{"freezes", "freeze", "Freezes, and when they held.", []column{field("reason"), field("declared"), field("ended")}},
	} {
		all = append(all, table{
			name: kind.view, about: kind.about,
			columns: join([]column{
				{name: "key", kind: "text", from: `k."key"`, about: "as it is stored: names are escaped"},
				{name: "stands", kind: "0 or 1", from: "r.stands"},
			}, kind.columns, []column{
				{name: "value", kind: "JSON", from: "r.value", about: "the whole record"},
			}, span("r"), who),
			from: fmt.Sprintf(ofKind, kind.name),
		})
	}
	return append(all,
		table{
			name: "carried_by", about: "The modules and commits that came with a build, as its manifest says.",
			columns: []column{
				{name: "build", kind: "text", from: `k."key"`}, {name: "module", kind: "text", from: "c.module"},
				{name: "version", kind: "text", from: "c.version"}, {name: "repository", kind: "text", from: "c.repository"},
				{name: "commit", kind: "text", from: `c."commit"`},
			},
			from: `FROM carrier b JOIN "key" k ON k.id = b.build JOIN carried c ON c.list = b.list`,
		},
		table{
			name: "events", about: "Every event, in order.",
			columns: []column{
				{name: "sequence", kind: "number", from: "e.sequence"},
				{name: "recorded", kind: timeText, from: at("e.recorded")},
				{name: "effective", kind: timeText, from: at("e.effective")},
				{name: "type", kind: "text", from: "e.type"},
				{name: "aggregate", kind: "text", from: "e.aggregate"},
				{name: "key", kind: "text", from: `e."key"`},
				{name: "version", kind: "number", from: "e.version", about: "counts the events of a key"},
				{name: "node", kind: "text", from: "e.node"},
				{name: "module", kind: "text", from: "e.module"},
				{name: "actor", kind: "text", from: "e.actor", about: "an opaque id"},
				{name: "on_behalf_of", kind: "text", from: "e.on_behalf_of", about: "an opaque id"},
				{name: "command", kind: "text", from: "e.command"},
				{name: "causation", kind: "text", from: "e.causation"},
				{name: "correlation", kind: "text", from: "e.correlation"},
				{name: "backfill", kind: "0 or 1", from: "e.backfill"},
				{name: "data", kind: "JSON", from: "e.data"},
				{name: "id", kind: "text", from: "e.id"},
			},
			from: "FROM event e",
		},
		table{
			name: "refused", about: "Commands that were not done.",
			columns: []column{
				{name: "sequence", kind: "number", from: "f.sequence", about: "in the stream of refused commands"},
				{name: "recorded", kind: timeText, from: at("f.recorded")},
				{name: "aggregate", kind: "text", from: "f.aggregate"},
				{name: "key", kind: "text", from: `f."key"`},
				{name: "verb", kind: "text", from: "f.verb"},
				{name: "actor", kind: "text", from: "f.actor"},
				{name: "on_behalf_of", kind: "text", from: "f.on_behalf_of"},
				{name: "status", kind: "text", from: "f.status"},
				{name: "code", kind: "text", from: "f.code"},
				{name: "message", kind: "text", from: "f.message"},
				{name: "command", kind: "text", from: "f.command"},
			},
			from: "FROM refusal f",
		},
		table{
			name: "missing", about: "What is in no other view but events: instances that are parked behind an event that could not be folded, and events that somebody had left out.",
			columns: []column{
				{name: "event", kind: "number", from: "m.event"},
				{name: "instance", kind: "text", from: "m.instance", about: "aggregate and key, with a dot between"},
				{name: "type", kind: "text", from: "m.type"},
				{name: "why", kind: "text", from: "m.why", about: "unknown-type, unreadable, unfolded or skipped"},
				{name: "behind", kind: "number", from: "m.behind", about: "how many events of the instance came after it"},
				{name: "reason", kind: "text", from: "m.reason", about: "what the fold said, or who had it left out"},
			},
			from: `FROM (
  SELECT event, aggregate || '.' || "key" AS instance, type, why, behind, said AS reason FROM park
  UNION ALL SELECT event, aggregate || '.' || "key", type, 'skipped', 0, reason FROM skip
) m`,
		},
		table{
			name: "actors", about: "Names behind opaque ids, as far as they were not erased.",
			columns: []column{
				{name: "id", kind: "text", from: "a.id"}, {name: "name", kind: "text", from: "a.name"}, {name: "account", kind: "text", from: "a.account"},
			},
			from: "FROM actor a",
		},
	)
}

// field gives a column for a member of a record's JSON.
func field(name string) column {
	return column{name: columnName(name), kind: "text", from: fmt.Sprintf(`r.value ->> '$."%s"'`, name)}
}

func columnName(field string) string {
	out := []byte(field)
	for i, c := range out {
		if c == '-' {
			out[i] = '_'
		}
	}
	return string(out)
}

func join(lists ...[]column) []column {
	var all []column
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

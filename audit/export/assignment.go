package export

import (
	"strconv"
	"strings"
	"time"

	"catenary/audit"
)

// assignmentRow is what one event said of an assignment, as columns.
type assignmentRow struct {
	Shows          string     `parquet:"shows,dict"`
	Node           string     `parquet:"node,dict"`
	Module         string     `parquet:"module,dict"`
	Stands         bool       `parquet:"stands"`
	From           *time.Time `parquet:"from,optional,timestamp(nanosecond)"`
	Until          *time.Time `parquet:"until,optional,timestamp(nanosecond)"`
	Package        string     `parquet:"package"`
	PackageVersion string     `parquet:"package_version"`
	Artifact       string     `parquet:"artifact"`
	Build          string     `parquet:"build"`
	Commit         string     `parquet:"commit"`
	Rollout        string     `parquet:"rollout"`
	RequiredBy     string     `parquet:"required_by"`
	Assigned       *time.Time `parquet:"assigned,optional,timestamp(nanosecond)"`
	Since          *time.Time `parquet:"since,optional,timestamp(nanosecond)"`
	Sequence       int64      `parquet:"sequence"`
	Known          *time.Time `parquet:"known,optional,timestamp(nanosecond)"`
	Type           string     `parquet:"type,dict"`
	Actor          string     `parquet:"actor,dict"`
	OnBehalfOf     string     `parquet:"on_behalf_of,dict"`
	Reason         string     `parquet:"reason"`
	Backfill       bool       `parquet:"backfill"`
	Healthy        *bool      `parquet:"healthy,optional"`
	Drift          string     `parquet:"drift"`
	Reported       *time.Time `parquet:"reported,optional,timestamp(nanosecond)"`
}

func rowOfAssignment(a audit.ExportedAssignment) assignmentRow {
	r := assignmentRow{
		Shows: a.Shows, Node: a.Node, Module: a.Module, Stands: a.Stands, From: maybeTime(a.From), Until: maybeTime(a.Until),
		Artifact: a.Artifact, Build: a.Build, Commit: a.Commit, Rollout: a.Rollout, RequiredBy: strings.Join(a.RequiredBy, ","),
		Assigned: maybeTime(a.Assigned), Since: maybeTime(a.Since), Sequence: int64(a.Sequence), Known: maybeTime(a.Known),
		Type: a.Type, Actor: a.Actor, OnBehalfOf: a.OnBehalfOf, Reason: a.Reason, Backfill: a.Backfill,
		Healthy: a.Healthy, Drift: a.Drift, Reported: maybeTime(a.Reported),
	}
	if a.Package != nil {
		r.Package, r.PackageVersion = a.Package.Name, a.Package.Version
	}
	return r
}

func (r assignmentRow) cells() []string {
	healthy := ""
	if r.Healthy != nil {
		healthy = strconv.FormatBool(*r.Healthy)
	}
	return []string{
		r.Shows, r.Node, r.Module, strconv.FormatBool(r.Stands), timeText(r.From), timeText(r.Until), r.Package, r.PackageVersion, r.Artifact,
		r.Build, r.Commit, r.Rollout, r.RequiredBy, timeText(r.Assigned), timeText(r.Since), number(r.Sequence), timeText(r.Known),
		r.Type, r.Actor, r.OnBehalfOf, r.Reason, strconv.FormatBool(r.Backfill), healthy, r.Drift, timeText(r.Reported),
	}
}

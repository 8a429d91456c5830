package es_test

import (
	"testing"
	"time"

	"catenary/es"
)

type benchFact struct {
	Node     string            `json:"node"`
	Module   string            `json:"module"`
	Artifact string            `json:"artifact"`
	Digest   string            `json:"digest"`
	Labels   map[string]string `json:"labels"`
	Parts    []struct {
		Name string `json:"name"`
		Size int    `json:"size"`
	} `json:"parts"`
}

// BenchmarkRecord measures what makes an event a sealed message, and a sealed message an event again: the parts of a
// decision and of a replay that are not the domain's.
func BenchmarkRecord(b *testing.B) {
	registry := es.NewRegistry(es.Msgpack{})
	es.Register[benchFact](registry, "bench.happened.v1")
	fact := benchFact{Node: "n1.example.org", Module: "web", Artifact: "sha256:0123456789abcdef", Digest: es.Digest(nil), Labels: map[string]string{"zone": "a", "rack": "7"}}
	fact.Parts = append(fact.Parts, struct {
		Name string `json:"name"`
		Size int    `json:"size"`
	}{"a", 1})
	now := time.Date(2026, 5, 1, 7, 34, 45, 123456000, time.UTC)
	event := func() es.Event {
		name, body, err := registry.Encode(fact)
		if err != nil {
			b.Fatal(err)
		}
		ref := es.Ref{Aggregate: "assignment", Key: "n1.web"}
		return es.Event{
			ID: "0197b1f0-5c3e-7b1a-9a52-3f1f6f5b1a21", Type: name, Ref: ref, Version: 7, Recorded: now, Effective: now.Add(-time.Hour), Body: body,
			Command: es.Cause{ID: "0197b1f0-5c3e-7b1a-9a52-3f1f6f5b1a22", Ref: ref, Digest: fact.Digest, Actor: "a-12345", Correlation: "0197b1f0-5c3e-7b1a-9a52-3f1f6f5b1a23"},
		}
	}
	e := event()
	m := e.Message(es.ContentTypeMsgpack)
	es.Head{}.Seal(&m)
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			event()
		}
	})
	b.Run("message", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			e.Message(es.ContentTypeMsgpack)
		}
	})
	b.Run("seal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			es.Head{}.Seal(&m)
		}
	})
	b.Run("verify", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := (es.Head{}).Verify(m); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := es.ReadEvent(m); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := registry.Decode(m); err != nil {
				b.Fatal(err)
			}
		}
	})
}

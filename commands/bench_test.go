package commands_test

import (
	"testing"

	"catenary/commands"
	"catenary/es/dispatch"
	"catenary/events"
)

// BenchmarkDecode measures reading and checking an ordinary assign.
func BenchmarkDecode(b *testing.B) {
	r := commands.Commands()
	p := commands.Assign{
		Node: "node-00042.example.org", Module: "web", Reference: events.Reference{Package: &events.Package{Name: "web", Version: "1.20"}}, Reason: "release",
	}
	for _, c := range []struct {
		name, contentType string
		body              []byte
	}{{"json", dispatch.ContentTypeJSON, plainJSON(b, p)}, {"msgpack", dispatch.ContentTypeMsgpack, packed(b, p)}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Decode("assignment", "assign", c.contentType, c.body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

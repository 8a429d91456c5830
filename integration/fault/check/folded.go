package check

import (
	"bytes"
	"maps"
	"slices"

	"catenary/es"
	"catenary/es/project"
)

// Folded judges I4.
func Folded(ev Evidence) []Violation {
	f := &findings{invariant: "I4"}
	for _, v := range ev.Views {
		want, ok := fold(f, v, ev.Events)
		if !ok {
			continue
		}
		bucket := byKey(ev.Buckets[v.Name()])
		for _, key := range slices.Sorted(maps.Keys(want)) {
			holds(f, v.Name(), key, want[key], bucket[key])
		}
		for _, key := range slices.Sorted(maps.Keys(bucket)) {
			if want[key] == nil {
				f.say("%s holds key %s, of which no event tells", v.Name(), key)
			}
		}
		same(f, v.Name(), ev.Buckets[v.Name()], ev.Copies[v.Name()])
	}
	return f.list
}

// fold gives the values that events give, by key and in order.
func fold(f *findings, v project.View, all []es.Event) (map[string][][]byte, bool) {
	values := map[string][][]byte{}
	var reads []string
	if s, ok := v.(project.Selective); ok {
		reads = s.Aggregates()
	}
	for _, e := range all {
		if reads != nil && !slices.Contains(reads, e.Ref.Aggregate) {
			continue
		}
		list, err := v.Fold(e)
		if err != nil {
			f.say("event %d can't be folded into %s: %v", e.Sequence, v.Name(), err)
			return nil, false
		}
		for _, value := range list {
			values[value.Key] = append(values[value.Key], value.Data)
		}
	}
	return values, true
}

func byKey(list []project.Entry) map[string][]project.Entry {
	found := map[string][]project.Entry{}
	for _, e := range list {
		found[e.Key] = append(found[e.Key], e)
	}
	return found
}

// holds demands that a key has the last value that events give, and all those before it in order. What mends a bucket may stand between them.
func holds(f *findings, view, key string, want [][]byte, have []project.Entry) {
	if len(have) == 0 {
		f.say("%s lacks key %s, of which events give %d values", view, key, len(want))
		return
	}
	if last := have[len(have)-1]; !bytes.Equal(last.Value, want[len(want)-1]) {
		f.say("%s holds for key %s (value %d, position %s)\n  %s\nand the events give\n  %s", view, key, last.Revision, last.Meta.Position, last.Value, want[len(want)-1])
		return
	}
	at := 0
	for _, e := range have {
		if at < len(want) && bytes.Equal(e.Value, want[at]) {
			at++
		}
	}
	if at < len(want) {
		f.say("%s has %d values for key %s, and lacks, or has out of order, the one that events give as number %d of %d:\n  %s", view, len(have), key, at+1, len(want), want[at])
	}
}

// same demands that a copy holds what its bucket holds.
func same(f *findings, view string, bucket, copied []project.Entry) {
	for i := range max(len(bucket), len(copied)) {
		switch {
		case i >= len(copied):
			f.say("the copy of %s ends after %d values of %d", view, len(copied), len(bucket))
			return
		case i >= len(bucket):
			f.say("the copy of %s holds %d values more than the bucket, which has %d", view, len(copied)-len(bucket), len(bucket))
			return
		case bucket[i].Key != copied[i].Key || bucket[i].Revision != copied[i].Revision || !bytes.Equal(bucket[i].Value, copied[i].Value):
			f.say("the copy of %s differs from value %d on (key %s)", view, bucket[i].Revision, bucket[i].Key)
			return
		}
	}
}

package es

import "reflect"

// SortedHeaders lists the names of the headers that an event's hash covers.
func SortedHeaders() []string { return sortedHeaders[:] }

// CoveredHeaders gives the names of the headers that the hash covers, sorted.
func CoveredHeaders(header map[string][]string) []string {
	names := []string{}
	for _, h := range coveredHeaders(header, nil) {
		names = append(names, h.name)
	}
	return names
}

// HasForm says whether bodies of a type are read without the codec.
func HasForm(t reflect.Type) bool { return formOf(t) != nil }

// ReadForm reads a body without the codec into what to points to, and says whether it could.
func ReadForm(body []byte, to any) bool {
	v := reflect.ValueOf(to).Elem()
	f := formOf(v.Type())
	return f != nil && f.decode(body, v)
}

package es

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

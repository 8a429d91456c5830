package health

import (
	"bytes"
	"encoding/json"
	"net/http"
)

// Paths of the answers over HTTP.
const (
	// PathAlive answers whether the process should be left running.
	PathAlive = "/healthz"
	// PathReady answers whether it does its work.
	PathReady = "/readyz"
)

// Handle adds both answers. Each is a JSON object with one check a line, and has status 503 when a check fails.
func (r *Registry) Handle(mux *http.ServeMux) {
	mux.HandleFunc("GET "+PathAlive, func(w http.ResponseWriter, _ *http.Request) { answer(w, r.Alive()) })
	mux.HandleFunc("GET "+PathReady, func(w http.ResponseWriter, q *http.Request) { answer(w, r.Report(q.Context())) })
}

func answer(w http.ResponseWriter, report Report) {
	body, err := report.lines()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if report.State == Fail {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	// Who has gone meanwhile needs no answer.
	_, _ = w.Write(body)
}

// lines writes the report as JSON with a line for each check, so that grep and people can read it too.
func (r Report) lines() ([]byte, error) {
	checks := r.Checks
	r.Checks = nil
	head, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Write(bytes.TrimSuffix(head, []byte("null}")))
	b.WriteString("[")
	for i, c := range checks {
		line, err := json.Marshal(c)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		b.Write(line)
	}
	b.WriteString("\n]}\n")
	return b.Bytes(), nil
}

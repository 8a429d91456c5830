package telemetry

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// scrapePatience bounds what is looked at for one scrape: scrapers wait for ten seconds by default.
const scrapePatience = 2 * time.Second

// PathMetrics is where metrics are scraped.
const PathMetrics = "/metrics"

// unknown stands for what is no command of the chain.
const unknown = "unknown"

// Verb is a command's, with its aggregate.
type Verb struct{ Aggregate, Verb string }

// Config says what is counted.
type Config struct {
	Program, Version string
	// Verbs are the commands that are told apart.
	Verbs []Verb
}

// Metrics are those of a process. They may be used by many goroutines, and nil ones count nothing.
type Metrics struct {
	registry *prometheus.Registry
	// commands never changes, so that it is read without a lock.
	commands       map[Verb]*commandSeries
	answers        *prometheus.CounterVec
	commandSeconds *prometheus.HistogramVec

	appendEvents, appendSeconds prometheus.Observer
	sequence                    prometheus.Gauge
	deeds                       *prometheus.CounterVec
	deedTime                    *prometheus.HistogramVec

	mu      sync.Mutex
	lookers map[int]Look
	next    int
	looked  map[string]*prometheus.Desc
}

// commandSeries are those of one command. They begin with its first answer: most of the commands are never sent.
type commandSeries struct {
	Verb
	mu      sync.Mutex
	answers map[string]prometheus.Counter
	seconds prometheus.Observer
}

// Look gives metrics that are looked at when somebody scrapes. It MUST keep to its context.
type Look func(ctx context.Context, set Set)

// Set gives the value of a metric of [Definitions] that is a gauge.
type Set func(name string, value float64, labels ...string)

// New returns metrics that count nothing yet.
func New(c Config) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), commands: map[Verb]*commandSeries{}, lookers: map[int]Look{}, looked: map[string]*prometheus.Desc{}}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), m)
	for _, d := range Definitions() {
		histogram := prometheus.HistogramOpts{Name: d.Name, Help: d.Help, Buckets: buckets(d.Name)}
		switch d.Name {
		case Commands:
			m.answers = prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.Labels)
			m.registry.MustRegister(m.answers)
		case CommandSeconds:
			m.commandSeconds = prometheus.NewHistogramVec(histogram, d.Labels)
			m.registry.MustRegister(m.commandSeconds)
		case AppendEvents, AppendSeconds:
			h := prometheus.NewHistogram(histogram)
			m.registry.MustRegister(h)
			if d.Name == AppendEvents {
				m.appendEvents = h
			} else {
				m.appendSeconds = h
			}
		case EventSequence:
			m.sequence = prometheus.NewGauge(prometheus.GaugeOpts{Name: d.Name, Help: d.Help})
			m.registry.MustRegister(m.sequence)
		case AgentDeeds:
			m.deeds = prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.Labels)
			m.registry.MustRegister(m.deeds)
		case AgentDeedTime:
			m.deedTime = prometheus.NewHistogramVec(histogram, d.Labels)
			m.registry.MustRegister(m.deedTime)
		default:
			m.looked[d.Name] = prometheus.NewDesc(d.Name, d.Help, d.Labels, nil)
		}
	}
	for _, v := range append(c.Verbs, Verb{unknown, unknown}) {
		m.commands[v] = &commandSeries{Verb: v, answers: map[string]prometheus.Counter{}}
	}
	m.Look(func(_ context.Context, set Set) { set(BuildInfo, 1, c.Program, c.Version) })
	return m
}

// Answered counts a command that was answered.
func (m *Metrics) Answered(aggregate, verb, status string, took time.Duration) {
	if m == nil {
		return
	}
	s := m.commands[Verb{aggregate, verb}]
	if s == nil {
		s = m.commands[Verb{unknown, unknown}]
	}
	s.mu.Lock()
	answers := s.answers[status]
	if answers == nil {
		answers = m.answers.WithLabelValues(s.Aggregate, s.Verb.Verb, status)
		s.answers[status] = answers
	}
	if s.seconds == nil {
		s.seconds = m.commandSeconds.WithLabelValues(s.Aggregate, s.Verb.Verb)
	}
	s.mu.Unlock()
	answers.Inc()
	s.seconds.Observe(took.Seconds())
}

// Landed counts an append that stands, up to an event.
func (m *Metrics) Landed(through uint64, events int, took time.Duration) {
	if m == nil {
		return
	}
	m.appendEvents.Observe(float64(events))
	m.appendSeconds.Observe(took.Seconds())
	m.sequence.Set(float64(through))
}

// Stands notes the last event that is known to stand.
func (m *Metrics) Stands(through uint64) {
	if m != nil {
		m.sequence.Set(float64(through))
	}
}

// Done counts a deed of an agent.
func (m *Metrics) Done(deed, outcome string, took time.Duration) {
	if m == nil {
		return
	}
	m.deeds.WithLabelValues(deed, outcome).Inc()
	m.deedTime.WithLabelValues(deed).Observe(took.Seconds())
}

// Look adds what is looked at when somebody scrapes. What is given takes it away again.
func (m *Metrics) Look(look Look) (forget func()) {
	if m == nil {
		return func() {}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	id := m.next
	m.next++
	m.lookers[id] = look
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.lookers, id)
	}
}

// Describe implements prometheus.Collector. What is looked at depends on the parts that run, so nothing is promised.
func (m *Metrics) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector: it looks at all that nobody counts, at the same time and for two seconds at most.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
	defer cancel()
	m.mu.Lock()
	var group sync.WaitGroup
	for _, look := range m.lookers {
		group.Go(func() {
			look(ctx, func(name string, value float64, labels ...string) {
				out <- prometheus.MustNewConstMetric(m.looked[name], prometheus.GaugeValue, value, labels...)
			})
		})
	}
	m.mu.Unlock()
	group.Wait()
}

// Handle adds the page that is scraped.
func (m *Metrics) Handle(mux *http.ServeMux) {
	mux.Handle("GET "+PathMetrics, promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
}

package telemetry

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/cockroachdb/errors"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"
)

// Variables of the environment that turn tracing on, as OpenTelemetry has named them. The exporter reads the others itself.
const (
	envEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	envDisabled       = "OTEL_SDK_DISABLED"
)

// traceparent is the header of the W3C that says which span something came from.
const traceparent = "traceparent"

// Tracing makes spans and exports them. A nil one makes none.
type Tracing struct {
	tracer   api.Tracer
	provider *trace.TracerProvider
}

// NewTracing turns tracing on: over HTTP to where the environment says, and to a file, one span a line, if there is one. It gives nil where neither
// is asked for. It gives the exporter's errors.
func NewTracing(ctx context.Context, env func(string) string, program, version string, file io.Writer) (*Tracing, error) {
	if env(envDisabled) == "true" {
		return nil, nil
	}
	var options []trace.TracerProviderOption
	if env(envEndpoint) != "" || env(envTracesEndpoint) != "" {
		exporter, err := otlptracehttp.New(ctx)
		if err != nil {
			return nil, errors.Wrapf(err, "export traces to where %s says", envEndpoint)
		}
		options = append(options, trace.WithBatcher(exporter))
	}
	if file != nil {
		exporter, err := stdouttrace.New(stdouttrace.WithWriter(file))
		if err != nil {
			return nil, errors.Wrap(err, "write traces to a file")
		}
		options = append(options, trace.WithBatcher(exporter))
	}
	if len(options) == 0 {
		return nil, nil
	}
	about, err := resource.Merge(resource.Default(), resource.NewSchemaless(attribute.String("service.name", "catenary-"+strings.TrimPrefix(program, "catenary ")), attribute.String("service.version", version)))
	if err != nil {
		return nil, errors.Wrap(err, "say in traces which program this is")
	}
	provider := trace.NewTracerProvider(append(options, trace.WithResource(about))...)
	return &Tracing{tracer: provider.Tracer("catenary"), provider: provider}, nil
}

// Close exports what is left, within the context. It gives the exporter's errors.
func (t *Tracing) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return errors.Wrap(t.provider.Shutdown(ctx), "export the last traces")
}

// Attribute is something that is said of a span.
type Attribute = attribute.KeyValue

// Text is an attribute of text, Number one of a number.
func Text(key, value string) Attribute                   { return attribute.String(key, value) }
func Number[N ~int | ~uint64](key string, n N) Attribute { return attribute.Int64(key, int64(n)) }

// Span is something that takes time. A nil one is not traced.
type Span struct{ span api.Span }

// Start begins a span at a moment, below the one that a traceparent names. Without a parent it begins a trace of its own.
func (t *Tracing) Start(parent, name string, at time.Time, about ...Attribute) *Span {
	if t == nil {
		return nil
	}
	ctx := context.Background()
	if parent != "" {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceparent: parent})
	}
	_, span := t.tracer.Start(ctx, name, api.WithTimestamp(at), api.WithAttributes(about...))
	return &Span{span: span}
}

// Context is the traceparent that tells on which span this is; empty when it is not traced.
func (s *Span) Context() string {
	if s == nil {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(api.ContextWithSpan(context.Background(), s.span), carrier)
	return carrier[traceparent]
}

// End ends the span. A failure says why it did not do what it was to do; empty when it did.
func (s *Span) End(failure string, about ...Attribute) {
	if s == nil {
		return
	}
	s.span.SetAttributes(about...)
	if failure != "" {
		s.span.SetStatus(codes.Error, failure)
	}
	s.span.End()
}

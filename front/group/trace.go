// SPDX-License-Identifier: Apache-2.0

package group

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/internal/tracing"
	"github.com/aip-gateway/aip-gateway/task"
)

// A message of a group carries the trace of its cause in its AMQP headers: traceparent and tracestate.

// carrier is the headers of a message.
type carrier func(name string) string

// Get implements propagation.TextMapCarrier.
func (c carrier) Get(name string) string { return c(name) }

// Set implements propagation.TextMapCarrier.
func (carrier) Set(string, string) {}

// Keys implements propagation.TextMapCarrier.
func (carrier) Keys() []string { return nil }

// traceHeaders returns the headers with the trace of ctx; nil if it has none.
func traceHeaders(ctx context.Context) map[string]string {
	headers := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, headers)
	if len(headers) == 0 {
		return nil
	}
	return headers
}

// withTrace returns ctx with the trace of headers.
func withTrace(ctx context.Context, headers map[string]string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier(headers))
}

// startCommand starts the span of a command of the group, in the trace of its message.
func (t *groupTasks) startCommand(c *command) (context.Context, trace.Span) {
	m := &c.call.Message
	return tracing.Start(withTrace(t.base, c.trace), t.tracer, trace.SpanKindConsumer, "aip.group.command",
		attribute.String("messaging.system", "rabbitmq"), attribute.String("messaging.message.id", c.id),
		attribute.String("aip.task.id", m.TaskID), attribute.String("aip.command", string(m.Command)))
}

// send gives a message to the link, with a span ending when the broker has confirmed it. The trace comes from the
// message's headers. done is called as by link.Publish.
func (t *groupTasks) send(m broker.Message, done func(error)) error {
	if t.tracer == nil {
		return t.link.Publish(m, done)
	}
	ctx, span := tracing.Start(withTrace(t.base, m.Headers), t.tracer, trace.SpanKindProducer, "aip.group.publish",
		attribute.String("messaging.system", "rabbitmq"), attribute.String("messaging.message.id", m.ID))
	m.Headers = traceHeaders(ctx)
	end := func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, "not confirmed")
		}
		span.End()
	}
	err := t.link.Publish(m, func(err error) {
		end(err)
		done(err)
	})
	if err != nil {
		end(err)
	}
	return err
}

// endCommand ends the span of a command, with the kind of its error.
func endCommand(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, task.KindOf(err).String())
	}
	span.End()
}

// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"log/slog"

	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/internal/tracing"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

// Summary describes a call in a log of requests. An empty field is not known, or there is no such thing.
type Summary struct {
	Dialect string
	Command string // a command, or another method, by its name in the metrics; "unknown" if it was not understood
	Leader  string
	User    string // the AIC, or AID, of the caller's proof
	Task    string
	State   task.State // of the task, when the call was answered or its stream ended
	Error   string     // the name of the error's kind, or CallerLeft
	Rule    string     // of the policy; it has denied the call
	Trace   trace.TraceID
}

// CallerLeft is the error of a call if its caller has left before the answer.
const CallerLeft = "caller-left"

// LogValue implements slog.LogValuer: a group of the known fields.
func (s Summary) LogValue() slog.Value {
	attrs := make([]slog.Attr, 0, 6)
	s.Each(func(name, value string) { attrs = append(attrs, slog.String(name, value)) })
	return slog.GroupValue(attrs...)
}

// Each calls f with the name and the value of each known field, but for User.
func (s *Summary) Each(f func(name, value string)) {
	for _, name := range [...]string{"dialect", "command", "leader", "task", "state", "error", "rule", tracing.IDKey} {
		if value, _ := s.Field(name); value != "" {
			f(name, value)
		}
	}
}

// Field returns a field by its name in a log. It reports whether there is such a field.
func (s *Summary) Field(name string) (value string, ok bool) {
	switch name {
	case "dialect":
		return s.Dialect, true
	case "command":
		return s.Command, true
	case "leader":
		return s.Leader, true
	case "task":
		return s.Task, true
	case "state":
		return string(s.State), true
	case "error":
		return s.Error, true
	case "rule":
		return s.Rule, true
	case tracing.IDKey:
		if !s.Trace.IsValid() {
			return "", true
		}
		return s.Trace.String(), true
	}
	return "", false
}

// summary returns the summary of a call, ended with an error or nil.
func (x *exchange) summary(err error) Summary {
	s := Summary{
		Dialect: x.call.Dialect, Command: methodNames[methodOf(&x.call.Call)], Leader: x.call.Leader, User: x.peer.ID,
		State: x.result.Task.Status.State, Trace: trace.SpanContextFromContext(x.ctx).TraceID(),
	}
	if x.decoded {
		s.Task = x.call.Message.TaskID
		if x.call.Op != translate.Command && x.call.Webhook != nil {
			s.Task = x.call.Webhook.TaskID
		}
	}
	if err != nil {
		s.Error = task.KindOf(err).String()
		if refusal, ok := errors.AsType[*policy.Refusal](err); ok {
			s.Rule = refusal.Rule
		}
	}
	return s
}

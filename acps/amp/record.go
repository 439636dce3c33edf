// SPDX-License-Identifier: Apache-2.0

package amp

import (
	"crypto/rand"
	"encoding/hex"
	"maps"
	"time"
)

// Type is a type of record.
type Type string

// The types of records that are written (AMP v02.02 §4.1).
const (
	Heartbeat Type = "heartbeat" // the agent is alive
	Metrics   Type = "metrics"   // how much it has to do, and how calls went
	Access    Type = "access"    // a call
	Audit     Type = "audit"     // a call that changes something, or that was refused; signed
)

// Types are all types.
func Types() []Type { return []Type{Heartbeat, Metrics, Access, Audit} }

// Names says how the members of a record are named.
type Names string

// The ways to name members.
const (
	Camel Names = "camel" // as the specification has it: logType
	Snake Names = "snake" // as the software of ACPs 2.2 has it: log_type
)

// Object is a JSON object: its values are strings, whole numbers, float64s, bools, Objects and lists of them.
type Object = map[string]any

// Record is something that is reported.
type Record struct {
	Type  Type
	AIC   string    // of the Partner
	At    time.Time // when it happened
	Trace Trace
	// Correlation is the task; empty for none.
	Correlation string
	Severity    Severity
	Body        Object
}

// Trace is the span of a call, in hexadecimal digits; empty for none.
type Trace struct{ ID, Span string }

// Severity is how grave a record is, by the numbers of the specification.
type Severity int

// The severities that are used; 0 says nothing.
const (
	Info  Severity = 9
	Warn  Severity = 13
	Error Severity = 17
)

var severities = map[Severity]string{Info: "INFO", Warn: "WARN", Error: "ERROR"}

// schemaVersion is the version of the form of records.
var schemaVersion = map[Names]string{Camel: "1.0.0", Snake: "1.0"}

// snake are the members of a record that have another name in snake case.
var snake = map[string]string{
	"schemaVersion": "schema_version", "logId": "log_id", "logType": "log_type", "traceId": "trace_id",
	"spanId": "span_id", "correlationId": "correlation_id", "severityText": "severity_text",
	"severityNumber": "severity_number",
}

// signed are the members that a signature covers (AMP v02.02 §5.1.2).
var signed = []string{"timestamp", "aic", "logId", "traceId", "spanId", "parentSpanId", "correlationId", "logType",
	"body"}

// object returns a record as JSON, with a name of its own, by which a monitor drops what it has twice.
func (r *Record) object(n Names, resource Object) Object {
	o := Object{
		"schemaVersion": schemaVersion[n], "timestamp": timestamp(r.At), "aic": r.AIC, "logId": newID(r.At),
		"logType": string(r.Type), "body": r.Body,
	}
	if r.Trace.ID != "" {
		o["traceId"], o["spanId"] = r.Trace.ID, r.Trace.Span
	}
	if r.Correlation != "" {
		o["correlationId"] = r.Correlation
	}
	if r.Severity != 0 {
		o["severityText"], o["severityNumber"] = severities[r.Severity], int(r.Severity)
	}
	if len(resource) > 0 {
		o["resource"] = resource
	}
	if n != Snake {
		return o
	}
	named := make(Object, len(o))
	for name, value := range o {
		if other, ok := snake[name]; ok {
			name = other
		}
		named[name] = value
	}
	return named
}

// toSign returns what is signed of a record.
func toSign(o Object, n Names) Object {
	if n == Snake { // the software of ACPs 2.2 signs all
		return maps.Clone(o)
	}
	part := make(Object, len(signed))
	for _, name := range signed {
		if value, ok := o[name]; ok {
			part[name] = value
		}
	}
	return part
}

// timestamp returns a time as ISO 8601 has it, with a zone.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// newID returns a UUID of version 7, which begins with the time (RFC 9562 §5.7).
func newID(at time.Time) string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	ms := uint64(at.UnixMilli())
	for i := range 6 {
		id[i] = byte(ms >> (8 * (5 - i)))
	}
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	text := hex.EncodeToString(id[:])
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}

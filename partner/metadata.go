// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// metadata is the life-cycle's own record of a task, kept as the metadata of the log in the store. The names of the
// members are stored.
type metadata struct {
	Terms agreedTerms `json:"terms"`
	Ref   agent.Ref   `json:"ref"`
	// OwnSession is set if the agent has made the name of the session in Ref, in this task or in one before.
	OwnSession bool `json:"ownSession,omitempty"`
	// Pending is the start of a task not yet in the answer to any caller: until then the agent may reject it.
	Pending   *task.Message `json:"pending,omitempty"`
	PendingAt time.Time     `json:"pendingAt,omitzero"` // when Pending was received
	Stream    bool          `json:"stream,omitempty"`
	// Tentative is set if the caller of a pending start was answered with a task on which the agent does not work yet.
	Tentative bool   `json:"tentative,omitempty"`
	Revision  string `json:"revision,omitempty"` // of the report that ended the last turn
	// A list of tasks shows these and sorts by them, so it need not read the logs: the state, the time of its beginning,
	// and the session. Without a state the start is pending.
	State        task.State `json:"state,omitempty"`
	Changed      time.Time  `json:"changed,omitzero"`
	Session      string     `json:"session,omitempty"`
	Watched      bool       `json:"watched,omitempty"`      // the Watcher is notified of every change of state
	SelfResuming bool       `json:"selfResuming,omitempty"` // the agent may act unasked while the task awaits input
	// Unsent is set while nothing of the message of the turn has been sent to the agent.
	Unsent bool `json:"unsent,omitempty"`
	// Acknowledged is set if the agent has answered the message of the turn before it acted on it.
	Acknowledged bool `json:"acknowledged,omitempty"`
	// Accepted is set if an answered agent has reported its work on the task.
	Accepted bool `json:"accepted,omitempty"`
	// Unreported is set if the task was shown to its Leader before any report of the agent.
	Unreported bool `json:"unreported,omitempty"`
	// Kept is set if the agent had been seen to keep tasks by the beginning of the turn (Keeper).
	Kept bool `json:"kept,omitempty"`
	// Open are the ids of the products without a last piece, of whole reports; nil for none. The slice is never changed:
	// metadata are compared.
	Open *[]string `json:"open,omitempty"`
	// WithoutTask is set if the agent has answered the start by a message, and has made no task.
	WithoutTask bool `json:"withoutTask,omitempty"`
	// Proof is the Leader's proof of its identity with the last start or continue.
	Proof string `json:"proof,omitempty"`
	// Trace is the trace of the start; zero for none.
	Trace traceID `json:"trace,omitzero"`
	// Subject is the one for whom the Leader acted with it; empty if the Leader acts for itself, or if the gateway does
	// not name it to the agent.
	Subject string `json:"subject,omitempty"`
}

// agreedTerms are the terms of a task, with the lasting part of the policy of its start.
type agreedTerms struct {
	task.Terms
	AutoComplete    bool `json:"autoComplete,omitempty"`
	AnswerIsProduct bool `json:"answerIsProduct,omitempty"`
	Direct          bool `json:"direct,omitempty"`
}

// encodedMetadata is the JSON of a metadata.
type encodedMetadata struct {
	of   *metadata // nil for the first: most tasks are written once
	json []byte    // never changed: the store and logState keep it
}

// encodeMetadata returns the JSON of the task's metadata. Most writes do not change it. tk.mu is held.
func (tk *activeTask) encodeMetadata() []byte {
	e := &tk.encoded
	if e.of != nil && *e.of == tk.meta {
		return e.json
	}
	if e.json != nil {
		of := tk.meta
		e.of = &of
	}
	e.json = tk.meta.encode()
	return e.json
}

// encode returns the JSON for json.Unmarshal.
func (n *metadata) encode() []byte {
	w := writes.Get().(*write)
	defer w.release()
	w.buf = n.append(w.buf)
	return bytes.Clone(w.buf)
}

// append appends the JSON to dst. It is written by hand, because every turn writes it twice.
func (n *metadata) append(dst []byte) []byte {
	dst = append(dst, `{"terms":{"response":`...)
	dst = strconv.AppendInt(dst, int64(n.Terms.Response), 10)
	dst = append(dst, `,"awaitingInput":`...)
	dst = strconv.AppendInt(dst, int64(n.Terms.AwaitingInput), 10)
	dst = append(dst, `,"awaitingCompletion":`...)
	dst = strconv.AppendInt(dst, int64(n.Terms.AwaitingCompletion), 10)
	dst = append(dst, `,"maxProductsBytes":`...)
	dst = strconv.AppendInt(dst, n.Terms.MaxProductsBytes, 10)
	if n.Terms.AutoComplete {
		dst = append(dst, `,"autoComplete":true`...)
	}
	if n.Terms.AnswerIsProduct {
		dst = append(dst, `,"answerIsProduct":true`...)
	}
	if n.Terms.Direct {
		dst = append(dst, `,"direct":true`...)
	}
	dst = append(dst, `},"ref":{"task":`...)
	dst = task.AppendString(dst, n.Ref.Task)
	dst = append(dst, `,"session":`...)
	dst = task.AppendString(dst, n.Ref.Session)
	dst = append(dst, '}')
	if n.OwnSession {
		dst = append(dst, `,"ownSession":true`...)
	}
	if n.Pending != nil {
		dst = append(slices.Grow(dst, 512+int(n.Pending.Size())), `,"pending":`...)
		dst = task.AppendMessage(dst, n.Pending)
		dst = append(dst, `,"pendingAt":`...)
		dst = task.AppendTime(dst, n.PendingAt)
	}
	if n.Stream {
		dst = append(dst, `,"stream":true`...)
	}
	if n.Tentative {
		dst = append(dst, `,"tentative":true`...)
	}
	if n.Revision != "" {
		dst = task.AppendString(append(dst, `,"revision":`...), n.Revision)
	}
	if n.State != task.None {
		dst = task.AppendString(append(dst, `,"state":`...), string(n.State))
		dst = task.AppendTime(append(dst, `,"changed":`...), n.Changed)
		dst = task.AppendString(append(dst, `,"session":`...), n.Session)
	}
	if n.Watched {
		dst = append(dst, `,"watched":true`...)
	}
	if n.SelfResuming {
		dst = append(dst, `,"selfResuming":true`...)
	}
	if n.Unsent {
		dst = append(dst, `,"unsent":true`...)
	}
	if n.Acknowledged {
		dst = append(dst, `,"acknowledged":true`...)
	}
	if n.Accepted {
		dst = append(dst, `,"accepted":true`...)
	}
	if n.Unreported {
		dst = append(dst, `,"unreported":true`...)
	}
	if n.Kept {
		dst = append(dst, `,"kept":true`...)
	}
	if n.Open != nil {
		dst = task.AppendStrings(dst, `,"open":[`, *n.Open)
	}
	if n.WithoutTask {
		dst = append(dst, `,"withoutTask":true`...)
	}
	if n.Proof != "" {
		dst = task.AppendString(append(dst, `,"proof":`...), n.Proof)
	}
	if n.Subject != "" {
		dst = task.AppendString(append(dst, `,"subject":`...), n.Subject)
	}
	if n.Trace != (traceID{}) {
		dst = append(hex.AppendEncode(append(dst, `,"trace":"`...), n.Trace[:]), '"')
	}
	return append(dst, '}')
}

// traceID is the id of a trace, stored in hexadecimal digits.
type traceID trace.TraceID

// String implements fmt.Stringer.
func (t traceID) String() string {
	if t == (traceID{}) {
		return ""
	}
	return trace.TraceID(t).String()
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *traceID) UnmarshalText(text []byte) error {
	id, err := trace.TraceIDFromHex(string(text))
	*t = traceID(id)
	return err
}

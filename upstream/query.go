// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"crypto/rand"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
)

// query is one request of a run, with the client to make it and to read its answer.
type query struct {
	Request
	codec translate.Client
}

// query returns a request about the turn's task, without its body.
func (r *run) query(op translate.Operation) *query { return r.queryOf(op, r.turn) }

// queryOf returns a request about the task of a turn, without its body.
func (r *run) queryOf(op translate.Operation, t *agent.Turn) *query {
	q := translate.Query{
		ID: r.nextID(), Task: t.Ref.Task, Session: t.Ref.Session, Gave: r.gave, Withdrawn: t.Withdrawn,
	}
	switch op {
	case translate.Send, translate.SendStream:
		if q.Turn = true; r.unnamed(t) {
			q.Task = ""
		}
	case translate.Cancel:
		q.Cancel = true
	case translate.Describe, translate.List:
		q.Task, q.Session = "", ""
	}
	of := &query{
		Request: Request{Operation: op, Ref: t.Ref, Caller: t.Caller, IdleTimeout: r.config.IdleTimeout},
		codec:   r.codec.For(q),
	}
	if a := r.facets.Activator; a != nil && len(t.Message.Extensions) > 0 {
		of.Fields = a.Activate(t)
	}
	return of
}

// requestIDs returns a function for ids. Each is unlike the id of any other request, of this process or another one. It
// may be called by any number of goroutines at once.
func requestIDs() func() string {
	prefix := strings.ToLower(rand.Text()[:12]) + "-"
	var last atomic.Uint64
	return func() string {
		var buf [40]byte
		return string(strconv.AppendUint(append(buf[:0], prefix...), last.Add(1), 10))
	}
}

// asked is the exchange of a query.
type asked struct {
	Exchange
	codec translate.Client // of the query
	trial *Trial           // notes the answer; nil for none
}

// Next implements Exchange.
func (x asked) Next() (Message, error) {
	m, err := x.Exchange.Next()
	if x.trial != nil {
		x.trial.note(x.Streams(), err)
	}
	return m, err
}

// maxOtherAnswers is the number of answers to other requests for a turn to be given up: then the reason is not
// connections that have lost their step.
const maxOtherAnswers = 3

// refused returns the error for a message of the agent not understood by the codec, or for an error in it, without the
// Secrets.
func (r *run) refused(x asked, err error) error {
	if errors.Is(err, translate.ErrOtherAnswer) {
		return r.paired(err)
	}
	return x.Explain(r.config.Secrets.HideIn(err))
}

// paired returns the error for an answer to another request; from any other error it only takes the Secrets. The answer
// may be one to another Leader, on a connection that has lost its step. So the agent is asked again, on another one.
func (r *run) paired(err error) error {
	err = r.config.Secrets.HideIn(err)
	if !errors.Is(err, translate.ErrOtherAnswer) {
		return err
	}
	r.logger().LogAttrs(r.ctx, slog.LevelWarn, "the agent has answered another request; the connection is closed",
		slog.Any("error", err))
	if r.others++; r.others >= maxOtherAnswers {
		return Failed(task.InvalidAgentResponse, NoReason, err, "the agent's answers are not those to its requests; it "+
			"must answer each with the id that this has, and about the task that this names")
	}
	return Failed(task.InvalidAgentResponse, OtherAnswer, err, "the agent has answered another request than this one")
}

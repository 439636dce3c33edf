// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"log/slog"
	"strings"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// A start has the session's name. It is the gateway's, unless the agent has made one. An agent may refuse it
// (translate.SessionNamer), and name the session in its answer.

// refusesSession reports whether the agent has answered the message of a start by an error about the name of the
// session, and so has done nothing. A message that the agent may have received before is not sent once more for that.
func (r *run) refusesSession(err error) bool {
	if r.Endpoint == nil || r.facets.SessionNamer == nil || r.turn.Ref.Session == "" || r.doubted || r.heard ||
		ReasonOf(err) != Refused {
		return false
	}
	switch task.KindOf(err) {
	case task.TaskNotFound: // nothing else can be unknown to such an agent
		return r.unnamed(r.turn) || namesSession(err)
	case task.InvalidParams, task.UnsupportedOperation:
		return namesSession(err)
	}
	return false
}

// namesSession reports whether an error speaks of a session. The window of a model, called the context by agents, is
// none.
func namesSession(err error) bool {
	text := strings.NewReplacer("session", "context", "_", "", " ", "", "-", "").Replace(strings.ToLower(err.Error()))
	for _, phrase := range [...]string{
		"contextid", "contextnotfound", "contextdoesnotexist", "unknowncontext", "nosuchcontext",
	} {
		if strings.Contains(text, phrase) {
			return true
		}
	}
	return false
}

// dropSession leaves the session's name out of the message, to be sent again. After refusing a name of the gateway, an
// agent gets no more of them while it is known by this endpoint (Endpoint.sessionless).
func (r *run) dropSession(err error) {
	r.logger().LogAttrs(r.ctx, slog.LevelInfo, "the agent does not take the name of the session; it is left to the agent",
		slog.Bool("own", r.turn.OwnSession), slog.Any("error", err))
	if !r.turn.OwnSession {
		r.sessionless.Store(true)
	}
	r.withoutSession()
}

// maySaySession reports whether a start may have the session's name. A name made by the agent in an earlier process or
// configuration may be another Leader's session's by now, since some agents count from 1 when they start.
func (r *run) maySaySession() bool {
	if !r.turn.OwnSession {
		return !r.sessionless.Load()
	}
	return r.takesSession(r.turn.Ref.Session)
}

// takesSession takes the agent's name for a session, and reports whether no other Leader has it.
func (r *run) takesSession(name string) bool {
	by := holderOf(r.turn.Leader, false)
	of, had := r.sessions.take(name, by)
	return !had || of == by
}

// claimSession leaves the name at this task if the agent has given it to another Leader's session: the two must not
// meet in later tasks.
func (r *run) claimSession(rep *agent.Report) {
	if !rep.OwnSession {
		return
	}
	if rep.OwnSession = r.takesSession(rep.Ref.Session); !rep.OwnSession {
		r.logger().LogAttrs(r.ctx, slog.LevelWarn,
			"the agent gives sessions of several Leaders the same name; only the first goes on by it")
	}
}

// withoutSession leaves the name of the session to the agent.
func (r *run) withoutSession() {
	t := *r.turn
	t.Ref.Session, t.OwnSession = "", false
	r.turn = &t
}

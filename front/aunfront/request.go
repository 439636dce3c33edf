// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/codes"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/task"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// request is a request under way, and its entry in the log.
type request struct {
	*aun.Request
	summary gateway.Summary
}

// note takes over the summary of an answer. The caller may be another one than the owner of the task, in whose name the
// gateway was called.
func (r *request) note(a *gateway.Answer) {
	if user := r.summary.User; a.Summary != (gateway.Summary{}) {
		r.summary = a.Summary
		r.summary.User = user
	}
}

// Request implements aun.Handler: it answers a request of the client.
func (s *Session) Request(ctx context.Context, incoming *aun.Request) {
	began := time.Now()
	defer s.called()()
	r := &request{Request: incoming}
	if err := s.standing(); err != nil {
		s.fail(r, err)
	} else if s.loggedIn() {
		r.summary = gateway.Summary{Dialect: codec.Name, Leader: s.Peer.Leader(), User: s.Peer.ID}
		s.execute(ctx, r)
	} else {
		s.executeBeforeLogin(ctx, r)
	}
	log, level := s.access, slog.LevelInfo
	if log == nil {
		log, level = s.front.config.Log, slog.LevelDebug
	}
	log.Log(ctx, level, "a call was answered", "user_id", r.summary.User, "aip", r.summary, "method", r.Method,
		"address", s.address, "duration", time.Since(began))
}

// executeBeforeLogin answers a request of a client before its login.
func (s *Session) executeBeforeLogin(ctx context.Context, r *request) {
	result, closing, err := s.before(r)
	if err == nil {
		_ = r.Reply(result)
		// Not s.loggedIn: the client may send the next request as soon as this one is answered.
		if logsIn(r.Method) && s.front.config.Assignees != nil && !s.isShort() {
			s.front.config.Assignees.Connected(s.AID, func(event []byte) { s.sendOfMany(ctx, event) })
		}
		return
	}
	s.front.config.Log.DebugContext(ctx, "a login was refused", "method", r.Method, "address", s.address, "error", err)
	s.fail(r, err)
	switch closing {
	case 0:
	case aun.CloseShortCapacity:
		s.disconnect(closing, "the login was refused", map[string]any{"quota_kind": "short_connections", "limit": maxShort})
	case aun.CloseQuota:
		s.disconnect(closing, "the login was refused",
			map[string]any{"quota_kind": "aid", "limit": s.front.config.Limits.ConnectionsPerAID})
	default:
		s.conn.Close(closing, "the login was refused")
	}
}

// execute answers a request of a logged-in client.
func (s *Session) execute(ctx context.Context, r *request) {
	namespace, _, _ := strings.Cut(r.Method, ".")
	switch {
	case namespace == "task":
		s.task(ctx, r)
		return
	case r.Method == "meta.ping":
		_ = r.Reply(ping())
		return
	case r.Method == "meta.status":
		_ = r.Reply(s.status())
		return
	case r.Method == "auth.refresh_token":
		result, err := s.refresh(r)
		s.answer(r, result, err)
		return
	}
	service := s.front.service(r.Method)
	if service == nil {
		s.fail(r, aun.Errorf(codes.MethodNotFound, "Method not found"))
		return
	}
	result, err := service.Call(ctx, s, r.Method, r.Params)
	if err != nil && ctx.Err() != nil {
		return // the client has left
	}
	s.answer(r, result, err)
}

// service returns the service of a method, or of an event; nil for none.
func (f *Front) service(method string) Service {
	method = strings.TrimPrefix(method, "event/")
	namespace, _, _ := strings.Cut(method, ".")
	return f.config.Services[namespace]
}

// answer answers a request with a result, or with an error.
func (s *Session) answer(r *request, result []byte, err error) {
	if err != nil {
		s.fail(r, err)
		return
	}
	_ = r.Reply(result)
}

// fail answers a request with an error of AUN, or with one of a kind.
func (s *Session) fail(r *request, err error) {
	if e, ok := errors.AsType[*aun.Error](err); ok {
		r.summary.Error = "aun:" + strconv.FormatInt(e.Code, 10)
		r.Fail(err)
		return
	}
	r.summary.Error = task.KindOf(err).String()
	if task.KindOf(err) == task.Internal {
		s.front.config.Log.Error("a request failed", "method", r.Method, "aid", s.AID, "error", err)
	}
	_ = r.Respond(codec.AppendError(nil, r.ID(), err))
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

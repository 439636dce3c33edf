// SPDX-License-Identifier: Apache-2.0

package wsfront

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/codes"
	"github.com/aip-gateway/aip-gateway/task"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// Request implements aun.Handler: it answers a request of the client.
func (s *Session) Request(ctx context.Context, r *aun.Request) {
	if !s.loggedIn() {
		result, closing, err := s.before(r)
		if err == nil {
			_ = r.Reply(result)
			// Not s.loggedIn: the client may send the next request as soon as this one is answered.
			if logsIn(r.Method) && s.front.config.Assignees != nil {
				s.front.config.Assignees.Connected(s.AID, func(event []byte) { s.sendOfMany(ctx, event) })
			}
			return
		}
		s.front.config.Log.Debug("a login was refused", "method", r.Method, "address", s.address, "error", err)
		s.fail(r, err)
		if closing != 0 {
			s.conn.Close(closing, "the login was refused")
		}
		return
	}
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
		result, err := s.front.config.Authority.Refresh(r.Params)
		s.answer(r, result, err)
		return
	}
	service := s.front.service(r.Method)
	if service == nil {
		s.fail(r, aun.Errorf(codes.MethodNotFound, "Method not found"))
		return
	}
	result, err := service.Call(ctx, s, r.Method, r.Params)
	s.answer(r, result, err)
}

// service returns the service of a method, or of an event; nil for none.
func (f *Front) service(method string) Service {
	method = strings.TrimPrefix(method, "event/")
	namespace, _, _ := strings.Cut(method, ".")
	return f.config.Services[namespace]
}

// answer answers a request with a result, or with an error.
func (s *Session) answer(r *aun.Request, result []byte, err error) {
	if err != nil {
		s.fail(r, err)
		return
	}
	_ = r.Reply(result)
}

// fail answers a request with an error of AUN, or with one that has a kind.
func (s *Session) fail(r *aun.Request, err error) {
	if _, ok := errors.AsType[*aun.Error](err); ok {
		r.Fail(err)
		return
	}
	if task.KindOf(err) == task.Internal {
		s.front.config.Log.Error("a request failed", "method", r.Method, "aid", s.AID, "error", err)
	}
	_ = r.Respond(codec.AppendError(nil, r.ID(), err))
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

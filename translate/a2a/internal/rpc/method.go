// SPDX-License-Identifier: Apache-2.0

// Package rpc is JSON-RPC of callers of the versions before 1.0: it distinguishes and reads requests, and writes
// errors.
package rpc

import (
	"slices"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/version"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// The methods of v0.1, 0.2 and 0.3 alike.
const (
	Get         = "tasks/get"
	Cancel      = "tasks/cancel"
	Resubscribe = "tasks/resubscribe"
)

// Route returns the route of a path: all methods are called at the mount point.
func Route(method, path string) (r translate.Route, ok bool) {
	if path != "" {
		return r, false
	}
	if method != "POST" {
		r.Allow = "POST"
	}
	return r, true
}

// Matches reports whether a request is of generation g. No other generation has its own methods. For the methods of
// all, the version named by the caller decides, then the maker of the task's id: in v0.1 the caller, in later versions
// the gateway.
func Matches(req *translate.Request, g version.Generation, own ...string) bool {
	named := version.Unknown
	if req.Version != "" {
		if named = version.Parse(req.Version); named != version.Legacy && named != version.V03 {
			return false
		}
	}
	switch req.Method {
	case Get, Cancel, Resubscribe:
	default:
		return slices.Contains(own, req.Method)
	}
	if named == version.Unknown {
		named = version.Legacy
		if id := jsonrpc.Member(req.Params, "id"); id.Type == gjson.String && translate.MadeHere(id.Str) {
			named = version.V03
		}
	}
	return named == g
}

// Begin appends a request to an agent up to the task's id in its params.
func Begin(dst []byte, q *translate.Query, method, taskID string) []byte {
	dst = wire.BeginRequest(dst, q, taskID, method)
	return task.AppendString(append(dst, `{"id":`...), taskID)
}

// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"slices"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// The methods that v0.1, 0.2 and 0.3 share.
const (
	rpcGet         = "tasks/get"
	rpcCancel      = "tasks/cancel"
	rpcResubscribe = "tasks/resubscribe"
)

// rpcRoute returns the route of a path: all methods are called at the mount point.
func rpcRoute(method, path string) (r translate.Route, ok bool) {
	if path != "" {
		return r, false
	}
	if method != "POST" {
		r.Allow = "POST"
	}
	return r, true
}

// rpcMatches reports whether a request is of generation g, which alone has the methods own. For the methods that
// versions share, the version that the caller names decides, and then who made the task's id: in v0.1 its caller, in
// later versions the gateway.
func rpcMatches(req *translate.Request, g verGeneration, own ...string) bool {
	named := verUnknown
	if req.Version != "" {
		if named = generationOf(req.Version); named != verLegacy && named != verV03 {
			return false
		}
	}
	switch req.Method {
	case rpcGet, rpcCancel, rpcResubscribe:
	default:
		return slices.Contains(own, req.Method)
	}
	if named == verUnknown {
		named = verLegacy
		if id := memberOf(req.Params, "id"); id.Type == gjson.String && translate.MadeHere(id.Str) {
			named = verV03
		}
	}
	return named == g
}

// rpcBegin appends a request up to the task's id in its params. The request's own id is the task's too, which makes a
// capture of the wire readable.
func rpcBegin(dst []byte, method, taskID string) []byte {
	var room [96]byte
	id := task.AppendString(room[:0], taskID)
	dst = jsonrpc.BeginRequest(dst, id, method)
	dst = append(dst, `{"id":`...)
	return append(dst, id...)
}

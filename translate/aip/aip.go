// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

type server struct{}

// Server returns the side of AIP v01.00 towards Leaders.
func Server() translate.Server { return server{} }

// name is the name of the dialect.
const name = "aip"

// Name implements translate.Server.
func (server) Name() string { return name }

// The methods of AIP v01.00 (§6, §7). Each is the path of its calls, too.
const (
	methodRPC                = "rpc"
	methodStream             = "stream"
	methodGroup              = "group"
	methodNotificationSet    = "notification/set"
	methodNotificationDelete = "notification/delete"
	methodNotificationGet    = "notification/get"
	methodNotificationStart  = "notification/start"
)

// Route implements translate.Server.
func (server) Route(method, path string) (r translate.Route, ok bool) {
	switch path {
	case "":
	case methodRPC, methodStream, methodGroup,
		methodNotificationSet, methodNotificationDelete, methodNotificationGet, methodNotificationStart:
		r.Method = path
	default:
		return r, false
	}
	if method != "POST" {
		r.Allow = "POST"
	}
	return r, true
}

// Matches implements translate.Server: AIP's methods are the paths of AIP.
func (s server) Matches(req *translate.Request) bool {
	_, ok := s.Route("POST", req.Method)
	return ok && req.Method != ""
}

// streams and answers report the methods for a command: a re-stream is answered by a stream only, and a command to end
// or show a task by the Task only (§6.2.6).
func streams(c task.Command) bool {
	return c == task.Start || c == task.Continue || c == task.ReStream
}

func answers(c task.Command) bool { return c != task.ReStream }

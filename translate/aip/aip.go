// SPDX-License-Identifier: Apache-2.0

// Package aip is the dialect AIP v01.00, whose words are the canon's own.
package aip

import (
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

type server struct{}

// Server returns the side of AIP v01.00 towards Leaders.
func Server() translate.Server { return server{} }

// Name implements translate.Server.
func (server) Name() string { return "aip" }

// The methods of AIP v01.00 (§6, §7). Each is the path that it is called on, too.
const (
	methodRPC                = "rpc"
	methodStream             = "stream"
	methodGroup              = "group"
	methodNotificationSet    = "notification/set"
	methodNotificationDelete = "notification/delete"
	methodNotificationGet    = "notification/get"
	methodNotificationStart  = "notification/start"
)

// Method implements translate.Server.
func (server) Method(path string) (method string, any, ok bool) {
	switch path {
	case "":
		return "", true, true
	case methodRPC, methodStream, methodGroup,
		methodNotificationSet, methodNotificationDelete, methodNotificationGet, methodNotificationStart:
		return path, false, true
	}
	return "", false, false
}

// streams and answers tell which commands may be given by which method: a re-stream has nothing but a stream
// for an answer, and what ends or shows a task is answered by the Task (§6.2.6).
func streams(c task.Command) bool {
	return c == task.Start || c == task.Continue || c == task.ReStream
}

func answers(c task.Command) bool { return c != task.ReStream }

// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// AIP v02.00 to v02.02 is the dialect aip/2. It has the states, commands, data items, errors and paths of v01.00, in
// other envelopes: a command is a TaskCommand, and everything from a Partner is a Message, even its TaskResult, so it
// has an id, a time and a sender.

// nameV2 is the name of the dialect.
const nameV2 = "aip/2"

// pathInvitation is a path of invitations; the other one is methodGroup.
const pathInvitation = "group/rpc"

// The types of objects in v02.
const (
	typeCommand = "task-command"
	typeResult  = "task-result"
	typeStatus  = "task-status-update"
	typeChunk   = "product-chunk"
)

// serverV2 answers as server does if the versions agree.
type serverV2 struct {
	server
	sender func() string
}

// ServerV2 returns the side of AIP v02 towards Leaders. aic is the Partner's own AIC, the senderId of its messages.
func ServerV2(aic string) translate.Server { return ServerV2As(func() string { return aic }) }

// ServerV2As is ServerV2 for a Partner with its AIC known later. sender returns it; nil: there is none.
func ServerV2As(sender func() string) translate.Server {
	if sender == nil {
		return ServerV2("")
	}
	return &serverV2{sender: sender}
}

// Name implements translate.Server.
func (*serverV2) Name() string { return nameV2 }

// Route implements translate.Server: v02's SDK sends invitations to a path of their own.
func (s *serverV2) Route(method, path string) (translate.Route, bool) {
	if path != pathInvitation {
		return s.server.Route(method, path)
	}
	r, ok := s.server.Route(method, methodGroup)
	return r, ok
}

// Matches implements translate.Server. The versions share their methods, so a request is known by the place or the type
// of its command, and an invitation by the AIC of its Leader. Requests about webhooks are the same in all versions, and
// are left to v01.00.
func (*serverV2) Matches(req *translate.Request) bool {
	switch req.Method {
	case methodRPC, methodStream, methodNotificationStart:
	case methodGroup:
		return dotted(jsonrpc.Member(jsonrpc.Member(jsonrpc.Member(req.Params, "group"), "leader"), "aic").Str)
	default:
		return false
	}
	if !req.Params.IsObject() {
		return false
	}
	if !wire.Absent(jsonrpc.Member(req.Params, "command")) {
		return true
	}
	message := jsonrpc.Member(req.Params, "message")
	return message.IsObject() && jsonrpc.Member(message, "type").Str == typeCommand
}

// errorsV2 are the errors with other codes in v02: those of its SDK.
var errorsV2 = map[task.Kind]errorForm{
	task.InvitationRejected: {-32020, "Invitation rejected by partner policy", "INVITATION_REJECTED"},
	task.ConnectionFailed:   {-32021, "Connection failed", "CONNECTION_FAILED"},
}

// errorV2 returns the form of an error in v02.
func errorV2(k task.Kind) errorForm {
	if w, ok := errorsV2[k]; ok {
		return w
	}
	return errorTable[k]
}

// AppendError implements translate.Server.
func (*serverV2) AppendError(dst []byte, id jsonrpc.ID, err error) []byte {
	e := wire.ErrorOf(err)
	w := errorV2(e.Kind)
	return appendError(dst, id, e, &w)
}

// AppendInvitationError implements translate.GroupServer.
func (*serverV2) AppendInvitationError(dst []byte, id jsonrpc.ID, err error) []byte {
	e := wire.ErrorOf(err)
	return appendInvitationError(dst, id, e, errorV2(e.Kind))
}

// StreamsErrors implements translate.ErrorStreamer: the reference's Leaders read the lines of a stream, and take the
// end of an answer without any for the end of the task's events.
func (*serverV2) StreamsErrors(r *translate.Refused) bool {
	return r.Events && (r.Stream || r.Method == methodStream)
}

// v2 is the form of commands in v02: a TaskCommand.
var v2 = version{
	name: nameV2, command: typeCommand, other: name, otherCommand: "message", member: "command",
	responseTimeout: "timeout", lastMessageSentAt: "lastCommandSentAt",
}

// Decode implements translate.Server.
func (*serverV2) Decode(req *translate.Request) (translate.Call, error) { return decode(req, &v2) }

// ClientV2 returns the side of AIP v02 towards a Partner, with the gateway as its Leader. The rules of Client hold
// here, too.
//
// A continue is never asked to be answered by a stream: the reference SDK has streams for start and re-stream only.
func ClientV2(sender string) translate.Client {
	return &client{
		name: nameV2, sender: sender, appendRequest: appendCommandRequest,
		lastMessage: "lastCommandSentAt",
	}
}

// appendCommandRequest appends an RpcRequest, with the command as the member command, or a StreamRequest, with the
// command still as the member message.
func appendCommandRequest(dst []byte, q *translate.Query, method string, m *task.Message) []byte {
	dst = wire.BeginRequest(dst, q, m.TaskID, method)
	if method == methodStream {
		dst = append(dst, `{"message":`...)
	} else {
		dst = append(dst, `{"command":`...)
	}
	dst = appendCommand(dst, m)
	return jsonrpc.End(append(dst, '}'))
}

// appendCommand appends a TaskCommand: a Message of v01.00 of another type.
func appendCommand(dst []byte, m *task.Message) []byte {
	dst = append(dst, `{"type":"`+typeCommand+`"`...)
	if len(m.Mentions) == 1 && m.Mentions[0] == "all" { // v02 has a word in place of the canon's list of it
		dst = append(dst, `,"mentions":"all"`...)
		others := *m
		others.Mentions = nil
		m = &others
	}
	at := len(dst)
	dst = form.AppendMessage(dst, m)
	return append(dst[:at], dst[at+len(`{"type":"message"`):]...) // the other members follow the type
}

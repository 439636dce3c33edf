// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Decode implements translate.Server.
func (s *serverV2) Decode(req *translate.Request) (translate.Call, error) {
	if req.Check() != nil {
		return s.server.Decode(req)
	}
	var r reader
	var call translate.Call
	switch req.Method {
	case methodRPC, methodStream:
		call = r.callV2(req.Params, req.Method == methodStream)
	case methodNotificationStart:
		call = r.notificationStartV2(req.Params)
	case methodNotificationSet:
		call = r.notificationSet(req.Params)
		call.Webhook.Dialect = nameV2
	default:
		return s.server.Decode(req)
	}
	if r.err != nil {
		return translate.Call{}, r.err
	}
	return call, nil
}

// taskCommand finds the TaskCommand in params, and its path. Which of the members command and message holds it
// differs by method and by version, so both are taken, but not both at once.
func (r *reader) taskCommand(params gjson.Result) (v gjson.Result, at string) {
	const command, message = "params.command", "params.message"
	if !params.IsObject() {
		r.fail("params", "params must be an object with the member command")
		return v, "params"
	}
	v, at = member(params, "command"), command
	if other := member(params, "message"); absent(v) && !absent(other) {
		v, at = other, message
	} else if !absent(other) {
		r.fail(message, "message must be left out where there is a command")
	}
	if !v.IsObject() {
		r.fail(at, "%s must be an object", last(at))
	}
	return v, at
}

// moved puts an error in a Message of v01.00, which stands at params.message, to where the command stands.
func (r *reader) moved(at string) {
	if r.err == nil {
		return
	}
	if rest, ok := strings.CutPrefix(r.err.Field, "params.message."); ok {
		r.err.Field = at + "." + rest
	}
}

// callV2 reads the params of rpc and stream.
func (r *reader) callV2(params gjson.Result, stream bool) translate.Call {
	call := translate.Call{Stream: stream}
	command, at := r.taskCommand(params)
	if r.err != nil {
		return call
	}
	defer r.moved(at)
	const m = "params.message."
	f := fieldsOf(command)
	if r.text(f.kind, m+"type") != typeCommand && !absent(f.kind) {
		r.fail(m+"type", "type must be %q", typeCommand)
	}
	if r.text(f.senderRole, m+"senderRole") != string(task.Leader) && !absent(f.senderRole) {
		r.fail(m+"senderRole", `senderRole must be "leader": only a Leader gives commands`)
	}
	message := &call.Message
	message.Command, message.SenderRole = r.command(f.command, stream), task.Leader
	message.ID = r.id(f.id, m+"id")
	message.SenderID = r.requiredID(f.senderID, m+"senderId")
	message.TaskID = r.requiredID(f.taskID, m+"taskId") // v02 lets a Partner refuse a start without it
	message.SessionID = r.id(f.sessionID, m+"sessionId")
	message.GroupID = r.id(f.groupID, m+"groupId")
	message.SentAt = r.time(f.sentAt, m+"sentAt")
	if r.err != nil {
		return call
	}
	own(&message.ID, &message.SenderID, &message.TaskID, &message.SessionID, &message.GroupID)
	message.Mentions = r.mentions(f.mentions)
	if r.err == nil {
		message.DataItems = r.items(f.items)
	}
	message.Params = r.object(f.params, m+"commandParams")
	message.Extensions = f.rest.extra(task.MessageWords)
	if r.err == nil && !absent(f.params) {
		r.commandParamsV2(f.params, &call)
	}
	return call
}

// commandParamsV2 reads those parameters that the message's command has.
func (r *reader) commandParamsV2(params gjson.Result, call *translate.Call) {
	const at = "params.message.commandParams."
	params.ForEach(func(key, v gjson.Result) bool {
		switch call.Message.Command {
		case task.Start:
			switch key.Str {
			case "timeout":
				call.Terms.Response = r.milliseconds(v, at+"timeout")
			case "maxProductsBytes":
				call.Terms.MaxProductsBytes = r.count(v, at+"maxProductsBytes")
			}
		case task.Get:
			switch key.Str {
			case "lastCommandSentAt":
				call.MessagesAfter = r.time(v, at+"lastCommandSentAt")
			case "lastStateChangedAt":
				call.StatesAfter = r.time(v, at+"lastStateChangedAt")
			}
		case task.ReStream:
			if key.Str == "lastEventSeq" {
				call.AfterSeq = uint64(r.count(v, at+"lastEventSeq"))
			}
		}
		return true
	})
}

// notificationStartV2 reads a start whose parameters name a webhook.
func (r *reader) notificationStartV2(params gjson.Result) translate.Call {
	call := r.callV2(params, false)
	if r.err != nil {
		return call
	}
	command, at := r.taskCommand(params)
	if call.Message.Command != task.Start {
		r.fail(at+".command", "command must be start; give others by the method %s", methodRPC)
		return call
	}
	at += ".commandParams"
	terms := member(command, "commandParams")
	if !terms.IsObject() {
		r.fail(at, "commandParams must be an object with the member notificationConfigId")
		return call
	}
	w := &task.Webhook{TaskID: call.Message.TaskID, Dialect: nameV2}
	w.ID = r.requiredID(member(terms, "notificationConfigId"), at+".notificationConfigId")
	own(&w.ID)
	w.States = r.states(member(terms, "notifyOnStates"), at+".notifyOnStates")
	call.Webhook = w
	return call
}

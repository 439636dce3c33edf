// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"math"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Decode implements translate.Server.
func (server) Decode(req *translate.Request) (translate.Call, error) { return decode(req, &v1) }

// version is the form of commands in a version of AIP.
type version struct {
	name    string // of the dialect
	command string // the type of a command
	// other and otherCommand are the name of the other version, and the type of its commands.
	other, otherCommand string
	// member is the member of the params with the command.
	member string

	// The different names of the members of commandParams; empty if the version has none.
	responseTimeout, awaitingInputTimeout, awaitingCompletionTimeout, lastMessageSentAt string
}

// v1 is AIP v01.00: a command is a Message (§4.3), the member message of the params.
var v1 = version{
	name: name, command: "message", other: nameV2, otherCommand: typeCommand, member: "message",
	responseTimeout: "responseTimeout", awaitingInputTimeout: "awaitingInputTimeout",
	awaitingCompletionTimeout: "awaitingCompletionTimeout", lastMessageSentAt: "lastMessageSentAt",
}

// decode reads a request of any version. The Call holds copies.
func decode(req *translate.Request, v *version) (translate.Call, error) {
	if bad := req.Check(); bad != nil {
		return translate.Call{}, task.Errorf(task.InvalidRequest, "%s", bad.Detail).WithField(bad.Field)
	}
	r := reader{Reader: wire.Reader{Prefix: "params."}, version: v}
	var call translate.Call
	switch req.Method {
	case methodRPC, methodStream:
		call, _ = r.call(req.Params, req.Method == methodStream)
	case methodNotificationStart:
		call = r.notificationStart(req.Params)
	case methodNotificationSet:
		call = r.notificationSet(req.Params)
	case methodNotificationGet:
		call = r.notificationID(req.Params, translate.GetWebhooks)
	case methodNotificationDelete:
		call = r.notificationID(req.Params, translate.DeleteWebhooks)
	case methodGroup:
		if !req.Groups {
			return call, task.Errorf(task.GroupNotSupported, "this Partner does not join groups")
		}
		call = r.invitation(req.Params)
	default:
		return call, task.Errorf(task.MethodNotFound,
			"the methods of this Partner are %s, %s and notification/set, get, delete and start", methodRPC, methodStream)
	}
	if r.Err != nil {
		return translate.Call{}, r.Err
	}
	return call, nil
}

// reader reads requests of one version.
type reader struct {
	wire.Reader
	version *version
}

// The prefixes of paths in a command. They are constants, so that a request without an error costs no memory for them.
const (
	inMessage = "params.message."
	inCommand = "params.command."
	inParams  = "commandParams."
)

// find returns the command in the params, and sets the Prefix to its path. In v02 the member command or message holds
// it. This differs by method and by minor version, so both are read, but not both at once.
func (r *reader) find(params gjson.Result) (command gjson.Result) {
	const message = "message"
	at := r.version.member
	if !params.IsObject() {
		r.Fail("", "params must be an object with the member %s", at)
		return command
	}
	command = jsonrpc.Member(params, at)
	if at != message {
		if other := jsonrpc.Member(params, message); wire.Absent(command) {
			if !wire.Absent(other) {
				command, at = other, message
			}
		} else if !wire.Absent(other) {
			r.Fail(message, "message must be left out where there is a command")
		}
	}
	if r.Prefix = inCommand; at == message {
		r.Prefix = inMessage
	}
	switch {
	case command.IsObject():
	case at == message && jsonrpc.Member(params, v2.member).IsObject():
		r.failOther("")
	default:
		r.Fail("", "%s must be an object", at)
	}
	return command
}

// failOther refuses a command of the other version. If a Partner takes both, no such command comes here.
func (r *reader) failOther(field string) {
	r.Fail(field, "this Partner takes no commands of %s; its operator can add that to its callers", r.version.other)
}

// fields are the members of a Message (§4.3) as they were sent.
type fields struct {
	kind, id, sentAt, senderRole, senderID, mentions, command, params, items, taskID, groupID, sessionID gjson.Result

	rest rest
}

func fieldsOf(message gjson.Result) (f fields) {
	jsonrpc.ForEach(message, func(key, v gjson.Result) bool {
		switch key.Str {
		case "type":
			f.kind = v
		case "id":
			f.id = v
		case "sentAt":
			f.sentAt = v
		case "senderRole":
			f.senderRole = v
		case "senderId":
			f.senderID = v
		case "mentions":
			f.mentions = v
		case "command":
			f.command = v
		case "commandParams":
			f.params = v
		case "dataItems":
			f.items = v
		case "taskId":
			f.taskID = v
		case "groupId":
			f.groupID = v
		case "sessionId":
			f.sessionID = v
		default:
			f.rest.add(key.Str, v)
		}
		return true
	})
	return f
}

// call reads the params of rpc and stream (§6.1.1, §6.2.1). It returns the commandParams as well.
func (r *reader) call(params gjson.Result, stream bool) (call translate.Call, commandParams gjson.Result) {
	message := r.find(params)
	if r.Err != nil {
		return call, commandParams
	}
	return r.message(message, stream)
}

// message reads a command. It returns the commandParams as well.
func (r *reader) message(message gjson.Result, stream bool) (call translate.Call, commandParams gjson.Result) {
	call.Stream = stream
	f := fieldsOf(message)
	if f.kind.Str == r.version.otherCommand && r.Prefix == inMessage {
		r.failOther("type")
	}
	r.Word(f.kind, "type", r.version.command)
	if r.Text(f.senderRole, "senderRole") != string(task.Leader) && !wire.Absent(f.senderRole) {
		r.Fail("senderRole", `senderRole must be "leader": only a Leader gives commands`)
	}
	m := &call.Message
	m.Command, m.SenderRole = r.command(f.command, stream), task.Leader
	call.AnswerIsProduct = m.Command == task.Start
	call.Direct = m.Command == task.Start || m.Command == task.Continue
	m.ID = r.ID(f.id, "id")
	m.SenderID = r.RequiredID(f.senderID, "senderId")
	m.TaskID = r.RequiredID(f.taskID, "taskId") // v02 lets a Partner refuse a start without it
	m.SessionID = r.ID(f.sessionID, "sessionId")
	m.GroupID = r.ID(f.groupID, "groupId")
	m.SentAt = r.time(f.sentAt, "sentAt")
	if r.Err != nil {
		return call, f.params
	}
	wire.Own(&m.ID, &m.SenderID, &m.TaskID, &m.SessionID, &m.GroupID)
	m.Mentions = r.mentions(f.mentions)
	m.DataItems = r.items(f.items)
	m.Params = r.JSON(f.params, "commandParams")
	m.Extensions = f.rest.extensions(messageNames)
	if r.Err == nil {
		r.commandParams(f.params, &call)
	}
	return call, f.params
}

func (r *reader) command(v gjson.Result, stream bool) task.Command {
	const field = "command"
	if wire.Absent(v) {
		r.Fail(field, "command is missing; it must be one of %v", task.Commands())
		return task.NoCommand
	}
	c := task.Command(r.Text(v, field))
	for _, known := range task.Commands() {
		if c != known {
			continue
		}
		switch {
		case stream && !streams(known):
			r.Fail(field, "%s is not answered by a stream; call the method %s", known, methodRPC)
		case !stream && !answers(known):
			r.Fail(field, "%s is answered by a stream; call the method %s", known, methodStream)
		}
		return known // not c, which is a view of the body
	}
	r.Fail(field, "command must be one of %v", task.Commands())
	return task.NoCommand
}

// commandParams reads the parameters of the message's command.
func (r *reader) commandParams(params gjson.Result, call *translate.Call) {
	prefix := r.Prefix
	switch prefix {
	case inMessage:
		r.Prefix = inMessage + inParams
	case inCommand:
		r.Prefix = inCommand + inParams
	default:
		r.Prefix = inParams // a message of a group
	}
	wire.Members(params, func(key string, v gjson.Result) {
		if key == "" {
			return // it would be taken for the parameters not in the version
		}
		switch call.Message.Command {
		case task.Start: // StartCommandParams, §4.3
			switch key {
			case r.version.responseTimeout:
				call.Terms.Response = r.milliseconds(v, key)
			case r.version.awaitingInputTimeout:
				call.Terms.AwaitingInput = r.milliseconds(v, key)
			case r.version.awaitingCompletionTimeout:
				call.Terms.AwaitingCompletion = r.milliseconds(v, key)
			case "maxProductsBytes":
				call.Terms.MaxProductsBytes = r.Count(v, key)
			}
		case task.Get: // GetCommandParams, §4.3
			switch key {
			case r.version.lastMessageSentAt:
				call.MessagesAfter = r.time(v, key)
			case "lastStateChangedAt":
				call.StatesAfter = r.time(v, key)
			}
		case task.ReStream: // ReStreamCommandParams, §6.2.5
			if key == "lastEventSeq" {
				call.AfterSeq = uint64(r.Count(v, key))
			}
		}
	})
	r.Prefix = prefix
}

// mentions reads a list of ids, or the word "all" for a list of this word.
func (r *reader) mentions(v gjson.Result) (ids []string) {
	const field = "mentions"
	switch {
	case wire.Absent(v):
		return nil
	case v.Type == gjson.String && v.Str == "all":
		return []string{"all"}
	case !v.IsArray():
		r.Fail(field, `mentions must be an array of ids, or "all"`)
		return nil
	}
	r.Each(v, field, wire.MaxItems, func(one gjson.Result) {
		ids = append(ids, wire.Owned(one, r.RequiredID(one, "")))
	})
	return ids
}

// items reads data items (§4.5).
func (r *reader) items(v gjson.Result) (items []task.DataItem) {
	if wire.Absent(v) {
		return nil
	}
	r.Each(v, "dataItems", wire.MaxItems, func(one gjson.Result) { items = append(items, r.item(one)) })
	return items
}

// item reads one data item.
func (r *reader) item(v gjson.Result) (it task.DataItem) {
	if !v.IsObject() {
		r.Fail("", "a data item must be an object")
		return it
	}
	var kind, text, name, mimeType, uri, bytes, data, metadata gjson.Result
	var others wire.Extensions
	jsonrpc.ForEach(v, func(key, v gjson.Result) bool {
		switch key.Str {
		case "type":
			kind = v
		case "text":
			text = v
		case "name":
			name = v
		case "mimeType":
			mimeType = v
		case "uri":
			uri = v
		case "bytes":
			bytes = v
		case "data":
			data = v
		case "metadata":
			metadata = v
		default:
			others.Add(key.Str, v)
		}
		return true
	})
	switch r.Text(kind, ".type") {
	case string(task.TextItem):
		it.Kind = task.TextItem
		if wire.Absent(text) {
			r.Fail(".text", "text is missing; a data item of type text needs it")
		}
		r.Text(text, ".text")
		wire.OwnText(&it, text)
	case string(task.FileItem):
		it.Kind = task.FileItem
		it.Name = wire.Owned(name, r.Text(name, ".name"))
		it.MIMEType = wire.Owned(mimeType, r.Text(mimeType, ".mimeType"))
		it.URI = wire.Owned(uri, r.Text(uri, ".uri"))
		it.Bytes = wire.Owned(bytes, r.Base64(bytes, ".bytes"))
		switch {
		case it.URI == "" && it.Bytes == "":
			r.Fail(".uri", "a file needs either uri or bytes, and has neither")
		case it.URI != "" && it.Bytes != "":
			r.Fail(".bytes", "a file needs either uri or bytes, and has both")
		}
	case string(task.DataKind):
		it.Kind = task.DataKind
		if wire.Absent(data) {
			r.Fail(".data", "data is missing; a data item of type data needs it")
		}
		it.Data = r.JSON(data, ".data")
	default:
		r.Fail(".type", "type must be text, file or data")
	}
	it.Metadata = others.Join(r.JSON(metadata, ".metadata"), family, itemNames)
	return it
}

// milliseconds reads a duration. One too long to be counted is as long as possible.
func (r *reader) milliseconds(v gjson.Result, field string) time.Duration {
	n := r.Count(v, field)
	if n > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(n) * time.Millisecond
}

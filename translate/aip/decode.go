// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"fmt"
	"math"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Limits of what one message may hold.
const (
	maxID       = 256  // bytes of an id
	maxItems    = 1000 // data items
	maxMentions = 1000
)

// Decode implements translate.Server. The Call holds copies: the request's body may be used for something else
// once Decode has returned.
func (server) Decode(req *translate.Request) (translate.Call, error) {
	if bad := req.Check(); bad != nil {
		return translate.Call{}, task.Errorf(task.InvalidRequest, "%s", bad.Detail).WithField(bad.Field)
	}
	var r reader
	var call translate.Call
	switch req.Method {
	case methodRPC, methodStream:
		call = r.call(req.Params, req.Method == methodStream)
	case methodNotificationStart:
		call = r.notificationStart(req.Params)
	case methodNotificationSet:
		call = r.notificationSet(req.Params)
	case methodNotificationGet:
		call = r.notificationID(req.Params, translate.GetWebhooks)
	case methodNotificationDelete:
		call = r.notificationID(req.Params, translate.DeleteWebhooks)
	case methodGroup:
		return call, task.Errorf(task.GroupNotSupported, "this Partner does not join groups")
	default:
		return call, task.Errorf(task.MethodNotFound, "the methods of this Partner are %s, %s and notification/set, get, delete and start", methodRPC, methodStream)
	}
	if r.err != nil {
		return translate.Call{}, r.err
	}
	return call, nil
}

// fields are the members of a Message (§4.3) as they were sent.
type fields struct {
	kind, id, sentAt, senderRole, senderID, mentions, command, params, items, taskID, groupID, sessionID gjson.Result

	rest rest
}

func fieldsOf(message gjson.Result) (f fields) {
	message.ForEach(func(key, v gjson.Result) bool {
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

// call reads the params of rpc and stream (§6.1.1, §6.2.1).
func (r *reader) call(params gjson.Result, stream bool) translate.Call {
	call := translate.Call{Stream: stream}
	if !params.IsObject() {
		r.fail("params", "params must be an object with the member message")
		return call
	}
	message := member(params, "message")
	if !message.IsObject() {
		r.fail("params.message", "message must be an object")
		return call
	}
	f := fieldsOf(message)
	if r.text(f.kind, "params.message.type") != "message" && !absent(f.kind) {
		r.fail("params.message.type", `type must be "message"`)
	}
	if r.text(f.senderRole, "params.message.senderRole") != string(task.Leader) && !absent(f.senderRole) {
		r.fail("params.message.senderRole", `senderRole must be "leader": only a Leader gives commands`)
	}
	command := r.command(f.command, stream)

	m := &call.Message
	m.Command, m.SenderRole = command, task.Leader
	m.ID = r.id(f.id, "params.message.id")
	m.SenderID = r.requiredID(f.senderID, "params.message.senderId")
	m.TaskID = r.requiredID(f.taskID, "params.message.taskId")
	m.SessionID = r.id(f.sessionID, "params.message.sessionId")
	m.GroupID = r.id(f.groupID, "params.message.groupId")
	m.SentAt = r.time(f.sentAt, "params.message.sentAt")
	if r.err != nil {
		return call
	}
	own(&m.ID, &m.SenderID, &m.TaskID, &m.SessionID, &m.GroupID)
	m.Mentions = r.mentions(f.mentions)
	if r.err == nil {
		m.DataItems = r.items(f.items)
	}
	m.Params = r.object(f.params, "params.message.commandParams")
	m.Extensions = f.rest.extra(task.MessageWords)
	r.commandParams(f.params, &call)
	return call
}

func (r *reader) command(v gjson.Result, stream bool) task.Command {
	const field = "params.message.command"
	if absent(v) {
		r.fail(field, "command is missing; it must be one of %v", task.Commands())
		return task.NoCommand
	}
	c := task.Command(r.text(v, field))
	for _, known := range task.Commands() {
		if c != known {
			continue
		}
		switch {
		case stream && !streams(known):
			r.fail(field, "%s is not answered by a stream; call the method %s", known, methodRPC)
		case !stream && !answers(known):
			r.fail(field, "%s is answered by a stream; call the method %s", known, methodStream)
		}
		return known // not c, which is a view of the body
	}
	r.fail(field, "command must be one of %v", task.Commands())
	return task.NoCommand
}

// commandParams reads those parameters that the message's command has.
func (r *reader) commandParams(params gjson.Result, call *translate.Call) {
	if absent(params) {
		return
	}
	const at = "params.message.commandParams."
	params.ForEach(func(key, v gjson.Result) bool {
		switch call.Message.Command {
		case task.Start: // StartCommandParams, §4.3
			switch key.Str {
			case "responseTimeout":
				call.Terms.Response = r.milliseconds(v, at+"responseTimeout")
			case "awaitingInputTimeout":
				call.Terms.AwaitingInput = r.milliseconds(v, at+"awaitingInputTimeout")
			case "awaitingCompletionTimeout":
				call.Terms.AwaitingCompletion = r.milliseconds(v, at+"awaitingCompletionTimeout")
			case "maxProductsBytes":
				call.Terms.MaxProductsBytes = r.count(v, at+"maxProductsBytes")
			}
		case task.Get: // GetCommandParams, §4.3
			switch key.Str {
			case "lastMessageSentAt":
				call.MessagesAfter = r.time(v, at+"lastMessageSentAt")
			case "lastStateChangedAt":
				call.StatesAfter = r.time(v, at+"lastStateChangedAt")
			}
		case task.ReStream: // ReStreamCommandParams, §6.2.5
			if key.Str == "lastEventSeq" {
				call.AfterSeq = uint64(r.count(v, at+"lastEventSeq"))
			}
		}
		return true
	})
}

// mentions reads a list of ids, or the word "all", which stands for a list of that word.
func (r *reader) mentions(v gjson.Result) []string {
	const field = "params.message.mentions"
	switch {
	case absent(v):
		return nil
	case v.Type == gjson.String && v.Str == "all":
		return []string{"all"}
	case !v.IsArray():
		r.fail(field, `mentions must be an array of ids, or "all"`)
		return nil
	}
	var out []string
	v.ForEach(func(_, one gjson.Result) bool {
		if len(out) == maxMentions {
			r.tooMany(field, maxMentions)
			return false
		}
		id := r.requiredID(one, "a mention")
		if r.err != nil {
			r.err.Field = fmt.Sprintf("%s[%d]", field, len(out))
			return false
		}
		out = append(out, owned(one, id))
		return true
	})
	return out
}

// items reads data items (§4.5).
func (r *reader) items(v gjson.Result) []task.DataItem {
	const field = "params.message.dataItems"
	if absent(v) {
		return nil
	}
	if !v.IsArray() {
		r.fail(field, "dataItems must be an array of data items")
		return nil
	}
	var out []task.DataItem
	v.ForEach(func(_, one gjson.Result) bool {
		if len(out) == maxItems {
			r.tooMany(field, maxItems)
			return false
		}
		item := r.item(one)
		if r.err != nil {
			r.err.Field = fmt.Sprintf("%s[%d]%s", field, len(out), r.err.Field)
			return false
		}
		out = append(out, item)
		return true
	})
	return out
}

// item reads one data item. The fields of its errors are relative to it.
func (r *reader) item(v gjson.Result) (it task.DataItem) {
	if !v.IsObject() {
		r.fail("", "a data item must be an object")
		return it
	}
	var kind, text, name, mimeType, uri, bytes, data, metadata gjson.Result
	var others task.Rest
	v.ForEach(func(key, v gjson.Result) bool {
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
			if !absent(v) {
				others.Add(key.Str, v.Raw)
			}
		}
		return true
	})
	switch r.text(kind, ".type") {
	case string(task.TextItem):
		it.Kind = task.TextItem
		if absent(text) {
			r.fail(".text", "text is missing; a data item of type text needs it")
		}
		it.Text = owned(text, r.text(text, ".text"))
	case string(task.FileItem):
		it.Kind = task.FileItem
		it.Name = owned(name, r.text(name, ".name"))
		it.MIMEType = owned(mimeType, r.text(mimeType, ".mimeType"))
		it.URI = owned(uri, r.text(uri, ".uri"))
		it.Bytes = owned(bytes, r.base64(bytes, ".bytes"))
		switch {
		case it.URI == "" && it.Bytes == "":
			r.fail(".uri", "a file needs either uri or bytes, and has neither")
		case it.URI != "" && it.Bytes != "":
			r.fail(".bytes", "a file needs either uri or bytes, and has both")
		}
	case string(task.DataKind):
		it.Kind = task.DataKind
		if absent(data) {
			r.fail(".data", "data is missing; a data item of type data needs it")
		}
		it.Data = r.object(data, ".data")
	default:
		r.fail(".type", "type must be text, file or data")
	}
	it.Metadata = others.Join(r.object(metadata, ".metadata"), family, task.ItemWords)
	return it
}

// milliseconds reads a duration. One that is too long to be counted is as long as can be.
func (r *reader) milliseconds(v gjson.Result, field string) time.Duration {
	n := r.count(v, field)
	if n > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(n) * time.Millisecond
}

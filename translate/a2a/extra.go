// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// family is the name under which an Extra keeps what callers and agents of A2A say beyond the canon: metadata,
// extensions, referenceTaskIds, and all that no version knows. It has the shape that it came in, without what the codec
// understands: that of a Message is of the request's params, with the members message and configuration in it; that of
// a Status is of a TaskStatus, with its message in it. So any version writes what any other has read. What other
// families keep is shown as metadata.
const family wire.Family = "a2a"

// The members that objects have in any version and that mean something there, so that an Extra never sets them. Of
// the params, tenant is among them, because a caller's choice of one is not for the agent. Control is what a
// configuration says to whoever answers, which is the gateway.
const (
	resultWords wire.Names = "id kind type taskId contextId sessionId status artifact artifacts history final append lastChunk " +
		"messageId parts role eventType task message statusUpdate artifactUpdate"
	messageWords    wire.Names = "id kind type messageId role parts content taskId contextId sessionId status artifact final"
	referringWords  wire.Names = messageWords + " referenceTaskIds"
	statusWords     wire.Names = "state message timestamp"
	artifactWords   wire.Names = "kind type artifactId name description parts index append lastChunk"
	legacyPartWords wire.Names = "kind type text file data"
	v1PartWords     wire.Names = "kind type text file data raw url filename mediaType"
	paramsWords     wire.Names = "id message configuration taskId contextId sessionId historyLength pushNotification tenant acceptedOutputModes"
	controlWords    wire.Names = "blocking returnImmediately historyLength pushNotificationConfig pushNotification taskPushNotificationConfig"
	configWords     wire.Names = controlWords + " acceptedOutputModes"
)

// aipState is the gateway's own word in the metadata of tasks. One that comes back is not news.
const aipState = "aipState"

// addResult adds a member of a Task or an event that has no field.
func addResult(r *wire.Extensions, key string, v gjson.Result) {
	if key != "metadata" || !v.IsObject() || !strings.Contains(v.Raw, aipState) {
		r.Add(key, v)
		return
	}
	kept := []byte{'{'}
	v.ForEach(func(key, v gjson.Result) bool {
		if key.Str != aipState {
			if len(kept) > 1 {
				kept = append(kept, ',')
			}
			kept = append(append(append(kept, key.Raw...), ':'), v.Raw...)
		}
		return true
	})
	if len(kept) > 1 {
		r.Add(key, gjson.ParseBytes(append(kept, '}')))
	}
}

// kept returns what an Extra has of a message or a configuration.
func kept(extra json.RawMessage, name string) json.RawMessage {
	return wire.MemberOf(family.Of(extra), name)
}

// appendResultRest appends what was not understood of a Task or an event. state is what its word for a state does not
// say, where that is anything.
func appendResultRest(dst []byte, extra json.RawMessage, state task.State) []byte {
	name := aipState
	if state == task.None {
		name = ""
	}
	return family.AppendWith(dst, family.Of(extra), extra, resultWords, name, string(state))
}

// appendMessageRest appends what was not understood of a message.
func appendMessageRest(dst []byte, extra json.RawMessage) []byte {
	return family.Append(dst, kept(extra, "message"), extra, messageWords)
}

// appendStatusRest appends what was not understood of a status, beside its message.
func appendStatusRest(dst []byte, extra json.RawMessage) []byte {
	return family.Append(dst, family.Of(extra), nil, statusWords)
}

// appendArtifactRest appends what was not understood of an artifact. One of v0.1 has its product's id in its metadata,
// unless the agent uses that name itself.
func appendArtifactRest(dst []byte, extra json.RawMessage, id string) []byte {
	name := ""
	if id != "" {
		name = "productId"
	}
	return family.AppendWith(dst, family.Of(extra), extra, artifactWords, name, id)
}

// appendPartRest appends the metadata of a part, and what was not understood of it.
func appendPartRest(dst []byte, metadata json.RawMessage, known wire.Names) []byte {
	if len(metadata) == 0 {
		return dst
	}
	if own := family.Of(metadata); len(own) > 0 && own[0] == '{' {
		return family.Append(dst, own, metadata, known)
	}
	return append(append(dst, `,"metadata":`...), v1Line(metadata)...)
}

// appendTurnRest appends what was not understood of the message of a turn. ref is the task that it refers to beside
// those that its caller names.
func appendTurnRest(dst []byte, extra json.RawMessage, ref string) []byte {
	if ref == "" {
		return appendMessageRest(dst, extra)
	}
	dst = append(dst, `,"referenceTaskIds":[`...)
	dst = task.AppendString(dst, ref)
	own := kept(extra, "message")
	if list := gjson.ParseBytes(wire.MemberOf(own, "referenceTaskIds")); list.IsArray() {
		list.ForEach(func(_, id gjson.Result) bool {
			if id.Str != ref {
				dst = append(append(dst, ','), id.Raw...)
			}
			return true
		})
	}
	return family.Append(append(dst, ']'), own, extra, referringWords)
}

// appendParamsRest appends what was not understood of a request's params.
func appendParamsRest(dst []byte, extra json.RawMessage) []byte {
	return family.Append(dst, family.Of(extra), nil, paramsWords)
}

// callRest gathers what is not understood of a request.
type callRest struct{ params, message, configuration wire.Extensions }

// extra returns what was gathered, nil where there is nothing.
func (r *callRest) extra() json.RawMessage {
	r.params.AddObject("configuration", &r.configuration, controlWords)
	r.params.AddObject("message", &r.message, messageWords)
	return r.params.JSON(family, paramsWords)
}

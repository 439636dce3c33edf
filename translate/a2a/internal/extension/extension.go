// SPDX-License-Identifier: Apache-2.0

// Package extension keeps what objects of A2A have beyond the canon: what one version reads, any version writes.
package extension

import (
	"encoding/json"
	"slices"
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
	resultMembers wire.Names = "id kind type taskId contextId sessionId status artifact artifacts history final append lastChunk " +
		"messageId parts role eventType task message statusUpdate artifactUpdate"
	messageMembers       wire.Names = "id kind type messageId role parts content taskId contextId sessionId status artifact final"
	referringMembers     wire.Names = messageMembers + " referenceTaskIds"
	statusMembers        wire.Names = "state message timestamp"
	artifactMembers      wire.Names = "kind type artifactId name description parts index append lastChunk"
	PartMembers          wire.Names = "kind type text file data"
	PartMembersV1        wire.Names = "kind type text file data raw url filename mediaType"
	paramsMembers        wire.Names = "id message configuration taskId contextId sessionId historyLength pushNotification tenant acceptedOutputModes"
	controlMembers       wire.Names = "blocking returnImmediately historyLength pushNotificationConfig pushNotification taskPushNotificationConfig"
	configurationMembers wire.Names = controlMembers + " acceptedOutputModes"
)

// aipState is the gateway's own word in the metadata of tasks. One that comes back is not news.
const aipState = "aipState"

// AddResult adds a member of a Task or an event that has no field.
func AddResult(r *wire.Extensions, key string, v gjson.Result) {
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

// OfResult returns the Extra of a Task or an event.
func OfResult(r *wire.Extensions) json.RawMessage { return r.JSON(family, resultMembers) }

// OfArtifact returns the Extra of an artifact, or of a message in its place.
func OfArtifact(r *wire.Extensions) json.RawMessage { return r.JSON(family, artifactMembers) }

// OfStatus returns the Extra of a status, and that of its message with it.
func OfStatus(r, message *wire.Extensions) json.RawMessage {
	r.AddObject("message", message, messageMembers)
	return r.JSON(family, statusMembers)
}

// OfPart returns the metadata of a part with what was not understood of it. words are the names of what its version
// understands.
func OfPart(metadata json.RawMessage, r *wire.Extensions, words wire.Names) json.RawMessage {
	return r.Join(metadata, family, words)
}

// Configuration returns what an Extra has of a request's configuration.
func Configuration(extra json.RawMessage) json.RawMessage { return kept(extra, "configuration") }

// HasMessage reports whether an Extra of a status has anything of its message.
func HasMessage(extra json.RawMessage) bool {
	return len(extra) > 0 && len(kept(extra, "message")) > 0
}

// OutputModes returns the kinds of content that a caller takes, as JSON, or nothing.
func OutputModes(extra json.RawMessage) json.RawMessage {
	return wire.MemberOf(Configuration(extra), "acceptedOutputModes")
}

// kept returns what an Extra has of a message or a configuration.
func kept(extra json.RawMessage, name string) json.RawMessage {
	return wire.MemberOf(family.Of(extra), name)
}

// AppendResult appends what was not understood of a Task or an event. state is what its word for a state does not
// say, where that is anything.
func AppendResult(dst []byte, extra json.RawMessage, state task.State) []byte {
	name := aipState
	if state == task.None {
		name = ""
	}
	return family.AppendWith(dst, family.Of(extra), extra, resultMembers, name, string(state))
}

// AppendMessage appends what was not understood of a message.
func AppendMessage(dst []byte, extra json.RawMessage) []byte {
	return family.Append(dst, kept(extra, "message"), extra, messageMembers)
}

// AppendStatus appends what was not understood of a status, beside its message.
func AppendStatus(dst []byte, extra json.RawMessage) []byte {
	return family.Append(dst, family.Of(extra), nil, statusMembers)
}

// AppendArtifact appends what was not understood of an artifact. One of v0.1 has its product's id in its metadata,
// unless the agent uses that name itself.
func AppendArtifact(dst []byte, extra json.RawMessage, id string) []byte {
	name := ""
	if id != "" {
		name = "productId"
	}
	return family.AppendWith(dst, family.Of(extra), extra, artifactMembers, name, id)
}

// AppendPart appends the metadata of a part, and what was not understood of it.
func AppendPart(dst []byte, metadata json.RawMessage, known wire.Names) []byte {
	if len(metadata) == 0 {
		return dst
	}
	if own := family.Of(metadata); len(own) > 0 && own[0] == '{' {
		return family.Append(dst, own, metadata, known)
	}
	return append(append(dst, `,"metadata":`...), wire.OneLine(metadata)...)
}

// AppendTurn appends what was not understood of the message of a turn. ref is the task that it refers to beside
// those that its caller names.
func AppendTurn(dst []byte, extra json.RawMessage, ref string) []byte {
	if ref == "" {
		return AppendMessage(dst, extra)
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
	return family.Append(append(dst, ']'), own, extra, referringMembers)
}

// AppendParams appends what was not understood of a request's params.
func AppendParams(dst []byte, extra json.RawMessage) []byte {
	return family.Append(dst, family.Of(extra), nil, paramsMembers)
}

// AppendConfiguration appends what was not understood of a request's configuration; with modes, the kinds of content
// that its caller takes are among that.
func AppendConfiguration(dst []byte, extra json.RawMessage, modes bool) []byte {
	known := configurationMembers
	if modes {
		known = controlMembers
	}
	return family.Append(dst, Configuration(extra), nil, known)
}

// Request gathers what is not understood of a request.
type Request struct{ Params, Message, Configuration wire.Extensions }

// Extensions returns what was gathered, nil where there is nothing.
func (r *Request) Extensions() json.RawMessage {
	r.Params.AddObject("configuration", &r.Configuration, controlMembers)
	r.Params.AddObject("message", &r.Message, messageMembers)
	return r.Params.JSON(family, paramsMembers)
}

// InHistory returns a message as a history shows it. What a caller has sent is shown without the members that no
// version of A2A has: those are for the agent, and readers that hold a Task to its schema refuse it with them.
func InHistory(m *task.Message) task.Message {
	shown := *m
	if m.SenderRole == task.Partner {
		return shown
	}
	if own := kept(m.Extensions, "message"); len(own) > 0 {
		shown.Extensions = with(m.Extensions, pick(own, "metadata", "extensions", "referenceTaskIds"))
	}
	for i := range m.DataItems {
		metadata := m.DataItems[i].Metadata
		if len(family.Of(metadata)) == 0 {
			continue
		}
		if &shown.DataItems[0] == &m.DataItems[0] {
			shown.DataItems = slices.Clone(m.DataItems)
		}
		own := pick(family.Of(metadata), "metadata")
		rest := family.Append([]byte{'{'}, own, metadata, "")
		if len(rest) > 1 {
			rest = append(rest[:1], rest[2:]...) // the comma
		}
		shown.DataItems[i].Metadata = wire.MemberOf(append(rest, '}'), "metadata")
	}
	return shown
}

// pick returns an object with only the named members of another one.
func pick(object json.RawMessage, names ...string) []byte {
	dst := []byte{'{'}
	for _, name := range names {
		if v := wire.MemberOf(object, name); v != nil {
			if len(dst) > 1 {
				dst = append(dst, ',')
			}
			dst = append(append(task.AppendString(dst, name), ':'), v...)
		}
	}
	return append(dst, '}')
}

// with returns an Extra that has message in the place of all that the family has in it.
func with(extra json.RawMessage, message []byte) json.RawMessage {
	dst := append(append([]byte(`{"`+family+`":{"message":`), message...), '}')
	gjson.ParseBytes(extra).ForEach(func(key, v gjson.Result) bool {
		if key.Str != string(family) {
			dst = append(append(append(append(dst, ','), key.Raw...), ':'), v.Raw...)
		}
		return true
	})
	return append(dst, '}')
}

// SPDX-License-Identifier: Apache-2.0

// Package extension keeps the members of A2A's objects without a field in the canon, so that any version writes the
// members read by another.
package extension

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// family is the name of A2A's extensions: metadata, extensions, and all members unknown to every version. They keep
// their shape, without the members with a field in the codec: those of a task.Message are the request's params, with
// the members message and configuration in them; those of a task.Status are a TaskStatus, with its message in it. The
// extensions of other families are written as metadata.
const family wire.Family = "a2a"

// The members with a meaning in some version. Extensions never set them. Of the params, tenant is among them, because
// an agent's tenants are not for callers to choose. The control members of a configuration are for the gateway, as it
// answers the caller.
const (
	resultMembers wire.Names = "id kind type taskId contextId sessionId status artifact artifacts history final " +
		"append lastChunk messageId parts role eventType task message statusUpdate artifactUpdate"
	messageMembers wire.Names = "id kind type messageId role parts content taskId contextId sessionId status artifact " +
		"final"
	referringMembers wire.Names = messageMembers + " referenceTaskIds"
	statusMembers    wire.Names = "state message timestamp"
	artifactMembers  wire.Names = "kind type artifactId name description parts index append lastChunk"
	PartMembers      wire.Names = "kind type text file data"
	PartMembersV1    wire.Names = "kind type text file data raw url filename mediaType"
	paramsMembers    wire.Names = "id message configuration taskId contextId sessionId historyLength pushNotification " +
		"tenant acceptedOutputModes " + activated
	controlMembers wire.Names = "blocking returnImmediately historyLength pushNotificationConfig pushNotification " +
		"taskPushNotificationConfig"
	configurationMembers wire.Names = controlMembers + " acceptedOutputModes"
)

// aipState is a member of the metadata of tasks, added by the gateway. It is dropped when it comes back.
const aipState = "aipState"

// AddResult adds a member of a Task or an event without a field.
func AddResult(r *wire.Extensions, key string, v gjson.Result) {
	if key != "metadata" || !v.IsObject() || !strings.Contains(v.Raw, aipState) {
		r.Add(key, v)
		return
	}
	kept := []byte{'{'}
	jsonrpc.ForEach(v, func(key, v gjson.Result) bool {
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

// OfResult returns the extensions of a Task or an event.
func OfResult(r *wire.Extensions) json.RawMessage { return r.JSON(family, resultMembers) }

// OfArtifact returns the extensions of an artifact, or of a message in its place.
func OfArtifact(r *wire.Extensions) json.RawMessage { return r.JSON(family, artifactMembers) }

// OfStatus returns the extensions of a status, with those of its message.
func OfStatus(r, message *wire.Extensions) json.RawMessage {
	r.AddObject("message", message, messageMembers)
	return r.JSON(family, statusMembers)
}

// OfPart returns the metadata of a part with its extensions. words are the names of its version's members.
func OfPart(metadata json.RawMessage, r *wire.Extensions, words wire.Names) json.RawMessage {
	return r.Join(metadata, family, words)
}

// Configuration returns the extensions of a request's configuration.
func Configuration(extra json.RawMessage) json.RawMessage { return member(extra, "configuration") }

// HasMessage reports whether the extensions of a status have any of its message.
func HasMessage(extra json.RawMessage) bool {
	return len(extra) > 0 && len(member(extra, "message")) > 0
}

// OutputModes returns the media types that a caller accepts, as JSON, or nothing.
func OutputModes(extra json.RawMessage) json.RawMessage {
	return wire.MemberOf(Configuration(extra), "acceptedOutputModes")
}

// member returns the extensions of a message or a configuration.
func member(extra json.RawMessage, name string) json.RawMessage {
	return wire.MemberOf(family.Of(extra), name)
}

// AppendResult appends the extensions of a Task or an event. state is added to the metadata, unless it is task.None:
// the state of AIP if that of A2A does not say it.
func AppendResult(dst []byte, extra json.RawMessage, state task.State) []byte {
	name := aipState
	if state == task.None {
		name = ""
	}
	return family.AppendWith(dst, family.Of(extra), extra, resultMembers, name, string(state))
}

// AppendMessage appends the extensions of a message.
func AppendMessage(dst []byte, extra json.RawMessage) []byte {
	return family.Append(dst, member(extra, "message"), extra, messageMembers)
}

// AppendStatus appends the extensions of a status, without those of its message.
func AppendStatus(dst []byte, extra json.RawMessage) []byte {
	return family.Append(dst, family.Of(extra), nil, statusMembers)
}

// AppendArtifact appends the extensions of an artifact. One of v0.1 has the id of its product in the metadata, unless
// the agent uses that name itself.
func AppendArtifact(dst []byte, extra json.RawMessage, id string) []byte {
	name := ""
	if id != "" {
		name = "productId"
	}
	return family.AppendWith(dst, family.Of(extra), extra, artifactMembers, name, id)
}

// AppendAnswer appends the extensions of a message read in the place of an artifact. Only the agent knows the tasks in
// its references.
func AppendAnswer(dst []byte, extra json.RawMessage) []byte {
	return family.Append(dst, family.Of(extra), extra, referringMembers)
}

// AppendPart appends the metadata and the extensions of a part.
func AppendPart(dst []byte, metadata json.RawMessage, known wire.Names) []byte {
	if len(metadata) == 0 {
		return dst
	}
	if own := family.Of(metadata); len(own) > 0 && own[0] == '{' {
		return family.Append(dst, own, metadata, known)
	}
	return append(append(dst, `,"metadata":`...), wire.OneLine(metadata)...)
}

// AppendTurn appends the extensions of a turn's message, and its references to tasks: ref, unless it is empty, and
// those named by its caller.
func AppendTurn(dst []byte, extra json.RawMessage, ref string, others []string) []byte {
	refs := others
	if ref != "" {
		refs = append([]string{ref}, slices.DeleteFunc(slices.Clone(others), func(s string) bool { return s == ref })...)
	}
	return family.Append(appendReferences(dst, refs), member(extra, "message"), extra, referringMembers)
}

// appendReferences appends a message's references to tasks, unless there are none.
func appendReferences(dst []byte, refs []string) []byte {
	if len(refs) == 0 {
		return dst
	}
	return wire.AppendStrings(dst, `,"referenceTaskIds":`, refs)
}

// AppendParams appends the extensions of a request's params.
func AppendParams(dst []byte, extra json.RawMessage) []byte {
	return family.Append(dst, family.Of(extra), nil, paramsMembers)
}

// AppendConfiguration appends the extensions of a request's configuration; with modes, those include the media types
// accepted by the caller.
func AppendConfiguration(dst []byte, extra json.RawMessage, modes bool) []byte {
	known := configurationMembers
	if modes {
		known = controlMembers
	}
	return family.Append(dst, Configuration(extra), nil, known)
}

// maxReferences is the most references to tasks in a message.
const maxReferences = 64

// References reads the references to tasks in a caller's message.
func References(r *wire.Reader, list gjson.Result) (refs []string) {
	const field = "message.referenceTaskIds"
	if !wire.Absent(list) {
		r.Each(list, field, maxReferences, func(entry gjson.Result) { refs = append(refs, strings.Clone(r.ID(entry, ""))) })
	}
	return refs
}

// Request gathers the extensions of a request.
type Request struct{ Params, Message, Configuration wire.Extensions }

// Extensions returns the gathered extensions; nil for none.
func (r *Request) Extensions() json.RawMessage {
	r.Params.AddObject("configuration", &r.Configuration, controlMembers)
	r.Params.AddObject("message", &r.Message, messageMembers)
	return r.Params.JSON(family, paramsMembers)
}

// InHistory returns a message as a history shows it. Members in no version of A2A are left out of a caller's message:
// they are for the agent, and readers validating a Task against its schema refuse them.
func InHistory(m *task.Message) task.Message {
	shown := *m
	if m.SenderRole == task.Partner {
		return shown
	}
	if own := member(m.Extensions, "message"); len(own) > 0 || len(m.References) > 0 {
		own = pick(own, "metadata", "extensions", "referenceTaskIds") // the last of them in messages of older builds
		shown.Extensions = with(m.Extensions, own, m.References)
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

// with returns extensions with message, an object, and its references in the place of all members of the family.
func with(extra json.RawMessage, message []byte, refs []string) json.RawMessage {
	dst := append([]byte(`{"`+family+`":{"message":`), message[:len(message)-1]...)
	if refers := appendReferences(nil, refs); len(refers) > 0 {
		if len(message) == len("{}") {
			refers = refers[1:] // the comma
		}
		dst = append(dst, refers...)
	}
	dst = append(dst, '}', '}')
	jsonrpc.ForEach(gjson.ParseBytes(extra), func(key, v gjson.Result) bool {
		if key.Str != string(family) {
			dst = append(append(append(append(dst, ','), key.Raw...), ':'), v.Raw...)
		}
		return true
	})
	return append(dst, '}')
}

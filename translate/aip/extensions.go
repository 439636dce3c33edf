// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"bytes"
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// family is the name of AIP's extensions: the members of its objects in no version. On the wire they stand in their
// object. The extensions of other families are the object's member metadata. AIP itself has this member at data items
// only.
const family wire.Family = "aip"

// The members of AIP's objects in all of its versions. An extension never takes their place.
const (
	taskNames wire.Names = "type id sentAt senderRole senderId taskId groupId sessionId status products messageHistory " +
		"commandHistory statusHistory"
	statusNames  wire.Names = "state stateChangedAt dataItems taskMetadata"
	messageNames wire.Names = "type id sentAt senderRole senderId mentions command commandParams dataItems " +
		"taskId groupId sessionId"
	productNames wire.Names = "id name description dataItems"
	itemNames    wire.Names = "type text name mimeType uri bytes data"
	eventNames   wire.Names = "type id sentAt senderRole senderId taskId groupId sessionId status product append lastChunk"
)

var names = [...]wire.Names{
	task.TaskObject: taskNames, task.StatusObject: statusNames, task.MessageObject: messageNames,
	task.ProductObject: productNames, task.ItemObject: itemNames, task.EventObject: eventNames,
}

// form writes the canon as AIP has it.
var form task.Form = appendExtensions

// appendExtensions appends the members for the extensions of an object.
func appendExtensions(dst []byte, extensions json.RawMessage, of task.Object) []byte {
	if len(extensions) == 0 {
		return dst
	}
	own := family.Of(extensions)
	if len(own) == 0 || own[0] != '{' { // another's member may have the family's name
		return append(append(dst, `,"metadata":`...), wire.OneLine(extensions)...)
	}
	return family.Append(dst, own, extensions, names[of])
}

// plainRecord reports whether a stored event can be sent as it is stored.
func plainRecord(record []byte) bool {
	// A capital letter is rare in a record, so the second search is fast.
	return !bytes.Contains(record, []byte(`"`+family+`"`)) && !bytes.Contains(record, []byte(`Metadata":`))
}

// isSnapshot reports whether a stored event is a Task with a history. In its history the agent's words have no ids.
func isSnapshot(record []byte) bool {
	return len(record) > 0 && record[0] == task.TaskEvent && bytes.Contains(record, []byte(`"messageHistory":`))
}

// rest gathers the members of an object without a field. The zero rest is empty.
type rest struct {
	others   wire.Extensions
	metadata gjson.Result
}

// add adds a member. A null is ignored.
func (r *rest) add(name string, v gjson.Result) {
	if name == "metadata" && v.IsObject() {
		r.metadata = v
		return
	}
	r.others.Add(name, v)
}

// extensions returns the gathered members, but for the known names, nil for none.
func (r *rest) extensions(known wire.Names) json.RawMessage {
	if r.metadata.Raw == "" {
		return r.others.JSON(family, known)
	}
	return r.others.JSONWith(wire.Line(r.metadata), family, known)
}

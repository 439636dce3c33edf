// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"bytes"
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
)

// family is the name under which an Extra keeps the members of AIP's objects that no version knows. On the wire
// they are members of their object; what other families keep is its member metadata, which AIP itself has at data
// items only.
const family = "aip"

// form writes the canon as AIP has it.
const form = task.Form(family)

// plainRecord reports whether a stored event can be told as it is stored.
func plainRecord(record []byte) bool {
	return !bytes.Contains(record, []byte(`"`+family+`"`)) && !bytes.Contains(record, []byte(`"taskMetadata"`))
}

// rest gathers the members of an object that have no field. The zero rest is empty.
type rest struct {
	others   task.Rest
	metadata gjson.Result
}

// add adds a member. One that is null says nothing.
func (r *rest) add(name string, v gjson.Result) {
	switch {
	case absent(v):
	case name == "metadata" && v.IsObject():
		r.metadata = v
	default:
		r.others.Add(name, v.Raw)
	}
}

// extra returns what was gathered, but for the names in known, nil where there is nothing.
func (r *rest) extra(known string) json.RawMessage {
	if r.metadata.Raw == "" {
		return r.others.Extra(family, known)
	}
	return task.Bounded(r.others.Join(line(r.metadata), family, known))
}

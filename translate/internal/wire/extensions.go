// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"strings"
	"unsafe"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// The extensions of an object are the members without a field in the canon: a JSON object with a member for each family
// of dialects, {"a2a":{"extensions":["x"]}}. The codecs of a family write its members again in their old places. Codecs
// of other families show them as metadata. The extensions of a data item stand in its Metadata, beside its sender's own
// members there.

// Family is the name of a family of dialects in the extensions, with its members below it.
type Family string

// Names is a list of the members with a meaning in an object, with spaces between them. Names are case-sensitive in
// JSON, so "TaskID" is not read as taskId. But it is not passed on either, because the next reader may be less strict.
type Names string

// has reports whether the list has a name, as readers ignoring case and underscores read it.
func (n Names) has(name string) bool {
	name = strings.ReplaceAll(name, "_", "")
	for known := range strings.FieldsSeq(string(n)) {
		if strings.EqualFold(known, name) {
			return true
		}
	}
	return false
}

// metadata is a possible member of every object. It is never passed on in another spelling.
const metadata Names = "metadata"

// Extensions gathers the members of an object without a field in a codec. The zero value is empty. Members of more than
// task.MaxExtensions bytes are dropped, all of them.
type Extensions struct {
	members []byte // "a":1,"b":2
	objects []byte // of AddObject
	over    bool
}

// Add adds a member, and keeps a copy of its value on one line. A null is not added.
func (x *Extensions) Add(name string, value gjson.Result) {
	if value.Type != gjson.Null {
		x.add(name, value.Raw)
	}
}

func (x *Extensions) add(name, value string) {
	if x.fits(len(name) + len(value)) {
		x.members = appendMember(x.members, name, value)
	}
}

// AddObject adds a member: an object of the gathered members of an inner object, unless there are none.
func (x *Extensions) AddObject(name string, inner *Extensions, known Names) {
	x.over = x.over || inner.over
	if members := inner.without(known); x.fits(len(name)+len(members)) && len(members) > 0 {
		x.objects = appendMember(x.objects, name, "{"+string(members)+"}")
	}
}

// fits reports whether so many more bytes may be kept. If not, nothing is kept.
func (x *Extensions) fits(more int) bool {
	if x.over = x.over || len(x.members)+len(x.objects)+more > task.MaxExtensions; x.over {
		x.members, x.objects = nil, nil
	}
	return !x.over
}

func appendMember(dst []byte, name, value string) []byte {
	if len(dst) > 0 {
		dst = append(dst, ',')
	}
	return append(append(task.AppendString(dst, name), ':'), OneLine([]byte(value))...)
}

// without returns all gathered members, but for the known names.
func (x *Extensions) without(known Names) []byte {
	if len(x.members)+len(x.objects) == 0 {
		return nil
	}
	object := append(append([]byte{'{'}, x.members...), '}')
	dst, empty := appendMembers(nil, true, object, func(name string) bool {
		return !known.has(name) && (name == "metadata" || !metadata.has(name))
	})
	if !empty && len(x.objects) > 0 {
		dst = append(dst, ',')
	}
	return append(dst, x.objects...)
}

// JSON returns the gathered members, but for the known names, as the extensions of a family; nil for none.
func (x *Extensions) JSON(f Family, known Names) json.RawMessage {
	return bounded(x.Join(nil, f, known))
}

// JSONWith is JSON for an object with metadata of its own: nil or an object.
func (x *Extensions) JSONWith(metadata json.RawMessage, f Family, known Names) json.RawMessage {
	return bounded(x.Join(metadata, f, known))
}

// Join returns the metadata of an object with the gathered members, but for the known names, as the family's member. If
// the metadata has a member of that name already, all of it becomes the metadata in the family's member.
func (x *Extensions) Join(metadata json.RawMessage, f Family, known Names) json.RawMessage {
	members := x.without(known)
	switch {
	case len(metadata) == 0 && len(members) == 0:
		return nil
	case f.Of(metadata) != nil:
		isMarked := marked(metadata) // a mark of the item, so it stays in its place
		if isMarked {
			metadata = setMark(metadata, false)
		}
		dst := append(task.AppendString([]byte{'{'}, string(f)), `:{"metadata":`...)
		dst = append(dst, metadata...)
		if len(members) > 0 {
			dst = append(append(dst, ','), members...)
		}
		if dst = append(dst, '}', '}'); isMarked {
			return setMark(dst, true)
		}
		return dst
	case len(members) == 0:
		return metadata
	}
	dst := []byte{'{'}
	dst, _ = appendMembers(dst, true, metadata, func(string) bool { return true })
	if len(dst) > 1 {
		dst = append(dst, ',')
	}
	dst = append(task.AppendString(dst, string(f)), ':', '{')
	return append(append(dst, members...), '}', '}')
}

// bounded returns extensions, or nil if they are too large.
func bounded(extensions json.RawMessage) json.RawMessage {
	if len(extensions) > task.MaxExtensions {
		return nil
	}
	return extensions
}

// MemberOf returns the JSON of an object's member, nil for none. It is a part of object, no copy.
func MemberOf(object json.RawMessage, name string) json.RawMessage {
	if len(object) == 0 {
		return nil
	}
	v := jsonrpc.Member(view(object), name)
	if v.Raw == "" {
		return nil
	}
	return unsafe.Slice(unsafe.StringData(v.Raw), len(v.Raw))
}

// view parses JSON without a copy.
func view(b []byte) gjson.Result { return gjson.Parse(unsafe.String(unsafe.SliceData(b), len(b))) }

// Of returns a family's member of an object's extensions, nil for none.
func (f Family) Of(extensions json.RawMessage) json.RawMessage {
	return MemberOf(extensions, string(f))
}

// Without returns an object's extensions without the family's member; nil if nothing is left.
func (f Family) Without(extensions json.RawMessage) json.RawMessage {
	dst, empty := appendMembers([]byte{'{'}, true, extensions, func(name string) bool { return name != string(f) })
	if empty {
		return nil
	}
	return append(dst, '}')
}

// Append appends the members of a codec for the extensions of an object, each behind a comma: those of own, but for the
// known names. Last comes the metadata: own's, with the members of other families in the extensions.
func (f Family) Append(dst []byte, own, extensions json.RawMessage, known Names) []byte {
	return f.AppendWith(dst, own, extensions, known, "", "")
}

// AppendWith is Append with one more member of the metadata, a string, if none has the same name. An empty name stands
// for no such member.
func (f Family) AppendWith(dst []byte, own, extensions json.RawMessage, known Names, name, value string) []byte {
	if len(own) == 0 && len(extensions) == 0 && name == "" {
		return dst
	}
	var had gjson.Result
	jsonrpc.ForEach(view(own), func(key, v gjson.Result) bool {
		switch {
		case key.Str == "metadata":
			had = v
		case !known.has(key.Str) && !metadata.has(key.Str):
			dst = append(append(append(append(dst, ','), key.Raw...), ':'), v.Raw...)
		}
		return true
	})
	if had.Exists() && !had.IsObject() { // not an object, but it stays as it was
		return append(append(dst, `,"metadata":`...), had.Raw...)
	}
	before, empty := len(dst), true
	dst = append(dst, `,"metadata":{`...)
	var names map[string]bool // made for more than one source
	if had.Exists() && (len(extensions) > 0 || name != "") {
		names = make(map[string]bool)
	}
	fresh := func(key string) bool {
		if names[key] {
			return false
		}
		if names != nil {
			names[key] = true
		}
		return true
	}
	dst, empty = appendMembers(dst, empty, json.RawMessage(had.Raw), fresh)
	mine := isObject(f.Of(extensions)) // it was written as own
	dst, empty = appendMembers(dst, empty, extensions, func(key string) bool {
		return !(mine && key == string(f)) && fresh(key)
	})
	if name != "" && !names[name] && MemberOf(extensions, name) == nil {
		if !empty {
			dst = append(dst, ',')
		}
		dst, empty = task.AppendString(append(task.AppendString(dst, name), ':'), value), false
	}
	if empty && !had.Exists() && (len(extensions) == 0 || mine) {
		return dst[:before]
	}
	return append(dst, '}')
}

// appendMembers appends the members of an object chosen by keep, with commas between them; empty is set if there is
// none before them.
func appendMembers(dst []byte, empty bool, object json.RawMessage, keep func(name string) bool) ([]byte, bool) {
	jsonrpc.ForEach(view(object), func(key, v gjson.Result) bool {
		if keep(key.Str) {
			if !empty {
				dst = append(dst, ',')
			}
			dst = append(append(append(dst, key.Raw...), ':'), OneLine([]byte(v.Raw))...)
			empty = false
		}
		return true
	})
	return dst, empty
}

func isObject(value json.RawMessage) bool { return len(value) > 0 && value[0] == '{' }

// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bytes"
	"encoding/json"
	"strings"
)

// What an object has that the canon has no field for is its Extra: a JSON object with a member for each family of
// dialects, {"a2a":{"extensions":["x"]}}, whose members the codecs of that family write again where they read
// them. To all others it is the object's metadata. A data item's Metadata is used in the same way, since it is there
// already. What is in an Extra is never looked at by anything but codecs.
//
// It is rare, so that nothing here is of any cost where there is none.

// MaxExtensions is how many bytes an Extra may have. A larger one is dropped, and the object goes on without it.
const MaxExtensions = 64 << 10

// Rest gathers the members that a codec does not understand. The zero Rest is empty.
//
// What is taken out of it is without the members that are in a list of names, in any spelling: names are case-sensitive
// in JSON, so "TaskID" is no taskId and is not read as one, but the object cannot be passed on with it, because its
// next reader may not be as strict. See AppendExtensions.
type Rest struct {
	members []byte // "a":1,"b":2
	objects []byte // of AddObject
	over    bool
}

// Add adds a member: its name, and its value as it was sent, of which it keeps a copy on one line.
func (r *Rest) Add(name, value string) {
	if r.fits(len(name) + len(value)) {
		r.members = appendMember(r.members, name, value)
	}
}

// AddObject adds a member that is the object of what another Rest has gathered but for the names in known, unless
// that is nothing. The member itself is never left out.
func (r *Rest) AddObject(name string, inner *Rest, known string) {
	r.over = r.over || inner.over
	if members := inner.without(known); r.fits(len(name)+len(members)) && len(members) > 0 {
		r.objects = appendMember(r.objects, name, "{"+string(members)+"}")
	}
}

// fits reports whether so many bytes more may be kept. Where not, nothing is.
func (r *Rest) fits(more int) bool {
	if r.over = r.over || len(r.members)+len(r.objects)+more > MaxExtensions; r.over {
		r.members, r.objects = nil, nil
	}
	return !r.over
}

func appendMember(dst []byte, name, value string) []byte {
	if len(dst) > 0 {
		dst = append(dst, ',')
	}
	return append(append(AppendString(dst, name), ':'), oneLine([]byte(value))...)
}

// without returns all that was gathered, but for the names in known.
func (r *Rest) without(known string) []byte {
	if len(r.members)+len(r.objects) == 0 {
		return nil
	}
	object := append(append([]byte{'{'}, r.members...), '}')
	dst, empty := appendMembers(nil, true, object, func(name string) bool {
		return !hasWord(known, name) && (name == "metadata" || !hasWord("metadata", name))
	})
	if !empty && len(r.objects) > 0 {
		dst = append(dst, ',')
	}
	return append(dst, r.objects...)
}

// Extra returns what was gathered, but for the names in known, as the Extra of a family, nil where there is nothing.
func (r *Rest) Extra(family, known string) json.RawMessage {
	return Bounded(r.Join(nil, family, known))
}

// Join returns the metadata of an object, as it was sent, with what was gathered beside it, but for the names in known:
// the family's member is put in. Where the metadata has a member of that name already, all of it goes into that member,
// as the metadata there.
func (r *Rest) Join(metadata json.RawMessage, family, known string) json.RawMessage {
	members := r.without(known)
	switch {
	case len(metadata) == 0 && len(members) == 0:
		return nil
	case Member(metadata, family) != nil:
		dst := append(AppendString([]byte{'{'}, family), `:{"metadata":`...)
		dst = append(dst, metadata...)
		if len(members) > 0 {
			dst = append(append(dst, ','), members...)
		}
		return append(dst, '}', '}')
	case len(members) == 0:
		return metadata
	}
	dst := []byte{'{'}
	dst, _ = appendMembers(dst, true, metadata, func(string) bool { return true })
	if len(dst) > 1 {
		dst = append(dst, ',')
	}
	dst = append(AppendString(dst, family), ':', '{')
	return append(append(dst, members...), '}', '}')
}

// Bounded returns an Extra, or nil if it is too large.
func Bounded(extra json.RawMessage) json.RawMessage {
	if len(extra) > MaxExtensions {
		return nil
	}
	return extra
}

// Member returns the value of a member of an object, nil where there is none or no object.
func Member(object json.RawMessage, name string) (value json.RawMessage) {
	if len(object) == 0 {
		return nil
	}
	eachMember(object, func(key, v []byte) bool {
		if string(key[1:len(key)-1]) == name || bytes.IndexByte(key, '\\') >= 0 && unquote(key) == name {
			value = v
		}
		return value == nil
	})
	return value
}

// AppendExtensions appends the members, each behind a comma, by which a codec of a family writes what it did not
// understand when it read an object: those of own, but for the ones in known, a list of names with spaces between
// them that the codec gives a meaning of its own, in any spelling. Last comes the metadata: own's, with what other
// families have in extra, and with one more member, of a name and a string, where none of them has that name.
func AppendExtensions(dst []byte, own, extra json.RawMessage, family, known, name, value string) []byte {
	if len(own) == 0 && len(extra) == 0 && name == "" {
		return dst
	}
	var metadata json.RawMessage
	eachMember(own, func(key, v []byte) bool {
		switch k := unquote(key); {
		case k == "metadata":
			metadata = v
		case !hasWord(known, k) && !hasWord("metadata", k):
			dst = append(append(append(append(dst, ','), key...), ':'), v...)
		}
		return true
	})
	if len(metadata) > 0 && !isObject(metadata) { // not what it should be, but it stays what it was
		return append(append(dst, `,"metadata":`...), metadata...)
	}
	had, empty := len(dst), true
	dst = append(dst, `,"metadata":{`...)
	var names map[string]bool // made where there is more than one source
	if len(metadata) > 0 && (len(extra) > 0 || name != "") {
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
	dst, empty = appendMembers(dst, empty, metadata, fresh)
	mine := isObject(Member(extra, family)) // which was written as own
	dst, empty = appendMembers(dst, empty, extra, func(key string) bool { return !(mine && key == family) && fresh(key) })
	if name != "" && !names[name] && Member(extra, name) == nil {
		if !empty {
			dst = append(dst, ',')
		}
		dst, empty = AppendString(append(AppendString(dst, name), ':'), value), false
	}
	if empty && len(metadata) == 0 && (len(extra) == 0 || mine) {
		return dst[:had]
	}
	return append(dst, '}')
}

// appendMembers appends those members of an object that keep wants, with commas between them; empty says that there
// is none before them.
func appendMembers(dst []byte, empty bool, object []byte, keep func(name string) bool) ([]byte, bool) {
	eachMember(object, func(key, v []byte) bool {
		if keep(unquote(key)) {
			if !empty {
				dst = append(dst, ',')
			}
			dst = append(append(append(dst, key...), ':'), oneLine(v)...)
			empty = false
		}
		return true
	})
	return dst, empty
}

// merged returns old with what news says: members that both have are put together where they are objects, down to the
// members of a family's metadata, and otherwise news counts. Where that is too large, news is all.
func merged(old, news json.RawMessage) json.RawMessage {
	if len(old) == 0 {
		return news
	}
	const levels = 3 // families, their members, and what is in those
	if out := mergedTo(nil, old, news, levels); len(out) <= MaxExtensions {
		return out
	}
	return news
}

func mergedTo(dst, old, news []byte, depth int) []byte {
	with := make(map[string][]byte)
	eachMember(news, func(key, v []byte) bool {
		with[unquote(key)] = v
		return true
	})
	begin := len(dst) + 1
	dst = append(dst, '{')
	add := func(key, v, w []byte) {
		if len(dst) > begin {
			dst = append(dst, ',')
		}
		dst = append(append(dst, key...), ':')
		switch {
		case w == nil:
			dst = append(dst, v...)
		case depth > 1 && isObject(v) && isObject(w):
			dst = mergedTo(dst, v, w, depth-1)
		default:
			dst = append(dst, w...)
		}
	}
	eachMember(old, func(key, v []byte) bool {
		name := unquote(key)
		add(key, v, with[name])
		delete(with, name)
		return true
	})
	eachMember(news, func(key, w []byte) bool {
		if _, left := with[unquote(key)]; left {
			add(key, w, nil)
		}
		return true
	})
	return append(dst, '}')
}

// unquote returns the string that a key is.
func unquote(key []byte) string {
	if bytes.IndexByte(key, '\\') < 0 {
		return string(key[1 : len(key)-1])
	}
	var s string
	if err := json.Unmarshal(key, &s); err != nil {
		return string(key)
	}
	return s
}

// hasWord reports whether a list has a word, as the readers of JSON see it who care for neither case nor underscores:
// what one of them took for a taskId must not be smuggled past the gateway as a TaskID or a task_id.
func hasWord(list, word string) bool {
	word = strings.ReplaceAll(word, "_", "")
	for w := range strings.FieldsSeq(list) {
		if strings.EqualFold(w, word) {
			return true
		}
	}
	return false
}

// oneLine returns JSON on one line.
func oneLine(value []byte) []byte {
	if bytes.IndexByte(value, '\n') < 0 && bytes.IndexByte(value, '\r') < 0 {
		return value
	}
	var line bytes.Buffer
	if err := json.Compact(&line, value); err != nil {
		return []byte("null")
	}
	return line.Bytes()
}

// eachMember calls f with the members of an object that is valid JSON, as they are written, until f returns false.
// What is no object has none.
func eachMember(object []byte, f func(key, value []byte) bool) {
	i := skipSpace(object, 0)
	if i >= len(object) || object[i] != '{' {
		return
	}
	for i++; ; i++ {
		i = skipSpace(object, i)
		end := skipValue(object, i)
		if end <= i || object[i] != '"' {
			return
		}
		key := object[i:end]
		if i = skipSpace(object, end); i >= len(object) || object[i] != ':' {
			return
		}
		i = skipSpace(object, i+1)
		if end = skipValue(object, i); end <= i {
			return
		}
		if !f(key, object[i:end:end]) {
			return
		}
		if i = skipSpace(object, end); i >= len(object) || object[i] != ',' {
			return
		}
	}
}

func isObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns where the value that begins at i ends; i where there is none.
func skipValue(b []byte, i int) int {
	depth := 0
	for at := i; at < len(b); at++ {
		switch b[at] {
		case '"':
			for at++; at < len(b) && b[at] != '"'; at++ {
				if b[at] == '\\' {
					at++
				}
			}
			if at >= len(b) {
				return i
			}
			if depth == 0 {
				return at + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return at
			}
			if depth--; depth == 0 {
				return at + 1
			}
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return at
			}
		}
	}
	if depth > 0 {
		return i
	}
	return len(b)
}

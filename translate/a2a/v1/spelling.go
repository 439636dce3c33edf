// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// A member has two names in the JSON of protocol buffers: messageId, and message_id as the schema has it. Writers use
// the first one, and parsers accept both. So a value with a name of the second kind is respelled before it is read.

// protoNames are the names of the schemas of 1.0 and of 0.3 different from those in JSON.
var protoNames = func() map[string]string {
	names := make(map[string]string)
	for name := range strings.FieldsSeq("message_id task_id context_id reference_task_ids media_type history_length " +
		"return_immediately accepted_output_modes task_push_notification_config push_notification_config " +
		"push_notification page_size page_token include_artifacts status_timestamp_after config_id " +
		"file_with_uri file_with_bytes mime_type status_update artifact_update artifact_id last_chunk") {
		names[name] = camel(name)
	}
	return names
}()

// camel returns the name in JSON of a name in a schema.
func camel(name string) string {
	words := strings.Split(name, "_")
	for i, word := range words[1:] {
		words[i+1] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}

// snake returns the name in the schema of a name in JSON; empty if they are the same.
func snake(name string) string {
	for other, of := range protoNames {
		if of == name {
			return other
		}
	}
	return ""
}

// inner are the members with objects of the schema, or lists of such. All others, such as metadata, belong to their
// sender.
var inner = func() map[string]bool {
	set := make(map[string]bool)
	for name := range strings.FieldsSeq("message configuration parts content file taskPushNotificationConfig " +
		"pushNotificationConfig pushNotification config authentication task statusUpdate artifactUpdate status artifact " +
		"artifacts history") {
		set[name] = true
	}
	return set
}()

// respell returns a value with the names of its members in JSON. twice is the path of a member with both names, and
// empty for none; of the two, the first one is left.
func respell(v gjson.Result) (respelled gjson.Result, twice string) {
	if !hasProtoName(v.Raw) {
		return v, ""
	}
	var s speller
	dst := s.append(make([]byte, 0, len(v.Raw)), v, "")
	if !s.changed {
		return v, ""
	}
	return gjson.ParseBytes(dst), s.twice
}

// hasProtoName reports whether there may be a member with an underscore in its name.
func hasProtoName(raw string) bool {
	for {
		at := strings.IndexByte(raw, '_')
		if at < 0 {
			return false
		}
		raw = raw[at:]
		end := strings.IndexByte(raw, '"')
		if end < 0 {
			return false
		}
		raw = raw[end+1:]
		if strings.HasPrefix(strings.TrimLeft(raw, " \t\r\n"), ":") {
			return true
		}
	}
}

// speller respells one value.
type speller struct {
	changed bool
	twice   string
}

func (s *speller) append(dst []byte, v gjson.Result, path string) []byte {
	switch {
	case v.IsArray():
		dst = append(dst, '[')
		n := 0
		jsonrpc.ForEach(v, func(_, entry gjson.Result) bool {
			if n++; n > 1 {
				dst = append(dst, ',')
			}
			dst = s.append(dst, entry, path)
			return true
		})
		return append(dst, ']')
	case !v.IsObject():
		return append(dst, v.Raw...)
	}
	dst = append(dst, '{')
	empty := true
	seen := make(map[string]bool)
	jsonrpc.ForEach(v, func(key, m gjson.Result) bool {
		name := key.Str
		if other := protoNames[name]; other != "" {
			name, s.changed = other, true
		}
		if m.Type == gjson.Null && name != "data" { // data may be null, all others are missing then
			s.changed = true
			return true
		}
		at := strings.TrimPrefix(path+"."+name, ".")
		if seen[name] {
			if s.twice == "" {
				s.twice = at
			}
			return true
		}
		seen[name] = true
		if !empty {
			dst = append(dst, ',')
		}
		empty = false
		dst = append(task.AppendString(dst, name), ':')
		if inner[name] {
			dst = s.append(dst, m, at)
		} else {
			dst = append(dst, m.Raw...)
		}
		return true
	})
	return append(dst, '}')
}

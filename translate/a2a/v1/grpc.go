// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/tidwall/gjson"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// The third binding, gRPC, has the objects of HTTP+JSON as messages of protocol buffers. So there is one codec of
// objects, and its input and output are transcoded by the mapping of protocol buffers between their messages and JSON
// (ProtoJSON). Members not in the messages are lost.

// service is the path of the service, and each of its methods is a path below it.
var service = string(a2apb.File_a2av1_proto.Services().ByName("A2AService").FullName()) + "/"

// requestOf returns an empty message for a request of a method; nil if there is no such method.
func requestOf(method string) proto.Message {
	switch method {
	case send, sendStream:
		return new(a2apb.SendMessageRequest)
	case getTask:
		return new(a2apb.GetTaskRequest)
	case listTasks:
		return new(a2apb.ListTasksRequest)
	case cancelTask:
		return new(a2apb.CancelTaskRequest)
	case subscribe:
		return new(a2apb.SubscribeToTaskRequest)
	case createConfig:
		return new(a2apb.TaskPushNotificationConfig)
	case getConfig:
		return new(a2apb.GetTaskPushNotificationConfigRequest)
	case listConfigs:
		return new(a2apb.ListTaskPushNotificationConfigsRequest)
	case deleteConfig:
		return new(a2apb.DeleteTaskPushNotificationConfigRequest)
	case extendedCard:
		return new(a2apb.GetExtendedAgentCardRequest)
	}
	return nil
}

// toJSON returns the JSON of an encoded message. m is an empty message of its type.
func toJSON(m proto.Message, encoded []byte) ([]byte, error) {
	if err := proto.Unmarshal(encoded, m); err != nil {
		return nil, err
	}
	object, err := protojson.Marshal(m)
	if err != nil {
		return nil, err
	}
	// protojson adds spaces in one build and not in another, and structured data is passed on as it is read.
	var compact bytes.Buffer
	compact.Grow(len(object))
	err = json.Compact(&compact, object)
	return compact.Bytes(), err
}

// appendProto appends the encoded message of an object. m is an empty message of its type. Members of other names, and
// those with a value of another kind, are left out.
func appendProto(dst []byte, m proto.Message, object []byte) []byte {
	// Members of unknown names are the only usual reason to fail, and are discarded; but a member may have the name of
	// a field and be something else.
	lenient := protojson.UnmarshalOptions{DiscardUnknown: true}
	if err := lenient.Unmarshal(object, m); err != nil {
		proto.Reset(m)
		pruned := prune(nil, gjson.ParseBytes(object), m.ProtoReflect().Descriptor())
		if err := lenient.Unmarshal(pruned, m); err != nil {
			proto.Reset(m)
		}
	}
	if encoded, err := (proto.MarshalOptions{Deterministic: true}).MarshalAppend(dst, m); err == nil {
		return encoded
	}
	return dst // cannot happen: it has no required fields, and its strings were checked
}

// prune appends an object with only the members of a message.
func prune(dst []byte, object gjson.Result, d protoreflect.MessageDescriptor) []byte {
	dst = append(dst, '{')
	var seen []protoreflect.FullName // fields, and the groups of fields with only one to be set
	jsonrpc.ForEach(object, func(name, v gjson.Result) bool {
		field := d.Fields().ByJSONName(name.Str)
		if field == nil || v.Type == gjson.Null {
			return true
		}
		slot := field.FullName()
		if one := field.ContainingOneof(); one != nil {
			slot = one.FullName()
		}
		if slices.Contains(seen, slot) {
			return true
		}
		before := len(dst)
		if len(seen) > 0 {
			dst = append(dst, ',')
		}
		dst = append(task.AppendString(dst, name.Str), ':')
		var ok bool
		if dst, ok = pruneField(dst, v, field); !ok {
			dst = dst[:before]
			return true
		}
		seen = append(seen, slot)
		return true
	})
	return append(dst, '}')
}

// pruneField appends the value of a field. ok is false if the value is of another kind.
func pruneField(dst []byte, v gjson.Result, field protoreflect.FieldDescriptor) (_ []byte, ok bool) {
	switch {
	case field.IsMap():
		return append(dst, '{', '}'), v.IsObject() // no object of the gateway needs one
	case !field.IsList():
		return pruneValue(dst, v, field)
	case !v.IsArray():
		return dst, false
	}
	dst = append(dst, '[')
	n := 0
	jsonrpc.ForEach(v, func(_, item gjson.Result) bool {
		before := len(dst)
		if n > 0 {
			dst = append(dst, ',')
		}
		var ok bool
		if dst, ok = pruneValue(dst, item, field); !ok {
			dst = dst[:before]
			return true
		}
		n++
		return true
	})
	return append(dst, ']'), true
}

// pruneValue appends a value. ok is false if it is of another kind than the field's.
func pruneValue(dst []byte, v gjson.Result, field protoreflect.FieldDescriptor) (_ []byte, ok bool) {
	switch field.Kind() {
	case protoreflect.MessageKind:
		d := field.Message()
		if d.ParentFile().Package() == "google.protobuf" { // it is a value of JSON, such as an object or a time
			known, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
			if err == nil {
				err = protojson.Unmarshal([]byte(v.Raw), known.New().Interface())
			}
			return append(dst, v.Raw...), err == nil
		}
		if !v.IsObject() {
			return dst, false
		}
		return prune(dst, v, d), true
	case protoreflect.BoolKind:
		ok = v.IsBool()
	case protoreflect.StringKind:
		ok = v.Type == gjson.String
	case protoreflect.BytesKind:
		_, ok = Base64(v.Str)
		ok = ok && v.Type == gjson.String
	case protoreflect.EnumKind:
		ok = v.Type == gjson.String && field.Enum().Values().ByName(protoreflect.Name(v.Str)) != nil
	default:
		ok = v.Type == gjson.Number && v.Num == float64(int32(v.Num))
	}
	return append(dst, v.Raw...), ok
}

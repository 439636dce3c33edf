// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// AUN defines one kind of content, {type: "text", content}. The others follow its artifacts: json has any value for its
// content, file a URI, a data URI for a file with bytes, and multipart a list of contents.
const (
	textType      = "text"
	jsonType      = "json"
	fileType      = "file"
	multipartType = "multipart"
)

// maxDepth is the most levels of multipart contents inside each other.
const maxDepth = 4

// AppendContent appends data items as a content, an object.
func AppendContent(dst []byte, items []task.DataItem) []byte {
	return append(appendMembers(append(dst, '{'), "", items), '}')
}

// appendMembers appends the members of a content. name is the name of its product.
func appendMembers(dst []byte, name string, items []task.DataItem) []byte {
	if len(items) != 1 {
		if len(items) == 0 {
			dst = append(dst, `"type":"text"`...)
			return append(wire.AppendOptional(dst, `,"name":`, name), `,"content":""`...)
		}
		dst = wire.AppendOptional(append(dst, `"type":"multipart"`...), `,"name":`, name)
		dst = append(dst, `,"content":[`...)
		for i := range items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendContent(dst, items[i:i+1])
		}
		return append(dst, ']')
	}
	it := &items[0]
	metadata := it.Metadata
	switch it.Kind {
	case task.TextItem:
		dst = wire.AppendOptional(append(dst, `"type":"text"`...), `,"name":`, name)
		dst = wire.AppendOptional(dst, `,"mime_type":`, gjson.GetBytes(it.Metadata, "mimeType").Str)
		dst = it.AppendText(append(dst, `,"content":`...))
	case task.FileItem:
		if name == "" {
			name = it.Name
		}
		dst = wire.AppendOptional(append(dst, `"type":"file"`...), `,"name":`, name)
		dst = wire.AppendOptional(dst, `,"mime_type":`, it.MIMEType)
		dst = wire.AppendFileURI(append(dst, `,"content":`...), it, "")
	default:
		dst = wire.AppendOptional(append(dst, `"type":"json"`...), `,"name":`, name)
		var value []byte
		value, metadata = wire.AnyData(it)
		dst = append(append(dst, `,"content":`...), value...)
	}
	if len(metadata) > 0 {
		dst = append(append(dst, `,"metadata":`...), wire.OneLine(metadata)...)
	}
	return dst
}

// AppendArtifact appends a product as an artifact.
func AppendArtifact(dst []byte, p *task.Product) []byte { return append(appendArtifact(dst, p), '}') }

// appendArtifact appends an artifact without its last brace.
func appendArtifact(dst []byte, p *task.Product) []byte {
	dst = task.AppendString(append(dst, `{"id":`...), p.ID)
	dst = wire.AppendOptional(dst, `,"description":`, p.Description)
	return appendMembers(append(dst, ','), p.Name, p.DataItems)
}

// ReadContent reads a content: an object, or a text alone. A content of an unknown type becomes a data item with the
// content as sent. ok is false if v is neither, or its content does not fit its type.
func ReadContent(v gjson.Result) (items []task.DataItem, ok bool) { return readContent(v, 1) }

func readContent(v gjson.Result, depth int) (items []task.DataItem, ok bool) {
	if v.Type == gjson.String {
		return []task.DataItem{task.Text(wire.Owned(v, v.Str))}, true
	}
	if !v.IsObject() {
		return nil, false
	}
	var kind, text, content, name, mime, metadata gjson.Result
	wire.Members(v, func(key string, v gjson.Result) {
		switch key {
		case "type":
			kind = v
		case "content":
			content = v
		case "text": // as a payload of message.send has it
			text = v
		case "name":
			name = v
		case "mime_type":
			mime = v
		case "metadata":
			metadata = v
		}
	})
	it := task.DataItem{MIMEType: strings.Clone(mime.Str)}
	if metadata.IsObject() {
		it.Metadata = wire.Line(metadata)
	}
	switch {
	case kind.Str == textType, !kind.Exists() && (content.Type == gjson.String || text.Type == gjson.String):
		if !content.Exists() {
			content = text
		}
		it.Kind = task.TextItem
		wire.OwnText(&it, content)
		if it.MIMEType != "" && it.Metadata == nil {
			it.Metadata = append(task.AppendString([]byte(`{"mimeType":`), it.MIMEType), '}')
		}
		it.MIMEType = ""
		ok = content.Type == gjson.String
	case kind.Str == fileType:
		it.Kind, it.Name = task.FileItem, wire.Owned(name, name.Str)
		readURI(&it, content.Str)
		ok = content.Str != ""
	case kind.Str == jsonType:
		it.MIMEType = ""
		content = jsonrpc.Member(v, "content") // null is a value, too
		wire.ReadAnyData(&it, content)
		ok = content.Exists()
	case kind.Str == multipartType:
		if !content.IsArray() || depth == maxDepth {
			return nil, false
		}
		ok = true
		jsonrpc.ForEach(content, func(_, part gjson.Result) bool {
			var more []task.DataItem
			more, ok = readContent(part, depth+1)
			items = append(items, more...)
			ok = ok && len(items) <= wire.MaxItems
			return ok
		})
		return items, ok
	default:
		return []task.DataItem{{Kind: task.DataKind, Data: wire.Line(v)}}, true
	}
	return []task.DataItem{it}, ok
}

// readURI reads the URI of a file. A data URI in base64 is the file itself.
func readURI(it *task.DataItem, uri string) {
	mime, data, ok := wire.ReadDataURI(uri)
	if !ok {
		it.URI = strings.Clone(uri)
		return
	}
	it.Bytes = strings.Clone(data)
	if it.MIMEType == "" {
		it.MIMEType = strings.Clone(mime)
	}
}

// ReadArtifact reads an artifact. ok is false if it has no id, or its content does not fit its type.
func ReadArtifact(v gjson.Result) (p task.Product, ok bool) {
	id, name, description := jsonrpc.Member(v, "id"), jsonrpc.Member(v, "name"), jsonrpc.Member(v, "description")
	p = task.Product{ID: id.Str, Name: name.Str, Description: description.Str}
	wire.Own(&p.ID, &p.Name, &p.Description)
	p.DataItems, ok = ReadContent(v)
	if len(p.DataItems) == 1 && p.DataItems[0].Kind == task.FileItem && p.DataItems[0].Name == p.Name {
		p.DataItems[0].Name = ""
	}
	return p, ok && p.ID != "" && len(p.ID) <= wire.MaxID
}

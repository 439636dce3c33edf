// SPDX-License-Identifier: Apache-2.0

// Package part reads and writes the parts of messages and artifacts of the versions before 1.0.
package part

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/extension"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Append appends the parts of data items. word is the member for the kind of a part: the only difference between the
// versions, and agents require their own.
func Append(dst []byte, word string, items []task.DataItem) []byte {
	dst = append(dst, '[')
	for i := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '{', '"'), word...), '"')
		dst = append(appendContent(dst, &items[i]), '}')
	}
	return append(dst, ']')
}

// appendContent appends the rest behind the name of the member for the kind of a part.
func appendContent(dst []byte, it *task.DataItem) []byte {
	switch it.Kind {
	case task.TextItem:
		dst = append(dst, `:"text","text":`...)
		dst = it.AppendText(dst)
	case task.FileItem:
		dst = append(dst, `:"file","file":{`...)
		begin := len(dst)
		for _, m := range [...]struct{ key, value string }{
			{`"name":`, it.Name}, {`"mimeType":`, it.MIMEType}, {`"uri":`, it.URI}, {`"bytes":`, it.Bytes},
		} {
			if m.value == "" {
				continue
			}
			if len(dst) > begin {
				dst = append(dst, ',')
			}
			dst = append(dst, m.key...)
			dst = task.AppendString(dst, m.value)
		}
		dst = append(dst, '}')
	default:
		dst = append(dst, `:"data","data":`...)
		if len(it.Data) == 0 {
			dst = append(dst, `{}`...)
		}
		dst = append(dst, it.Data...)
	}
	return extension.AppendPart(dst, it.Metadata, extension.PartMembers)
}

// Read reads a list of parts. Some agents send one alone.
func Read(parts gjson.Result) ([]task.DataItem, error) {
	var items []task.DataItem
	switch {
	case parts.Type == gjson.Null, parts.Type == gjson.String && parts.Str == "": // missing, too
		return nil, nil
	case hasMembers(parts), parts.Type == gjson.String:
		return append(items, read(parts)), nil
	case !parts.IsArray():
		return nil, wire.Refuse("the agent's answer has parts that are no array")
	}
	jsonrpc.ForEach(parts, func(_, part gjson.Result) bool {
		items = append(items, read(part))
		return true
	})
	return items, nil
}

func hasMembers(v gjson.Result) (has bool) {
	wire.Members(v, func(string, gjson.Result) { has = true })
	return has
}

// words are other words of agents for the kind of a part, in small letters.
var words = map[string]string{
	"text": "text", "text/plain": "text", "text/markdown": "text", "markdown": "text", "plain": "text", "string": "text",
	"textpart": "text", "output_text": "text", "message": "text",
	"file": "file", "filepart": "file",
	"data": "data", "datapart": "data", "json": "data", "application/json": "data", "object": "data",
}

// read reads one part of an agent. A part other than a text, a file or data becomes a data item with the part as sent,
// so that nothing is lost.
func read(part gjson.Result) task.DataItem {
	if it, ok := Content(part); ok {
		return it
	}
	if it, ok := content(part, func(word string) string { return words[strings.ToLower(word)] }); ok {
		return it
	}
	if part.Type == gjson.String {
		return task.Text(part.Str)
	}
	if it, ok := later(part); ok {
		return it
	}
	var it task.DataItem
	wire.ReadData(&it, part)
	return it
}

// later reads a file as 1.0 writes it: some agents of 0.3 do.
func later(part gjson.Result) (it task.DataItem, ok bool) {
	var others wire.Extensions
	it.Kind = task.FileItem
	wire.Members(part, func(key string, v gjson.Result) {
		switch key {
		case "url":
			it.URI = v.Str
		case "raw":
			it.Bytes = v.Str
		case "filename":
			it.Name = v.Str
		case "mediaType":
			it.MIMEType = v.Str
		case "metadata":
			if v.IsObject() {
				it.Metadata = wire.Line(v)
			}
		case "text", "data":
		default:
			others.Add(key, v)
		}
	})
	if it.Bytes != "" {
		it.URI = ""
	}
	it.Metadata = extension.OfPart(it.Metadata, &others, extension.PartMembersV1)
	isTyped := jsonrpc.Member(part, "kind").Exists() || jsonrpc.Member(part, "type").Exists()
	return it, !isTyped && (it.URI != "" || wire.IsBase64(it.Bytes) && it.Bytes != "")
}

// Content reads one part: a text, a file or data. The type of a part counts only if its content agrees, and may be
// missing: agents of later versions write "kind" instead, and some write neither.
func Content(part gjson.Result) (it task.DataItem, ok bool) { return content(part, nil) }

// content is Content with other words for the kind of a part; means returns the meaning of one, empty for none.
func content(part gjson.Result, means func(word string) string) (it task.DataItem, ok bool) {
	var text, file, data gjson.Result
	var word string
	var others wire.Extensions
	wire.Members(part, func(key string, v gjson.Result) {
		switch key {
		case "type", "kind":
			word = v.String()
		case "text":
			text = v
		case "file":
			file = v
		case "data":
			data = v
		case "metadata":
			if v.IsObject() {
				it.Metadata = wire.Line(v)
			}
		default:
			others.Add(key, v)
		}
	})
	it.Metadata = extension.OfPart(it.Metadata, &others, extension.PartMembers)
	if means != nil {
		if word = means(word); word == "" {
			return it, false
		}
	}
	is := func(name string, v gjson.Result) bool { return v.Exists() && (word == name || word == "") }
	switch {
	case is("text", text) && text.Type == gjson.String:
		it.Kind = task.TextItem
		wire.ReadText(&it, text)
		return it, true
	case is("file", file) && readFile(&it, file):
		return it, true
	case is("data", data):
		wire.ReadData(&it, data)
		return it, true
	}
	return it, false
}

// readFile reads a file into it. AIP has either a URI or the bytes: if an agent sends both, the bytes are kept, because
// reading them needs no permission. ok is false if it sends neither.
func readFile(it *task.DataItem, file gjson.Result) (ok bool) {
	var f task.DataItem
	wire.Members(file, func(key string, v gjson.Result) {
		if v.Type != gjson.String {
			return
		}
		switch key {
		case "name":
			f.Name = v.Str
		case "mimeType":
			f.MIMEType = v.Str
		case "uri", "fileWithUri": // the longer names are those of 0.3's schema for gRPC
			f.URI = v.Str
		case "bytes", "fileWithBytes":
			f.Bytes = v.Str
		}
	})
	if f.Bytes != "" {
		f.URI = ""
	}
	if f.Bytes == "" && f.URI == "" {
		return false
	}
	f.Kind, f.Metadata = task.FileItem, it.Metadata
	*it = f
	return true
}

// MaxArtifacts is the most artifacts of one task. Pieces of one artifact count as one.
const MaxArtifacts = 1000

// Own replaces the texts of an item, views of the body, by copies.
func Own(it *task.DataItem) {
	it.OwnText()
	for _, s := range [...]*string{&it.Name, &it.MIMEType, &it.URI, &it.Bytes} {
		*s = strings.Clone(*s)
	}
}

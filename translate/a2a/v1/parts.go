// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/extension"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// appendParts appends data items as parts.
func appendParts(dst []byte, items []task.DataItem) []byte {
	dst = append(dst, '[')
	for i := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendPart(dst, &items[i])
	}
	return append(dst, ']')
}

// appendPart appends one part. The name of its one content member says its kind.
func appendPart(dst []byte, it *task.DataItem) []byte {
	metadata := it.Metadata
	switch it.Kind {
	case task.TextItem:
		dst = append(dst, `{"text":`...)
		dst = it.AppendText(dst)
	case task.FileItem:
		if it.Bytes != "" || it.URI == "" {
			dst = append(dst, `{"raw":`...)
			dst = task.AppendString(dst, it.Bytes)
		} else {
			dst = append(dst, `{"url":`...)
			dst = task.AppendString(dst, it.URI)
		}
		dst = wire.AppendOptional(dst, `,"filename":`, it.Name)
		dst = wire.AppendOptional(dst, `,"mediaType":`, it.MIMEType)
	default:
		var value []byte
		value, metadata = wire.AnyData(it)
		dst = append(append(dst, `{"data":`...), value...)
	}
	return append(extension.AppendPart(dst, metadata, extension.PartMembersV1), '}')
}

// content holds the members of a part. Its strings are views of the body.
type content struct {
	text, raw, url, data, filename, mediaType, metadata gjson.Result

	rest wire.Extensions
}

func contentOf(part gjson.Result) (p content) {
	if !part.IsObject() {
		return p
	}
	jsonrpc.ForEach(part, func(key, v gjson.Result) bool {
		switch key.Str {
		case "text":
			p.text = v
		case "raw":
			p.raw = v
		case "url":
			p.url = v
		case "data":
			p.data = v // null is a value, too
		case "filename":
			p.filename = v
		case "mediaType":
			p.mediaType = v
		case "metadata":
			p.metadata = v
		case "kind", "type": // of other versions; some agents still write it
		default:
			if v.Type != gjson.Null {
				p.rest.Add(key.Str, v)
			}
		}
		return true
	})
	return p
}

// contents returns the number of content members set. An empty text counts only if it is alone.
func (p *content) contents() int {
	n := 0
	for _, v := range [...]gjson.Result{p.text, p.raw, p.url} {
		if v.Str != "" {
			n++
		}
	}
	if p.data.Raw != "" && (p.data.Type != gjson.Null || n == 0 && p.text.Type != gjson.String) {
		n++
	}
	if n == 0 && p.text.Type == gjson.String {
		n++
	}
	return n
}

// item returns a part as a data item, with its extensions; ok is false if it has no content.
func (p *content) item(adds bool) (it task.DataItem, ok bool) {
	it, ok = p.content(adds)
	it.Metadata = extension.OfPart(it.Metadata, &p.rest, extension.PartMembersV1)
	return it, ok
}

// content returns a part as a data item. In AIP only files have a name and a media type, so those of other parts are
// kept in the metadata. They are left out if they are the default, and with adds, because a text appended to a text
// must have no metadata. ok is false if a part has no content.
func (p *content) content(adds bool) (it task.DataItem, ok bool) {
	if p.metadata.IsObject() {
		it.Metadata = wire.Line(p.metadata)
	}
	usual := "text/plain"
	switch {
	case p.text.Str != "":
		it.Kind = task.TextItem
		wire.ReadText(&it, p.text)
	case p.raw.Str != "":
		it.Kind, it.Name, it.MIMEType = task.FileItem, p.filename.Str, p.mediaType.Str
		it.Bytes, _ = Base64(p.raw.Str)
		return it, true
	case p.url.Str != "":
		it.Kind, it.Name, it.MIMEType, it.URI = task.FileItem, p.filename.Str, p.mediaType.Str, p.url.Str
		return it, true
	case p.data.Raw != "" && (p.data.Type != gjson.Null || p.text.Type != gjson.String):
		usual = "application/json"
		wire.ReadAnyData(&it, p.data)
	case p.text.Type == gjson.String:
		it.Kind = task.TextItem
	default:
		return it, false
	}
	if !adds || it.Kind != task.TextItem {
		if p.mediaType.Str != usual {
			it.Metadata = with(it.Metadata, "mediaType", p.mediaType.Str)
		}
		it.Metadata = with(it.Metadata, "filename", p.filename.Str)
	}
	return it, true
}

// with returns an object with one more member, unless it has the member or the value is empty.
func with(object json.RawMessage, key, value string) json.RawMessage {
	if value == "" || len(object) > 0 && gjson.GetBytes(object, key).Exists() {
		return object
	}
	dst := []byte{'{'}
	if end := bytes.LastIndexByte(object, '}'); end > 0 {
		dst = append(dst[:0], bytes.TrimRight(object[:end], " \t")...)
	}
	if len(dst) > 1 {
		dst = append(dst, ',')
	}
	dst = append(task.AppendString(dst, key), ':')
	return append(task.AppendString(dst, value), '}')
}

// readParts reads an agent's parts. A part of none of the four kinds becomes a data item with the part as sent, so that
// nothing is lost.
func readParts(parts gjson.Result, adds bool) ([]task.DataItem, error) {
	if parts.Type == gjson.Null { // missing, too
		return nil, nil
	}
	if !parts.IsArray() {
		return nil, wire.Refuse("the agent's answer has parts that are no array")
	}
	var items []task.DataItem
	jsonrpc.ForEach(parts, func(_, part gjson.Result) bool {
		p := contentOf(part)
		it, ok := p.item(adds)
		if !ok {
			it = task.DataItem{}
			wire.ReadAnyData(&it, part)
		}
		items = append(items, it)
		return true
	})
	return items, nil
}

// Base64 returns s as the standard base64 with padding, as in AIP. A2A also accepts the one for URLs, and either
// without padding. ok is false if s is neither; s is returned unchanged then.
func Base64(s string) (standard string, ok bool) {
	digits := strings.TrimSuffix(strings.TrimSuffix(s, "="), "=")
	foreign := false
	for i := 0; i < len(digits); i++ {
		switch c := digits[i]; {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '+', c == '/':
		case c == '-', c == '_':
			foreign = true
		default:
			return s, false
		}
	}
	if len(digits)%4 == 1 || digits == "" && s != "" {
		return s, false
	}
	if !foreign && len(s)%4 == 0 {
		return s, true
	}
	const padding = "=="
	return fromURL.Replace(digits) + padding[:(4-len(digits)%4)%4], true
}

var fromURL = strings.NewReplacer("-", "+", "_", "/")

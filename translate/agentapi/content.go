// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// readContent reads one content of a message. A content that the canon has no words for becomes a data item with the
// content as it was sent, so that nothing is lost. The texts of the item are views of v.
func readContent(v gjson.Result) task.DataItem {
	var m contentMembers
	wire.Members(v, m.set)
	switch m.kind.Str {
	case typeText, "": // the specification's own example of a text has its type; some agents leave it out
		if m.text.Type == gjson.String || m.kind.Str == typeText && wire.Absent(m.text) {
			return task.Text(m.text.Str)
		}
	case typeRefusal:
		if m.refusal.Type == gjson.String {
			return task.DataItem{Kind: task.TextItem, Text: m.refusal.Str, Metadata: typed(typeRefusal)}
		}
	case typeData:
		if !wire.Absent(m.data) {
			return dataItem(m.data)
		}
	case typeImage:
		return media(v, typeImage, m.imageURL.Str)
	case typeVideo:
		return media(v, typeVideo, m.videoURL.Str)
	case typeAudio:
		return m.audio(v)
	case typeFile:
		return m.file(v)
	}
	return dataItem(v)
}

// dataItem returns v as a data item.
func dataItem(v gjson.Result) (it task.DataItem) {
	wire.ReadData(&it, v)
	return it
}

// contentMembers are the members of a content that hold what it says.
type contentMembers struct {
	kind, text, refusal, data, imageURL, videoURL, format, fileURL, fileData, fileID, filename gjson.Result
}

func (m *contentMembers) set(name string, v gjson.Result) {
	switch name {
	case "type":
		m.kind = v
	case "text":
		m.text = v
	case "refusal":
		m.refusal = v
	case "data":
		m.data = v
	case "image_url":
		m.imageURL = v
	case "video_url":
		m.videoURL = v
	case "format":
		m.format = v
	case "file_url":
		m.fileURL = v
	case "file_data":
		m.fileData = v
	case "file_id":
		m.fileID = v
	case "filename":
		m.filename = v
	}
}

// media reads an image or a video: a URL, perhaps one with the bytes in it.
func media(v gjson.Result, kind, url string) task.DataItem {
	if url == "" {
		return dataItem(v)
	}
	it := fileAt(url)
	if !strings.HasPrefix(it.MIMEType, kind+"/") {
		it.Metadata = typed(kind)
	}
	return it
}

// audio reads a content with base64, or a URL, as its data.
func (m *contentMembers) audio(v gjson.Result) task.DataItem {
	data := m.data.Str
	if data == "" {
		return dataItem(v)
	}
	it := fileOf(data)
	if it.MIMEType == "" { // no extension of a URL says it
		it.MIMEType = audioType(m.format.Str)
	}
	if !strings.HasPrefix(it.MIMEType, typeAudio+"/") {
		it.Metadata = typed(typeAudio)
	}
	return it
}

// file reads a content of type file. A file with only an id cannot be fetched, and stays as it was sent.
func (m *contentMembers) file(v gjson.Result) task.DataItem {
	var it task.DataItem
	switch {
	case m.fileData.Str != "":
		it = fileOf(m.fileData.Str)
	case m.fileURL.Str != "":
		it = fileAt(m.fileURL.Str)
	default:
		it = dataItem(v)
		if m.fileID.Str != "" {
			it.Metadata = typed(typeFile)
		}
		return it
	}
	if it.Name = m.filename.Str; m.fileID.Str != "" {
		it.Metadata = withOwn(nil, task.AppendString([]byte(`"file_id":`), m.fileID.Str))
	}
	return it
}

// fileOf returns the file in a string: base64, or a URL.
func fileOf(s string) task.DataItem {
	if wire.IsBase64(s) {
		return task.DataItem{Kind: task.FileItem, Bytes: s}
	}
	return fileAt(s)
}

// fileAt returns the file at a URL. One of the scheme data holds the bytes.
func fileAt(url string) task.DataItem {
	if mime, data, ok := wire.ReadDataURI(url); ok {
		return task.DataItem{Kind: task.FileItem, MIMEType: mime, Bytes: data}
	}
	return task.DataItem{Kind: task.FileItem, URI: url, MIMEType: mimeTypes[extension(url)]}
}

// extension returns the extension of the path of a URL, in lower case and without its dot.
func extension(url string) string {
	url, _, _ = strings.Cut(url, "#")
	url, _, _ = strings.Cut(url, "?")
	return strings.ToLower(strings.TrimPrefix(path.Ext(url), "."))
}

// mimeTypes are the usual types of images and videos, as contents name them by their URL only.
var mimeTypes = map[string]string{
	"png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp",
	"svg": "image/svg+xml", "mp4": "video/mp4", "webm": "video/webm", "mov": "video/quicktime",
}

// audioType returns the media type of a format. Only mp3 has another name there.
func audioType(format string) string {
	switch format {
	case "":
		return ""
	case "mp3":
		return "audio/mpeg"
	}
	return "audio/" + format
}

// audioFormat is the inverse of audioType.
func audioFormat(mime string) string {
	if mime == "audio/mpeg" {
		return "mp3"
	}
	return strings.TrimPrefix(mime, "audio/")
}

// typed returns the metadata of an item with the type of its content.
func typed(kind string) json.RawMessage {
	return append(task.AppendString([]byte(`{"agentapi":{"type":`), kind), '}', '}')
}

// typeOf returns the type given to an item by typed, and nothing for other items.
func typeOf(it *task.DataItem) string { return own(it, "type") }

// own returns a string of the Agent API in the metadata of an item.
func own(it *task.DataItem, name string) string {
	if len(it.Metadata) == 0 {
		return ""
	}
	return gjson.ParseBytes(wire.MemberOf(family.Of(it.Metadata), name)).Str
}

// appendContent appends the members of a content for an item, its type first, without the braces around them. A server
// refuses a request with a content of an unknown type, so only the types of the schema are written.
func appendContent(dst []byte, it *task.DataItem) []byte {
	switch it.Kind {
	case task.FileItem:
		return appendFile(dst, it)
	case task.DataKind:
		if typeOf(it) == typeFile {
			v := gjson.ParseBytes(it.Data)
			dst = task.AppendString(append(dst, `"type":"file","file_id":`...), jsonrpc.Member(v, "file_id").Str)
			return wire.AppendOptional(dst, `,"filename":`, jsonrpc.Member(v, "filename").Str)
		}
		dst = append(dst, `"type":"data","data":`...)
		if len(it.Data) == 0 {
			return append(dst, '{', '}')
		}
		return append(dst, wire.OneLine(it.Data)...)
	}
	if typeOf(it) == typeRefusal {
		return it.AppendText(append(dst, `"type":"refusal","refusal":`...))
	}
	return it.AppendText(append(dst, `"type":"text","text":`...))
}

// unknownType is the media type of a file without one.
const unknownType = "application/octet-stream"

// appendFile appends a file by its media type, or by the type of its content.
func appendFile(dst []byte, it *task.DataItem) []byte {
	kind, _, _ := strings.Cut(it.MIMEType, "/")
	if t := typeOf(it); t != "" {
		kind = t
	}
	switch {
	case kind == typeImage:
		return wire.AppendFileURI(append(dst, `"type":"image","image_url":`...), it, unknownType)
	case kind == typeVideo:
		return wire.AppendFileURI(append(dst, `"type":"video","video_url":`...), it, unknownType)
	case kind == typeAudio: // its data may be a URL
		dst = task.AppendString(append(dst, `"type":"audio","data":`...), it.Bytes+it.URI)
		if strings.HasPrefix(it.MIMEType, typeAudio+"/") || it.Bytes != "" {
			dst = task.AppendString(append(dst, `,"format":`...), audioFormat(it.MIMEType))
		}
		return dst
	case it.Bytes != "":
		dst = wire.AppendFileURI(append(dst, `"type":"file","file_data":`...), it, unknownType)
	default:
		dst = wire.AppendFileURI(append(dst, `"type":"file","file_url":`...), it, unknownType)
	}
	dst = wire.AppendOptional(dst, `,"filename":`, it.Name)
	return wire.AppendOptional(dst, `,"file_id":`, own(it, "file_id"))
}

// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bytes"
	"encoding/json"
	"hash/crc32"
	"strconv"
	"time"
)

// The JSON form of the canon is AIP's own (v01.00 §4), because the canon uses AIP's words. It is stored in the log and
// sent to AIP callers, so it is written often, and by hand. encoding/json reads it by the struct tags of the same
// types, and a test proves that the two agree.

// Form is a way to write the canon. It appends the members for the extensions of an object, each behind a comma. The
// nil Form is the log's: extensions are a member metadata.
type Form func(dst []byte, extensions json.RawMessage, of Object) []byte

// Object is the kind of object of the extensions in a Form.
type Object uint8

// The objects with extensions.
const (
	TaskObject Object = iota
	StatusObject
	MessageObject
	ProductObject
	ItemObject
	EventObject // of a stream
)

// AppendTask appends the JSON of t: AIP's Task, with products always present and histories if there are any.
func AppendTask(dst []byte, t *Task) []byte { return Form(nil).AppendTask(dst, t) }

// AppendTask appends the JSON of t in a form.
func (f Form) AppendTask(dst []byte, t *Task) []byte {
	dst = append(dst, `{"type":"task","id":`...)
	dst = AppendString(dst, t.ID)
	dst = appendOptional(dst, `,"senderId":`, t.SenderID)
	dst = append(dst, `,"status":`...)
	dst = f.AppendStatus(dst, &t.Status)
	dst = f.AppendProducts(append(dst, `,"products":`...), t.Products)
	if len(t.MessageHistory) > 0 {
		dst = append(dst, `,"messageHistory":[`...)
		for i := range t.MessageHistory {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = f.AppendMessage(dst, &t.MessageHistory[i])
		}
		dst = append(dst, ']')
	}
	if len(t.StatusHistory) > 0 {
		dst = f.AppendStatuses(append(dst, `,"statusHistory":`...), t.StatusHistory)
	}
	dst = appendOptional(dst, `,"groupId":`, t.GroupID)
	dst = append(dst, `,"sessionId":`...)
	dst = AppendString(dst, t.SessionID)
	return append(f.appendExtensions(dst, t.Extensions, TaskObject), '}')
}

// AppendStatus appends the JSON of s.
func AppendStatus(dst []byte, s *Status) []byte { return Form(nil).AppendStatus(dst, s) }

// AppendStatus appends the JSON of s in a form.
func (f Form) AppendStatus(dst []byte, s *Status) []byte {
	dst = append(dst, `{"state":`...)
	dst = AppendString(dst, string(s.State))
	dst = append(dst, `,"stateChangedAt":`...)
	dst = AppendTime(dst, s.ChangedAt)
	if len(s.DataItems) > 0 {
		dst = append(dst, `,"dataItems":`...)
		dst = f.appendItems(dst, s.DataItems)
	}
	dst = f.appendExtensions(dst, s.Extensions, StatusObject)
	if f == nil { // others show it with the event
		dst = appendRaw(dst, `,"taskMetadata":`, s.TaskExtensions)
	}
	return append(dst, '}')
}

// AppendStatuses appends the JSON of a list in a form.
func (f Form) AppendStatuses(dst []byte, list []Status) []byte {
	dst = append(dst, '[')
	for i := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = f.AppendStatus(dst, &list[i])
	}
	return append(dst, ']')
}

// AppendMessage appends the JSON of m.
func AppendMessage(dst []byte, m *Message) []byte { return Form(nil).AppendMessage(dst, m) }

// AppendMessage appends the JSON of m in a form.
func (f Form) AppendMessage(dst []byte, m *Message) []byte {
	dst = append(dst, `{"type":"message","id":`...)
	id := m.ID
	if id == "" && m.SenderRole == Partner && f != nil {
		id = m.madeID()
	}
	dst = AppendString(dst, id)
	dst = append(dst, `,"sentAt":`...)
	dst = AppendTime(dst, m.SentAt)
	dst = append(dst, `,"senderRole":`...)
	dst = AppendString(dst, string(m.SenderRole))
	dst = append(dst, `,"senderId":`...)
	dst = AppendString(dst, m.SenderID)
	dst = AppendStrings(dst, `,"mentions":[`, m.Mentions)
	dst = appendOptional(dst, `,"command":`, string(m.Command))
	dst = appendRaw(dst, `,"commandParams":`, m.Params)
	dst = append(dst, `,"dataItems":`...)
	dst = f.appendItems(dst, m.DataItems)
	dst = appendOptional(dst, `,"taskId":`, m.TaskID)
	dst = appendOptional(dst, `,"groupId":`, m.GroupID)
	dst = appendOptional(dst, `,"sessionId":`, m.SessionID)
	if f == nil {
		dst = AppendStrings(dst, `,"references":[`, m.References)
	}
	return append(f.appendExtensions(dst, m.Extensions, MessageObject), '}')
}

// madeID returns an id for a message of the Partner without one: it is always the same, and is made of the task, the
// time and the content.
func (m *Message) madeID() string {
	content := Form(nil).appendItems(nil, m.DataItems)
	return m.TaskID + "-" + strconv.FormatUint(uint64(crc32.ChecksumIEEE(content)), 36) + "-" +
		strconv.FormatInt(m.SentAt.UnixMilli(), 36)
}

// AppendProduct appends the JSON of p in a form.
func (f Form) AppendProduct(dst []byte, p *Product) []byte {
	dst = append(dst, `{"id":`...)
	dst = AppendString(dst, p.ID)
	dst = appendOptional(dst, `,"name":`, p.Name)
	dst = appendOptional(dst, `,"description":`, p.Description)
	dst = append(dst, `,"dataItems":`...)
	dst = f.appendItems(dst, p.DataItems)
	return append(f.appendExtensions(dst, p.Extensions, ProductObject), '}')
}

// AppendProducts appends the JSON of a list in a form.
func (f Form) AppendProducts(dst []byte, list []Product) []byte {
	dst = append(dst, '[')
	for i := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = f.AppendProduct(dst, &list[i])
	}
	return append(dst, ']')
}

// AppendChunk appends the JSON of c: its own members in a ProductChunkEvent (§6.2.4).
func AppendChunk(dst []byte, c *Chunk) []byte { return Form(nil).AppendChunk(dst, c) }

// AppendChunk appends the JSON of c in a form.
func (f Form) AppendChunk(dst []byte, c *Chunk) []byte {
	dst = append(dst, `{"product":`...)
	dst = f.AppendProduct(dst, &c.Product)
	dst = append(dst, `,"append":`...)
	dst = strconv.AppendBool(dst, c.Append)
	dst = append(dst, `,"lastChunk":`...)
	dst = strconv.AppendBool(dst, c.Last)
	return append(f.appendExtensions(dst, c.Extensions, EventObject), '}')
}

func (f Form) appendItems(dst []byte, items []DataItem) []byte {
	dst = append(dst, '[')
	for i := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = f.appendItem(dst, &items[i])
	}
	return append(dst, ']')
}

func (f Form) appendItem(dst []byte, it *DataItem) []byte {
	dst = append(dst, `{"type":`...)
	dst = AppendString(dst, string(it.Kind))
	switch it.Kind {
	case TextItem:
		dst = append(dst, `,"text":`...)
		dst = it.AppendText(dst)
	case FileItem:
		dst = appendOptional(dst, `,"name":`, it.Name)
		dst = appendOptional(dst, `,"mimeType":`, it.MIMEType)
		dst = appendOptional(dst, `,"uri":`, it.URI)
		dst = appendOptional(dst, `,"bytes":`, it.Bytes)
	case DataKind:
		dst = appendRaw(dst, `,"data":`, it.Data)
	}
	return append(f.appendExtensions(dst, it.Metadata, ItemObject), '}')
}

func (f Form) appendExtensions(dst []byte, extensions json.RawMessage, of Object) []byte {
	if len(extensions) > 0 && f != nil {
		return f(dst, extensions, of)
	}
	return appendRaw(dst, `,"metadata":`, extensions)
}

// AppendTime appends t as a JSON string in ISO 8601 with its own offset, and no more fraction than it has.
func AppendTime(dst []byte, t time.Time) []byte {
	dst = append(dst, '"')
	dst = t.AppendFormat(dst, time.RFC3339Nano)
	return append(dst, '"')
}

// AppendStrings appends a member that is a list of strings, unless it is empty. key has its first bracket.
func AppendStrings(dst []byte, key string, list []string) []byte {
	if len(list) == 0 {
		return dst
	}
	for i, s := range list {
		if i > 0 {
			key = ","
		}
		dst = AppendString(append(dst, key...), s)
	}
	return append(dst, ']')
}

func appendOptional(dst []byte, key, value string) []byte {
	if value == "" {
		return dst
	}
	return AppendString(append(dst, key...), value)
}

func appendRaw(dst []byte, key string, value []byte) []byte {
	if len(value) == 0 {
		return dst
	}
	dst = append(dst, key...)
	if bytes.IndexByte(value, '\n') < 0 && bytes.IndexByte(value, '\r') < 0 {
		return append(dst, value...)
	}
	// A stored event is one line, and so is the data of an SSE event.
	line := bytes.NewBuffer(dst)
	if err := json.Compact(line, value); err != nil {
		return append(dst, "null"...)
	}
	return line.Bytes()
}

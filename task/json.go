// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"
)

// The canon's JSON form is AIP's own (v01.00 §4), because the canon's words are AIP's. The log stores it and
// AIP callers are sent it; both are hot, so it is appended by hand. encoding/json reads it back by the
// struct tags of the same types, and a test holds the two together.

// Form is a way to write the canon. The zero Form is that of the log. Otherwise it is the name of a family of dialects
// whose words are the canon's: what they have in an Extra stands where they wrote it.
type Form string

// Log is the form of the log, in which every Extra is a member metadata.
const Log Form = ""

// The members of AIP's objects in all of its versions, which an Extra never takes the place of: lists of names with
// spaces between them.
const (
	TaskWords    = "type id sentAt senderRole senderId taskId groupId sessionId status products messageHistory commandHistory statusHistory"
	StatusWords  = "state stateChangedAt dataItems taskMetadata"
	MessageWords = "type id sentAt senderRole senderId mentions command commandParams dataItems taskId groupId sessionId"
	ProductWords = "id name description dataItems"
	ItemWords    = "type text name mimeType uri bytes data"
	EventWords   = "type id sentAt senderRole senderId taskId groupId sessionId status product append lastChunk"
)

// AppendTask appends the JSON of t: AIP's Task, with products always present and histories where there are any.
func AppendTask(dst []byte, t *Task) []byte { return Log.AppendTask(dst, t) }

// AppendTask appends the JSON of t in a form.
func (f Form) AppendTask(dst []byte, t *Task) []byte {
	dst = append(dst, `{"type":"task","id":`...)
	dst = AppendString(dst, t.ID)
	dst = appendOptional(dst, `,"senderId":`, t.SenderID)
	dst = append(dst, `,"status":`...)
	dst = f.AppendStatus(dst, &t.Status)
	dst = append(dst, `,"products":[`...)
	for i := range t.Products {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = f.AppendProduct(dst, &t.Products[i])
	}
	dst = append(dst, ']')
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
		dst = append(dst, `,"statusHistory":[`...)
		for i := range t.StatusHistory {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = f.AppendStatus(dst, &t.StatusHistory[i])
		}
		dst = append(dst, ']')
	}
	dst = appendOptional(dst, `,"groupId":`, t.GroupID)
	dst = append(dst, `,"sessionId":`...)
	dst = AppendString(dst, t.SessionID)
	return append(f.AppendTaskExtensions(dst, t), '}')
}

// AppendStatus appends the JSON of s.
func AppendStatus(dst []byte, s *Status) []byte { return Log.AppendStatus(dst, s) }

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
	dst = f.appendExtra(dst, s.Extensions, StatusWords)
	if f == Log { // others tell it with the event
		dst = appendRaw(dst, `,"taskMetadata":`, s.TaskExtensions)
	}
	return append(dst, '}')
}

// AppendMessage appends the JSON of m.
func AppendMessage(dst []byte, m *Message) []byte { return Log.AppendMessage(dst, m) }

// AppendMessage appends the JSON of m in a form.
func (f Form) AppendMessage(dst []byte, m *Message) []byte {
	dst = append(dst, `{"type":"message","id":`...)
	dst = AppendString(dst, m.ID)
	dst = append(dst, `,"sentAt":`...)
	dst = AppendTime(dst, m.SentAt)
	dst = append(dst, `,"senderRole":`...)
	dst = AppendString(dst, string(m.SenderRole))
	dst = append(dst, `,"senderId":`...)
	dst = AppendString(dst, m.SenderID)
	if len(m.Mentions) > 0 {
		dst = append(dst, `,"mentions":[`...)
		for i, s := range m.Mentions {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendString(dst, s)
		}
		dst = append(dst, ']')
	}
	dst = appendOptional(dst, `,"command":`, string(m.Command))
	dst = appendRaw(dst, `,"commandParams":`, m.Params)
	dst = append(dst, `,"dataItems":`...)
	dst = f.appendItems(dst, m.DataItems)
	dst = appendOptional(dst, `,"taskId":`, m.TaskID)
	dst = appendOptional(dst, `,"groupId":`, m.GroupID)
	dst = appendOptional(dst, `,"sessionId":`, m.SessionID)
	return append(f.appendExtra(dst, m.Extensions, MessageWords), '}')
}

// AppendProduct appends the JSON of p.
func AppendProduct(dst []byte, p *Product) []byte { return Log.AppendProduct(dst, p) }

// AppendProduct appends the JSON of p in a form.
func (f Form) AppendProduct(dst []byte, p *Product) []byte {
	dst = append(dst, `{"id":`...)
	dst = AppendString(dst, p.ID)
	dst = appendOptional(dst, `,"name":`, p.Name)
	dst = appendOptional(dst, `,"description":`, p.Description)
	dst = append(dst, `,"dataItems":`...)
	dst = f.appendItems(dst, p.DataItems)
	return append(f.appendExtra(dst, p.Extensions, ProductWords), '}')
}

// AppendChunk appends the JSON of c: the members that are its own in a ProductChunkEvent (§6.2.4).
func AppendChunk(dst []byte, c *Chunk) []byte { return Log.AppendChunk(dst, c) }

// AppendChunk appends the JSON of c in a form.
func (f Form) AppendChunk(dst []byte, c *Chunk) []byte {
	dst = append(dst, `{"product":`...)
	dst = f.AppendProduct(dst, &c.Product)
	dst = append(dst, `,"append":`...)
	dst = strconv.AppendBool(dst, c.Append)
	dst = append(dst, `,"lastChunk":`...)
	dst = strconv.AppendBool(dst, c.Last)
	return append(f.appendExtra(dst, c.Extensions, EventWords), '}')
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
		dst = AppendString(dst, it.Text)
	case FileItem:
		dst = appendOptional(dst, `,"name":`, it.Name)
		dst = appendOptional(dst, `,"mimeType":`, it.MIMEType)
		dst = appendOptional(dst, `,"uri":`, it.URI)
		dst = appendOptional(dst, `,"bytes":`, it.Bytes)
	case DataKind:
		dst = appendRaw(dst, `,"data":`, it.Data)
	}
	return append(f.appendExtra(dst, it.Metadata, ItemWords), '}')
}

// AppendTaskExtra appends the Extra of t in a form, for a dialect that writes its tasks by itself.
func (f Form) AppendTaskExtensions(dst []byte, t *Task) []byte {
	return f.appendExtra(dst, t.Extensions, TaskWords)
}

// AppendEventExtra appends what a dialect of the form's family said of a change of state beside it.
func (f Form) AppendEventExtensions(dst []byte, s *Status) []byte {
	return f.appendExtra(dst, s.TaskExtensions, EventWords)
}

func (f Form) appendExtra(dst []byte, extra json.RawMessage, known string) []byte {
	if len(extra) == 0 {
		return dst
	}
	if f != Log {
		if own := Member(extra, string(f)); isObject(own) {
			return AppendExtensions(dst, own, extra, string(f), known, "", "")
		}
	}
	return appendRaw(dst, `,"metadata":`, extra)
}

// AppendTime appends t as a JSON string in ISO 8601 with its own offset, and no more fraction than it has.
func AppendTime(dst []byte, t time.Time) []byte {
	dst = append(dst, '"')
	dst = t.AppendFormat(dst, time.RFC3339Nano)
	return append(dst, '"')
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
	// What is stored, and what goes out as an event, is one line.
	line := bytes.NewBuffer(dst)
	if err := json.Compact(line, value); err != nil {
		return append(dst, "null"...)
	}
	return line.Bytes()
}

// AppendString appends s as a JSON string. Characters that JSON allows stand as they are; bytes that are not
// UTF-8 become U+FFFD, because JSON has no way to say them.
func AppendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= 0x20 && c != '"' && c != '\\' {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
			}
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			dst = append(dst, s[start:i]...)
			dst = append(dst, "\ufffd"...)
			i++
			start = i
			continue
		}
		i += size
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"time"
)

// Task is a Leader's unit of work (AIP v01.00 §4.2). The JSON form of the types in this file is AIP's own: see
// AppendTask.
type Task struct {
	ID       string    `json:"id"`
	SenderID string    `json:"senderId,omitempty"` // group mode only
	Status   Status    `json:"status"`
	Products []Product `json:"products,omitempty"`
	// MessageHistory has the commands carried out, and the agent's words along with earlier states, in order. Its words
	// with the present one are in Status.
	MessageHistory []Message `json:"messageHistory,omitempty"`
	StatusHistory  []Status  `json:"statusHistory,omitempty"` // always a legal path through the table
	GroupID        string    `json:"groupId,omitempty"`       // group mode only
	SessionID      string    `json:"sessionId"`

	Extensions json.RawMessage `json:"metadata,omitempty"` // members unknown to the canon; see MaxExtensions

	// WithoutTask reports, in the answer to a command, whether the agent answered the start by a message, the only
	// product, and made no task. AIP has no word for it.
	WithoutTask bool `json:"-"`
}

// Status is the state of a Task, the time of its beginning, and the Partner's words about it.
type Status struct {
	State     State      `json:"state"`
	ChangedAt time.Time  `json:"stateChangedAt"`
	DataItems []DataItem `json:"dataItems,omitempty"`

	Extensions json.RawMessage `json:"metadata,omitempty"` // members that the canon does not know
	// TaskExtensions are the extensions of the agent's task, reported along with the state. Fold merges them into the
	// Extensions of the Task. Only the Status of an event has them.
	TaskExtensions json.RawMessage `json:"taskMetadata,omitempty"`
}

// Role is the side of a message's sender.
type Role string

// The two roles of AIP v01.00 §3.1.
const (
	Leader  Role = "leader"
	Partner Role = "partner"
)

// Message is a message of a Leader or a Partner (AIP v01.00 §4.3).
type Message struct {
	ID         string          `json:"id"`
	SentAt     time.Time       `json:"sentAt"`
	SenderRole Role            `json:"senderRole"`
	SenderID   string          `json:"senderId"`
	Mentions   []string        `json:"mentions,omitempty"`
	Command    Command         `json:"command,omitempty"`
	Params     json.RawMessage `json:"commandParams,omitempty"` // a JSON object as it was sent
	DataItems  []DataItem      `json:"dataItems"`
	TaskID     string          `json:"taskId,omitempty"`
	GroupID    string          `json:"groupId,omitempty"`
	SessionID  string          `json:"sessionId,omitempty"`
	References []string        `json:"references,omitempty"` // ids of tasks of the sender; AIP has no member for them
	Extensions json.RawMessage `json:"metadata,omitempty"`   // members that the canon does not know
}

// Product is a result of a Task (AIP v01.00 §4.4).
type Product struct {
	ID          string     `json:"id"`
	Name        string     `json:"name,omitempty"`
	Description string     `json:"description,omitempty"`
	DataItems   []DataItem `json:"dataItems"`

	Extensions json.RawMessage `json:"metadata,omitempty"` // members that the canon does not know
}

// ItemKind is the kind of a data item.
type ItemKind string

// The kinds of AIP v01.00 §4.5.
const (
	TextItem ItemKind = "text"
	FileItem ItemKind = "file"
	DataKind ItemKind = "data"
)

// DataItem is the smallest piece of content (AIP v01.00 §4.5). The fields that count depend on Kind: Text for a text;
// Name, MIMEType and one of URI and Bytes for a file; Data for structured data.
type DataItem struct {
	Kind     ItemKind        `json:"type"`
	Text     string          `json:"text,omitempty"`
	Name     string          `json:"name,omitempty"`
	MIMEType string          `json:"mimeType,omitempty"`
	URI      string          `json:"uri,omitempty"`
	Bytes    string          `json:"bytes,omitempty"` // base64, as it was sent
	Data     json.RawMessage `json:"data,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"` // a JSON object as it was sent, extensions included

	spelling *spelling `json:"-"` // of Text; nil if it is not known
}

// Equal reports whether two items say the same, however the JSON in them is written.
func (it DataItem) Equal(other DataItem) bool {
	same := it
	same.Data, same.Metadata, same.spelling = other.Data, other.Metadata, other.spelling
	return reflect.DeepEqual(same, other) && sameJSON(it.Data, other.Data) && sameJSON(it.Metadata, other.Metadata)
}

// sameJSON reports whether two texts are the same value of JSON. Numbers are the same if they are written alike.
func sameJSON(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	read := func(text []byte) (v any, ok bool) {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		ok = d.Decode(&v) == nil
		return v, ok
	}
	x, ok := read(a)
	y, also := read(b)
	return ok && also && reflect.DeepEqual(x, y)
}

// Text returns a data item of the text s.
func Text(s string) DataItem { return DataItem{Kind: TextItem, Text: s} }

// ProductsSize counts products as maxProductsBytes does, in bytes: the UTF-8 of texts, the base64 of files as it was
// sent, the JSON of structured data, and that of extensions: they have to be kept as well.
func ProductsSize(products []Product) int64 {
	var n int64
	for i := range products {
		n += products[i].size()
	}
	return n
}

// IsEmpty reports whether a product has no content: no items, or only empty texts.
func (p *Product) IsEmpty() bool {
	return !slices.ContainsFunc(p.DataItems, func(it DataItem) bool { return it.Kind != TextItem || it.Text != "" })
}

func (p *Product) size() int64 {
	n := int64(len(p.Extensions))
	for i := range p.DataItems {
		it := &p.DataItems[i]
		n += int64(len(it.Text) + len(it.Bytes) + len(it.Data))
	}
	return n
}

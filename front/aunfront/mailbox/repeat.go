// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/tidwall/gjson"
)

// A client sends its message again, with the same id, if the answer was lost. The same message is answered as before
// and is not carried out again; another one with its id is refused. Of a message to another client, the inbox of the
// latter shows its content. Of others, the inbox of the sender keeps the last answers.

// answer is the answer to a message.send with an id.
type answer struct {
	ID   string `json:"id"`   // a digest of the id
	Of   string `json:"of"`   // a digest of its recipient, and of its payload
	Seq  int64  `json:"seq"`  // in the answer
	At   int64  `json:"at"`   // when, in Unix milliseconds
	Mode string `json:"mode"` // of the delivery
}

// maxAnswers is the number of answers kept by the inbox of a sender, at most.
const maxAnswers = 64

// message is a client's message to send.
type message struct {
	id      string
	given   bool // the id is the client's, for sending it again
	to      string
	payload gjson.Result
}

// of returns a digest of the message's content, and of its recipient.
func (s *message) of() string { return digest(s.to, string(canonical([]byte(s.payload.Raw)))) }

// canonical returns a value of JSON in one form for all texts of the same value.
func canonical(text []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return text
	}
	same, err := json.Marshal(v)
	if err != nil {
		return text
	}
	return same
}

// answered returns the answer to an earlier message of the client; nil if there is none. b.mu is held.
func (b *inbox) answered(s *message) (result []byte, err error) {
	if !s.given {
		return nil, nil
	}
	id := digest(s.id)
	i := slices.IndexFunc(b.meta.Sent, func(a answer) bool { return a.ID == id })
	switch {
	case i < 0:
		return nil, nil
	case b.meta.Sent[i].Of != s.of():
		return nil, errIDTaken
	}
	a := b.meta.Sent[i]
	return sent(s.id, a.Seq, time.UnixMilli(a.At), a.Mode)
}

var errIDTaken = invalid("message_id is that of another message; a new message needs an id of its own")

// answer answers a message, and keeps the answer. b.mu is held.
func (b *inbox) answer(s *message, mode string) (result []byte, err error) {
	now, seq := time.Now(), b.box.seq.Add(1)
	if n := len(b.meta.Sent); n > 0 { // by the owner before; its clock may be ahead
		seq = max(seq, b.meta.Sent[n-1].Seq+1)
	}
	if s.given {
		if n := len(b.meta.Sent) + 1 - maxAnswers; n > 0 {
			b.meta.Sent = slices.Delete(b.meta.Sent, 0, n)
		}
		b.meta.Sent = append(b.meta.Sent, answer{digest(s.id), s.of(), seq, now.UnixMilli(), mode})
	}
	return sent(s.id, seq, now, mode)
}

// sent returns the result of message.send.
func sent(id string, seq int64, at time.Time, mode string) ([]byte, error) {
	return json.Marshal(map[string]any{"message_id": id, "seq": seq, "timestamp": at.UnixMilli(), "status": "sent",
		"delivery_mode": mode})
}

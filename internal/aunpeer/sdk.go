// SPDX-License-Identifier: Apache-2.0

package aunpeer

import (
	"context"
	"encoding/json"
	"fmt"
)

// SDK is a client reading its inbox as the SDK for Node does. After it has connected, it publishes the key of its
// device; if the key is refused it has no session, and then neither pulls nor acknowledges. It remembers the number of
// the last taken message. It drops messages without a higher one, and a message after a hole waits until a pull has
// filled the hole.
type SDK struct {
	*Client
	Last  int       // the number of the last taken message
	Heard []Payload // of the taken messages

	conn    *Conn
	session bool
}

// Start connects, and reads the missed messages.
func (s *SDK) Start(ctx context.Context) (err error) {
	if s.conn, err = s.Online(ctx); err != nil {
		return err
	}
	s.session = true
	for _, c := range []struct {
		method string
		params map[string]any
	}{
		{"message.v2.put_peer_pk", map[string]any{"peer_aid": s.ID.AID, "key_source": "peer_device_prekey",
			"spk_id": "sha256:00", "spk_pk": "AA==", "spk_signature": "AA==", "spk_timestamp": 1}},
		{"message.v2.bootstrap", map[string]any{"peer_aid": s.ID.AID}},
	} {
		if _, err := s.conn.Call(ctx, c.method, c.params); Code(err) != 0 {
			s.session = false
		} else if err != nil {
			return err
		}
	}
	return s.pull(ctx)
}

// Stop cuts the connection.
func (s *SDK) Stop() { s.conn.Cut() }

// Say sends a text to an AID, without encryption.
func (s *SDK) Say(ctx context.Context, to, text, thread string) error {
	_, err := s.conn.Call(ctx, "message.send", map[string]any{
		"to": to, "payload": Payload{Type: "text", Text: text, ThreadID: thread}})
	return err
}

// Until takes messages until one is an event with a name.
func (s *SDK) Until(ctx context.Context, event string) error {
	for n := 0; ; {
		for ; n < len(s.Heard); n++ {
			if s.Heard[n].Event == event {
				return nil
			}
		}
		f, err := s.conn.Event(ctx, func(f Frame) bool { return f.Method == "event/message.received" })
		if err != nil {
			return fmt.Errorf("it has heard %+v: %w", s.Heard, err)
		}
		var m struct {
			Seq     int
			Payload Payload
		}
		if err := json.Unmarshal(f.Params, &m); err != nil {
			return err
		}
		switch {
		case m.Seq <= s.Last:
		case m.Seq == s.Last+1:
			s.Last, s.Heard = m.Seq, append(s.Heard, m.Payload)
			err = s.ack(ctx)
		default:
			err = s.pull(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// pull takes all messages after the last one, and acknowledges each page with the request for the next one.
func (s *SDK) pull(ctx context.Context) error {
	for read := 0; s.session; {
		params := map[string]any{"after_seq": s.Last, "limit": 50}
		if read > 0 {
			params["ack_up_to_seq"] = read
		}
		result, err := s.conn.Call(ctx, "message.v2.pull", params)
		if err != nil {
			return err
		}
		var page struct {
			Messages []struct {
				Seq    int
				Legacy struct{ Payload Payload } `json:"legacy_v1"`
			}
			Acked int `json:"server_ack_seq"`
		}
		if err := json.Unmarshal(result, &page); err != nil {
			return err
		}
		s.Last = max(s.Last, page.Acked)
		if len(page.Messages) == 0 {
			return nil
		}
		for _, m := range page.Messages {
			s.Last, s.Heard = m.Seq, append(s.Heard, m.Legacy.Payload)
		}
		read = s.Last
	}
	return nil
}

func (s *SDK) ack(ctx context.Context) error {
	if !s.session {
		return nil
	}
	_, err := s.conn.Call(ctx, "message.v2.ack", map[string]any{"up_to_seq": s.Last})
	return err
}

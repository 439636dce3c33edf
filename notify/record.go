// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// batch gathers records to be appended to an outbox.
type batch struct{ records [][]byte }

// add accounts for a change, and makes it a record if any webhook wants it.
func (r *batch) add(m *metadata, seq uint64, t *task.Task, traceparent string, now time.Time) {
	m.Seen, m.SeenAt = seq, t.Status.ChangedAt
	if t.Status.State.Terminal() {
		m.Ended = now
	}
	if !m.wants(seq, t.Status.State) {
		return
	}
	h := header{Seq: seq, State: t.Status.State, At: now, Trace: traceparent, Generation: m.Generation}
	data := encodeRecord(&h, t)
	r.records = append(r.records, data)
	m.Queue = append(m.Queue, entry{
		Event: seq, State: t.Status.State, At: now.UnixMilli(), Size: len(data), Generation: m.Generation,
	})
}

// header is the first line of a record; the second is the Task, without histories, as it was at the event.
type header struct {
	Seq        uint64     `json:"seq"`
	State      task.State `json:"state"`
	At         time.Time  `json:"at"`
	Trace      string     `json:"trace,omitempty"` // the traceparent of the change's cause
	Generation uint64     `json:"generation,omitempty"`
}

func encodeRecord(h *header, t *task.Task) []byte {
	dst := make([]byte, 0, 1024)
	dst = append(dst, `{"seq":`...)
	dst = strconv.AppendUint(dst, h.Seq, 10)
	dst = append(dst, `,"state":`...)
	dst = task.AppendString(dst, string(h.State))
	dst = append(dst, `,"at":`...)
	dst = task.AppendTime(dst, h.At)
	if h.Trace != "" {
		dst = append(dst, `,"trace":`...)
		dst = task.AppendString(dst, h.Trace)
	}
	if h.Generation > 0 {
		dst = append(dst, `,"generation":`...)
		dst = strconv.AppendUint(dst, h.Generation, 10)
	}
	dst = append(dst, '}', '\n')
	bare := *t
	bare.MessageHistory, bare.StatusHistory = nil, nil
	return task.AppendTask(dst, &bare)
}

// decodeRecord reads a record of encodeRecord.
func decodeRecord(data []byte) (h header, t task.Task, err error) {
	head, body, found := bytes.Cut(data, []byte{'\n'})
	if !found {
		return h, t, errors.New("notify: decoding a record of an outbox: it has one line only")
	}
	if err = json.Unmarshal(head, &h); err == nil {
		err = json.Unmarshal(body, &t)
	}
	if err != nil {
		return h, t, fmt.Errorf("notify: decoding a record of an outbox: %w", err)
	}
	return h, t, nil
}

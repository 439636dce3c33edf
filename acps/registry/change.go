// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bufio"
	"bytes"
	"encoding/json"
	"hash/fnv"
	"io"
)

// maxLine is the largest size of one agent in a snapshot or in the changes, in bytes.
const maxLine = 1 << 20

// change is one line of a snapshot, or of the changes.
type change struct {
	Op      string          `json:"op"`
	Type    string          `json:"type"`
	ID      string          `json:"id"`
	Payload json.RawMessage `json:"payload"`
}

// state returns the state of its agent by a change. An unreadable agent is not active.
func (c *change) state() state {
	var acs struct {
		Active bool `json:"active"`
	}
	h := fnv.New64a()
	_, _ = h.Write(c.Payload) // it has no error
	return state{digest: h.Sum64(), active: c.Op == "upsert" && json.Unmarshal(c.Payload, &acs) == nil && acs.Active}
}

// head reads the agent of a line, if the line cannot be read as a whole: registries write the agent before the payload.
func (c *change) head(line []byte) {
	*c = change{}
	d := json.NewDecoder(bytes.NewReader(line))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return
	}
	for d.More() {
		var value json.RawMessage
		name, err := d.Token()
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return
		}
		switch name {
		case "type":
			_ = json.Unmarshal(value, &c.Type) // else it is none of an agent
		case "id":
			_ = json.Unmarshal(value, &c.ID)
		}
	}
}

// unreadable is the key for readAgents to note passed-over lines. No agent has it.
var unreadable agentKey

// readAgents reads agents, one in a line, in the order of their changes. An unreadable or too large line costs no other
// agent anything: its own agent is not active. Agents without room are passed over.
func readAgents(r io.Reader, found map[agentKey]state) (lines int, err error) {
	in, buf := bufio.NewReaderSize(r, 64<<10), []byte(nil)
	for {
		line, whole, err := readLine(in, buf[:0])
		if buf = line; len(line) > 0 {
			lines++
			var c change
			if !whole || json.Unmarshal(line, &c) != nil {
				c.head(line)
				found[unreadable] = state{}
			}
			_, known := found[keyOf(c.ID)]
			switch {
			case c.Type != "acs":
			case !known && len(found) >= maxAgents:
				found[unreadable] = state{}
			default:
				found[keyOf(c.ID)] = c.state()
			}
		}
		if err == io.EOF {
			return lines, nil
		}
		if err != nil {
			return lines, err
		}
	}
}

// readLine reads a line into a buffer, without its end. Of a too large one it returns the beginning, and whole is
// false. A broken-off line is none.
func readLine(in *bufio.Reader, buf []byte) (line []byte, whole bool, err error) {
	for whole = true; ; {
		part, err := in.ReadSlice('\n')
		if whole = whole && len(buf)+len(part) <= maxLine; whole {
			buf = append(buf, part...)
		}
		switch {
		case err == nil, err == io.EOF:
			return bytes.TrimRight(buf, "\r\n"), whole, err
		case err != bufio.ErrBufferFull:
			return buf[:0], false, err
		}
	}
}

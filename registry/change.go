// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bufio"
	"encoding/json"
	"fmt"
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

// state returns what a change says about its agent. What cannot be read is not active.
func (c *change) state() state {
	var acs struct {
		Active bool `json:"active"`
	}
	h := fnv.New64a()
	_, _ = h.Write(c.Payload) // which has no error
	return state{digest: h.Sum64(), active: c.Op == "upsert" && json.Unmarshal(c.Payload, &acs) == nil && acs.Active}
}

// readAgents reads agents, one in a line, in the order of their changes.
func readAgents(r io.Reader, found map[agentKey]state) (lines int, err error) {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(nil, maxLine)
	for scanner.Scan() {
		if len(scanner.Bytes()) == 0 {
			continue
		}
		var c change
		if err := json.Unmarshal(scanner.Bytes(), &c); err != nil {
			return lines, fmt.Errorf("a change cannot be read: %w", err)
		}
		lines++
		if c.Type != "acs" {
			continue
		}
		if found[keyOf(c.ID)] = c.state(); len(found) > maxAgents {
			return lines, fmt.Errorf("it has more than %d agents", maxAgents)
		}
	}
	return lines, scanner.Err()
}

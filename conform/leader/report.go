// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"text/tabwriter"

	"github.com/aip-gateway/aip-gateway/conform/internal/partner"
)

// The most requests that a Report is made of.
const maxRecorded = 100_000

// Report is what the Leader sent under a Fault.
type Report struct {
	Fault    string         `json:"fault"`
	Does     string         `json:"does"`
	Wants    string         `json:"wants"`
	Requests int            `json:"requests"`
	Commands map[string]int `json:"commands,omitempty"`
	// RepeatedIDs are ids of JSON-RPC in several requests, and MessageIDs ids of messages.
	RepeatedIDs []string `json:"repeatedIds,omitempty"`
	MessageIDs  []string `json:"repeatedMessageIds,omitempty"`
	// RepeatedStarts are tasks with several starts: the safe way to send one again.
	RepeatedStarts []string `json:"repeatedStarts,omitempty"`
	// StartedTwice are tasks whose session and data are those of another task: the work is done twice.
	StartedTwice []string `json:"startedTwice,omitempty"`
	// Resumed are the re-streams.
	Resumed []Resumed `json:"resumed,omitempty"`
}

// Resumed is a re-stream: the lastEventSeq that it had, and the number of the last event that was sent before.
type Resumed struct {
	TaskID string `json:"taskId"`
	Used   any    `json:"lastEventSeq"`
	Sent   any    `json:"lastSent"`
}

// record has what came under a Fault.
type record struct {
	fault Fault

	mu       sync.Mutex
	requests int
	commands map[string]int
	ids      map[string]int
	messages map[string]int
	starts   map[string]int    // by task
	work     map[string]string // the first task with a session and data
	twice    []string
	resumed  []Resumed
	sent     map[string]any // the number of the last event, by task
}

func newRecord(f Fault) *record {
	return &record{fault: f, commands: make(map[string]int), ids: make(map[string]int), messages: make(map[string]int),
		starts: make(map[string]int), work: make(map[string]string), sent: make(map[string]any)}
}

// request records one.
func (r *record) request(body []byte) {
	var request struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Message, Command struct {
				ID, Command, TaskID, SessionID string
				DataItems                      json.RawMessage
				CommandParams                  struct{ LastEventSeq any }
			}
		} `json:"params"`
	}
	err := json.Unmarshal(body, &request)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.requests++; err != nil || r.requests > maxRecorded {
		return
	}
	r.ids[string(request.ID)]++
	c := request.Params.Message
	if request.Params.Command.Command != "" {
		c = request.Params.Command
	}
	name := c.Command
	if name == "" {
		name = request.Method
	}
	r.commands[name]++
	if c.ID != "" {
		r.messages[c.ID]++
	}
	switch c.Command {
	case "start":
		r.starts[c.TaskID]++
		key := c.SessionID + "\x00" + string(c.DataItems)
		if first := r.work[key]; first == "" {
			r.work[key] = c.TaskID
		} else if first != c.TaskID && !slices.Contains(r.twice, c.TaskID) {
			r.twice = append(r.twice, c.TaskID)
		}
	case "re-stream":
		r.resumed = append(r.resumed, Resumed{c.TaskID, c.CommandParams.LastEventSeq, r.sent[c.TaskID]})
	}
}

// watch records the events that a Partner sends.
func (r *record) watch(p *partner.Partner) {
	before := p.Frame
	p.Frame = func(c *partner.Call, e *partner.Event, frame []byte) []byte {
		if before != nil {
			frame = before(c, e, frame)
		}
		if len(frame) > 0 && c.Task != nil && frame[len(frame)-1] == '\n' {
			r.mu.Lock()
			r.sent[c.Task.ID] = e.Seq
			r.mu.Unlock()
		}
		return frame
	}
}

// report returns what came so far.
func (r *record) report() Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Report{Fault: r.fault.Name, Does: r.fault.Does, Wants: r.fault.Wants, Requests: r.requests,
		Commands: maps.Clone(r.commands), RepeatedIDs: several(r.ids), MessageIDs: several(r.messages),
		RepeatedStarts: several(r.starts), StartedTwice: slices.Clone(r.twice), Resumed: slices.Clone(r.resumed)}
}

// several returns what was seen more than once.
func several(seen map[string]int) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		if seen[name] > 1 {
			names = append(names, name)
		}
	}
	return names
}

// Table writes the reports of those Faults that the Leader has met.
func Table(w io.Writer, all []Report) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "FAULT\tREQUESTS\tSTARTS REPEATED\tWORK STARTED TWICE\tIDS REPEATED\tRE-STREAMS")
	for _, r := range all {
		if r.Requests == 0 {
			continue
		}
		streams := ""
		for _, s := range r.Resumed {
			streams += fmt.Sprintf("behind %v (sent %v) ", s.Used, s.Sent)
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%s\n", r.Fault, r.Requests, len(r.RepeatedStarts), len(r.StartedTwice),
			len(r.RepeatedIDs), streams)
	}
	return t.Flush()
}

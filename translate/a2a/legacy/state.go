// SPDX-License-Identifier: Apache-2.0

package legacy

import (
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/extension"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/status"
)

// words are states of agents written by hand, in place of those of v0.1.
var words = map[string]string{
	"pending": "submitted", "queued": "submitted", "created": "submitted", "accepted": "submitted",
	"running": "working", "processing": "working", "in-progress": "working", "started": "working",
	"done": "completed", "success": "completed", "succeeded": "completed", "finished": "completed",
	"complete": "completed", "error": "failed", "failure": "failed",
	"requires-input": "input-required", "needs-input": "input-required", "awaiting-input": "input-required",
	"requires-auth": status.AuthRequired, "needs-auth": status.AuthRequired,
	"requires-authentication": status.AuthRequired, "authentication-required": status.AuthRequired,
}

// meaning returns the state of v0.1 meant by another word of an agent: it is one in another spelling, or one of those
// words.
func meaning(word string) string {
	plain := status.Plain(word)
	if name := words[plain]; name != "" {
		return name
	}
	return plain
}

// meaningOrNews is meaning for a stream.
func meaningOrNews(word string) string {
	if name := meaning(word); isState(name) {
		return name
	}
	return "working"
}

// ownWord is the member of a task's metadata with an agent's own word for a state, by the state derived from it.
const ownWord = "agentState"

// addMetadata adds the metadata of an agent's Task or event to its extensions, with its own word for its state if the
// word is none of v0.1 in any spelling.
func (m *result) addMetadata(form *status.Form) {
	metadata := m.metadata
	if word := jsonrpc.Member(m.status, "state").Str; word != "" && !isState(word) && !isState(status.Plain(word)) &&
		(metadata.IsObject() || !metadata.Exists()) && !jsonrpc.Member(metadata, ownWord).Exists() {
		s, _ := form.State(form.Means(word))
		said := task.AppendString([]byte(`{"`+ownWord+`":{"`+string(s)+`":`), word)
		said = append(said, '}')
		jsonrpc.ForEach(metadata, func(key, v gjson.Result) bool {
			said = append(append(append(append(said, ','), key.Raw...), ':'), v.Raw...)
			return true
		})
		metadata = gjson.ParseBytes(append(said, '}'))
	}
	if metadata.Exists() {
		extension.AddResult(&m.rest, "metadata", metadata)
	}
}

func isState(word string) bool {
	_, ok := status.State(word)
	return ok
}

// statusOf returns a status. Some agents have only its state: as the status, or in place of it.
func statusOf(v gjson.Result) gjson.Result {
	if v.Type != gjson.String {
		return v
	}
	return gjson.Parse(`{"state":` + v.Raw + `}`)
}

// SPDX-License-Identifier: Apache-2.0

package legacy

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/status"
)

// words are the states that agents which are written by hand have in place of those of v0.1.
var words = map[string]string{
	"pending": "submitted", "queued": "submitted", "created": "submitted", "accepted": "submitted",
	"running": "working", "processing": "working", "in-progress": "working", "started": "working",
	"done": "completed", "success": "completed", "succeeded": "completed", "finished": "completed",
	"complete": "completed", "error": "failed", "failure": "failed",
}

// readState returns the state of AIP that a word of an agent means: one of v0.1 in any case, with hyphens, underscores
// or spaces, or one of those words.
func readState(word string) (s task.State, ok bool) {
	if s, ok = status.State(word); ok {
		return s, ok
	}
	plain := strings.NewReplacer("_", "-", " ", "-").Replace(strings.ToLower(word))
	if s, ok = status.State(plain); ok {
		return s, ok
	}
	known, ok := words[plain]
	if !ok {
		return task.None, false
	}
	return status.State(known)
}

// readStateOrNews is readState for a stream.
func readStateOrNews(word string) (s task.State, ok bool) {
	if s, ok = readState(word); !ok && word != "" {
		return task.Working, true
	}
	return s, ok
}

// statusOf returns a status. Some agents have only its state: as the status, or in place of it.
func statusOf(v gjson.Result) gjson.Result {
	if v.Type != gjson.String {
		return v
	}
	return gjson.Parse(`{"state":` + v.Raw + `}`)
}

// SPDX-License-Identifier: Apache-2.0

package dialects

import (
	"strings"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/tidwall/gjson"
)

// view is what an answer, an event of a stream or a notification shows, in any dialect: what all dialects
// have, in the words of A2A 0.3 for states.
type view struct {
	Kind  string // task, status, piece (of a product), message or error
	ID    string // of the task
	State string
	Says  string // what the agent says about the state; of a message what it says; of an error all of it
	Holds string // the content of the products, or of the piece
	adds  bool   // the piece is appended to what was there
	all   bool   // Holds is all that there is
}

// viewOf reads one value of any dialect: the answer to a caller, with its envelope or without, or what a client prints.
func viewOf(v gjson.Result) view {
	if failure := v.Get("error"); failure.Exists() && (v.Get("jsonrpc").Exists() || failure.Get("code").Exists()) {
		return view{Kind: "error", Says: failure.Raw}
	}
	if v.Get("jsonrpc").Exists() {
		v = v.Get("result")
	}
	if data := v.Get("eventData"); data.Exists() { // AIP
		v = data
	}
	for _, name := range []string{"task", "message", "statusUpdate", "artifactUpdate"} { // A2A 1.0, and 0.3 over REST
		if inner := v.Get(name); inner.IsObject() && !v.Get("id").Exists() {
			v = inner
			break
		}
	}
	t := view{ID: v.Get("taskId").Str}
	if t.ID == "" {
		t.ID = v.Get("id").Str
	}
	status := v.Get("status")
	t.State = strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(status.Get("state").Str, "TASK_STATE_")), "_", "-")
	t.Says = site.ContentOf(
		status.Get("message.parts"),
	) + site.ContentOf(
		status.Get("message.content"),
	) + site.ContentOf(
		status.Get("dataItems"),
	)
	piece := v.Get("artifact")
	if !piece.Exists() {
		piece = v.Get("product")
	}
	switch {
	case piece.Exists():
		t.Kind, t.Holds = "piece", site.ContentOf(piece.Get("parts"))+site.ContentOf(piece.Get("dataItems"))
		t.adds = v.Get("append").Bool() || piece.Get("append").Bool()
	case status.Exists() && (v.Get("taskId").Exists() && v.Get("type").Str != "task-result" || v.Get("final").Exists() ||
		v.Get("type").Str == "status-update"):
		t.Kind = "status"
	case status.Exists():
		t.Kind, t.all = "task", true
		for _, list := range []string{"artifacts", "products"} {
			for _, one := range v.Get(list).Array() {
				t.Holds += site.ContentOf(one.Get("parts")) + site.ContentOf(one.Get("dataItems"))
			}
		}
	default:
		t.Kind, t.Says = "message", site.ContentOf(v.Get("parts"))
	}
	return t
}

// story is what the events of a stream show, put together.
type story struct {
	ID, State, Says, Holds string
	pieces                 int
	apart                  bool // each piece is a product of its own
}

func (s *story) add(t view) {
	if t.ID != "" {
		s.ID = t.ID
	}
	if t.State != "" {
		s.State, s.Says = t.State, t.Says
	}
	switch {
	case t.all:
		s.Holds = t.Holds
	case t.Kind == "piece" && (t.adds || s.apart):
		s.Holds += t.Holds
		s.pieces++
	case t.Kind == "piece":
		s.Holds = t.Holds
		s.pieces++
	}
}

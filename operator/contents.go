// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// What the contents of a task have at most.
const (
	maxContents = 1 << 20 // bytes of data items
	maxShown    = 1000    // products, states and messages
)

// showContents answers with the contents of a task.
func showContents(a *Admin, r *http.Request) (any, error) {
	of, err := taskNameOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	e, _, err := a.Tasks.Of(of.Partner, of.Leader)
	if err != nil {
		return nil, err
	}
	overview, t, err := e.Contents(r.Context(), of.Partner, of.Leader, of.Task)
	if err != nil {
		return nil, err
	}
	out := adminapi.TaskContents{Task: a.taskOf(&overview), TraceLink: a.traceLink(overview.Trace), Group: t.GroupID}
	left := maxContents
	out.States, out.Commands = []adminapi.StateChange{}, []adminapi.CommandAt{}
	out.Said, _ = itemsWithin(t.Status.DataItems, &left)
	for i := range t.Products[:min(len(t.Products), maxShown)] {
		p := &t.Products[i]
		shown := adminapi.Product{ID: p.ID, Name: p.Name, Description: p.Description,
			Bytes: task.ProductsSize(t.Products[i : i+1])}
		shown.Items, shown.Cut = itemsWithin(p.DataItems, &left)
		out.Products = append(out.Products, shown)
	}
	out.MoreProducts = max(len(t.Products)-maxShown, 0)
	states := t.StatusHistory
	out.EarlierStates = max(len(states)-maxShown, 0)
	for _, s := range states[out.EarlierStates:] {
		out.States = append(out.States, adminapi.StateChange{State: s.State, At: s.ChangedAt})
	}
	for _, m := range t.MessageHistory {
		if m.SenderRole == task.Leader {
			out.Commands = append(out.Commands, adminapi.CommandAt{Command: m.Command, At: m.SentAt})
		}
	}
	out.Commands = out.Commands[max(len(out.Commands)-maxShown, 0):]
	return out, nil
}

// itemsWithin returns data items as far as bytes are left for them, and whether something is missing: the rest of a
// text, or the contents of another item.
func itemsWithin(items []task.DataItem, left *int) (shown []adminapi.Item, cut bool) {
	for i := range items {
		it := &items[i]
		one := adminapi.Item{Kind: it.Kind, Name: it.Name, MIMEType: it.MIMEType}
		if it.Kind == task.TextItem {
			one.MIMEType = mediaTypeOf(it)
		}
		size := len(it.Text) + len(it.Bytes) + len(it.URI) + len(it.Data)
		switch {
		case size <= *left:
			one.Text, one.Bytes, one.URI, one.Data = it.Text, it.Bytes, it.URI, it.Data
		case it.Kind == task.TextItem:
			size = *left
			for size > 0 && !utf8.RuneStart(it.Text[size]) {
				size--
			}
			one.Text, one.Cut = it.Text[:size], true
		default:
			size, one.Cut = 0, true
		}
		*left -= size
		cut = cut || one.Cut
		shown = append(shown, one)
		if len(shown) == maxShown {
			return shown, cut || i < len(items)-1
		}
	}
	return shown, cut
}

// mediaTypeOf returns the type of a text, which dialects keep in its metadata; empty where there is none.
func mediaTypeOf(it *task.DataItem) string {
	var m struct {
		// As the dialects of A2A keep it. Default: none.
		MediaType string `json:"mediaType"`
	}
	_ = json.Unmarshal(it.Metadata, &m) // what is no such object has none
	return m.MediaType
}

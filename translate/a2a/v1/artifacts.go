// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/extension"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/part"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// An artifact of A2A 1.0 is a product with the same id. To the agent, a continue after completion is another task; its
// artifacts replace the products with their ids.

// readArtifact reads one artifact.
func readArtifact(v gjson.Result, adds bool) (p task.Product, err error) {
	if !v.IsObject() {
		return p, wire.Refuse("the agent's answer has an artifact that is no object")
	}
	var parts gjson.Result
	var others wire.Extensions
	wire.Members(v, func(key string, v gjson.Result) {
		switch key {
		case "artifactId":
			p.ID = v.Str
		case "name":
			p.Name = v.Str
		case "description":
			p.Description = v.Str
		case "parts":
			parts = v
		case "kind", "type", "index", "append", "lastChunk": // of other versions
		default:
			others.Add(key, v)
		}
	})
	p.Extensions = extension.OfArtifact(&others)
	if p.ID == "" { // A2A requires an id; an artifact without one is identified by its name
		p.ID = "artifact"
		if p.Name != "" {
			p.ID += "-" + p.Name
		}
	}
	p.DataItems, err = readParts(parts, adds)
	return p, err
}

// see records an artifact of the turn.
func (r *reader) see(id string, adds bool) error {
	was, ok := r.seen[id]
	if !ok && len(r.seen) == part.MaxArtifacts {
		return wire.Refuse("the agent's answer has more than %d artifacts", part.MaxArtifacts)
	}
	if r.seen == nil {
		r.seen = make(map[string]bool)
	}
	r.seen[id] = was || adds
	return nil
}

// chunk adds the artifact of an event to rep. A piece of a missing product begins it. An empty artifact adds nothing,
// and takes nothing away.
func (r *reader) chunk(rep *agent.Report, m *members) error {
	adds := m.append.Bool()
	p, err := readArtifact(m.artifact, adds)
	if err != nil {
		return err
	}
	_, exists := r.seen[p.ID]
	exists = exists || r.product(p.ID) != nil
	if part.IsEmpty(&p) {
		if adds = true; !exists {
			return nil
		}
	}
	if err := r.see(p.ID, adds); err != nil {
		return err
	}
	rep.Chunks = append(rep.Chunks, task.Chunk{
		Product: p, Append: adds && exists, Last: m.last.Bool(), Extensions: extension.OfResult(&m.rest),
	})
	return nil
}

func (r *reader) product(id string) *task.Product {
	for i := range r.known {
		if r.known[i].ID == id {
			return &r.known[i]
		}
	}
	return nil
}

// whole adds the artifacts of a Task to rep. Agents may list every piece of an artifact sent in pieces as a part.
// task.Fold has joined the texts, so they are joined here as well; otherwise the product would seem to have changed.
func (r *reader) whole(rep *agent.Report, list gjson.Result) error {
	rep.Full = true
	if !list.Exists() {
		return nil
	}
	if !list.IsArray() {
		return wire.Refuse("the agent's answer has artifacts that are no array")
	}
	var err error
	jsonrpc.ForEach(list, func(_, v gjson.Result) bool {
		var p task.Product
		if p, err = readArtifact(v, false); err != nil || part.IsEmpty(&p) {
			return err == nil
		}
		if err = r.see(p.ID, false); err != nil {
			return false
		}
		if r.seen[p.ID] {
			p.DataItems = join(p.DataItems, nil)
		} else if known := r.product(p.ID); known != nil {
			if n := len(known.DataItems); n > 0 && n < len(p.DataItems) {
				p.DataItems = join(p.DataItems, known.DataItems)
			}
		}
		rep.Products = append(rep.Products, p)
		return true
	})
	return err
}

// join joins adjacent texts: all of them without a shape, otherwise as they are in the shape. The last text of the
// shape may grow. Items not fitting the shape stay as they are.
func join(items, shape []task.DataItem) []task.DataItem {
	out := make([]task.DataItem, 0, len(items))
	for i := 0; i < len(items); {
		want, bound := "", false
		if n := len(out); n < len(shape) {
			if shape[n].PlainText() != items[i].PlainText() {
				return items
			}
			want, bound = shape[n].Text, n < len(shape)-1
		} else if shape != nil {
			return append(out, items[i:]...)
		}
		it := items[i]
		i++
		if !it.PlainText() {
			out = append(out, it)
			continue
		}
		var b strings.Builder
		for b.WriteString(it.Text); i < len(items) && items[i].PlainText() && (!bound || b.Len() < len(want)); i++ {
			b.WriteString(items[i].Text)
		}
		if it.Text = b.String(); bound && it.Text != want || !strings.HasPrefix(it.Text, want) {
			return items
		}
		out = append(out, it)
	}
	return out
}

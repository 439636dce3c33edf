// SPDX-License-Identifier: Apache-2.0

package v03

import (
	"hash/fnv"
	"io"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/extension"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/part"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// artifacts makes products of the artifacts of one task: an artifact's id is the product's.
//
// Adjacent texts in an artifact become one. A stream sends them in pieces, and they join in the product; some agents
// list the pieces when they are asked for the task, and the two must not differ.
type artifacts struct {
	known []task.Product // of earlier turns
	seen  map[string]bool
}

// read reads an artifact, whole or a piece.
func (a *artifacts) read(v gjson.Result) (p task.Product, adds gjson.Result, err error) {
	if !v.IsObject() {
		return p, adds, wire.Refuse("the agent's answer has an artifact that is no object")
	}
	var id, parts gjson.Result
	var others wire.Extensions
	wire.Members(v, func(key string, v gjson.Result) {
		switch key {
		case "artifactId":
			id = v
		case "name":
			p.Name = v.String()
		case "description":
			p.Description = v.String()
		case "parts":
			parts = v
		case "append":
			adds = v
		case "kind", "type", "index", "lastChunk": // of other versions
		default:
			others.Add(key, v)
		}
	})
	p.Extensions = extension.OfArtifact(&others)
	if p.DataItems, err = part.Read(parts); err != nil {
		return p, adds, err
	}
	p.DataItems = wire.JoinTexts(nil, p.DataItems)
	p.ID = productID(id.Str, "artifact", p.Name)
	if !a.seen[p.ID] && len(a.seen) == part.MaxArtifacts {
		return p, adds, wire.Refuse("the agent's answer has more than %d artifacts", part.MaxArtifacts)
	}
	return p, adds, nil
}

// productID returns the id of a product: the agent's, its hash if it is too long, or one made of the name if there is
// none.
func productID(id, kind, name string) string {
	if id == "" {
		if id = kind; name != "" {
			id += "-" + name
		}
	}
	if len(id) <= maxID {
		return id
	}
	h := fnv.New64a()
	io.WriteString(h, id)
	return kind + "-" + strconv.FormatUint(h.Sum64(), 16)
}

// see records a product.
func (a *artifacts) see(id string) {
	if a.seen == nil {
		a.seen = make(map[string]bool)
	}
	a.seen[id] = true
}

// chunk adds the artifact of an event to rep. A piece of a missing product begins it. An empty artifact adds nothing,
// and takes nothing away.
func (a *artifacts) chunk(rep *agent.Report, v gjson.Result, adds, last bool) error {
	p, inside, err := a.read(v)
	if err != nil {
		return err
	}
	adds = adds || inside.Bool()
	exists := a.seen[p.ID] || a.knows(p.ID)
	if part.IsEmpty(&p) {
		if adds = true; !exists {
			return nil
		}
	}
	a.see(p.ID)
	rep.Chunks = append(rep.Chunks, task.Chunk{Product: p, Append: adds && exists, Last: last})
	return nil
}

func (a *artifacts) knows(id string) bool {
	for i := range a.known {
		if a.known[i].ID == id {
			return true
		}
	}
	return false
}

// whole adds the artifacts of a Task to rep. An artifact listed more than once is in pieces: each is appended to it,
// unless the piece says otherwise.
func (a *artifacts) whole(rep *agent.Report, list gjson.Result) (err error) {
	if !list.Exists() {
		return nil
	}
	if !list.IsArray() {
		return wire.Refuse("the agent's answer has artifacts that are no array")
	}
	at := make(map[string]int)
	jsonrpc.ForEach(list, func(_, v gjson.Result) bool {
		var p task.Product
		var adds gjson.Result
		if p, adds, err = a.read(v); err != nil || part.IsEmpty(&p) {
			return err == nil
		}
		a.see(p.ID)
		i, again := at[p.ID]
		switch {
		case !again:
			at[p.ID] = len(rep.Products)
			rep.Products = append(rep.Products, p)
		case adds.IsBool() && !adds.Bool():
			rep.Products[i] = p
		default:
			old := &rep.Products[i]
			if p.Name != "" {
				old.Name = p.Name
			}
			if p.Description != "" {
				old.Description = p.Description
			}
			if p.Extensions != nil {
				old.Extensions = p.Extensions
			}
			old.DataItems = append(old.DataItems, p.DataItems...)
		}
		return true
	})
	for i := range rep.Products {
		p := &rep.Products[i]
		p.DataItems = wire.JoinTexts(p.DataItems[:0], p.DataItems)
	}
	return err
}

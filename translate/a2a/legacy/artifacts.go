// SPDX-License-Identifier: Apache-2.0

package legacy

import (
	"hash/fnv"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/extension"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/part"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// maxName is the largest length, in bytes, of a name as a part of an id. In place of a longer name, an id has its hash.
const maxName = 64

// artifacts makes products of the artifacts of one task.
//
// In v0.1 the index identifies an artifact, but agents leave it at 0 for all of them. So an artifact with another name
// is another one. A product's id is made of these two alone: "artifact-0" without a name, "artifact-0-report" with one.
// So it is the same in a stream, in a poll, in the next turn and after a restart, with artifacts in any order. Only a
// piece appended to an artifact may leave the name out: it belongs to the last changed one with its index.
//
// A whole Task has as many artifacts as it lists, whatever their index and name, but for those of earlier turns; see
// settle. In a stream, one without index and name is another one each time. Another one has a number behind the shared
// id, and pieces of that id belong to it from then on.
type artifacts struct {
	withdrawn []task.Product    // of the turn before, not in the task any more
	known     []task.Product    // of earlier turns, and of this one if it is resumed
	seen      []string          // ids of this turn's artifacts, the last changed one at the end
	listed    bool              // they are those of a whole Task
	shared    map[string]shared // by the id that more than one would have
}

// shared is the last one of the artifacts with the same id before numbering.
type shared struct {
	id     string
	number int
}

// artifact is one artifact of v0.1, whole or a piece.
type artifact struct {
	product      task.Product
	base         string // the id of the product if it shared it with no other
	append, last bool
	empty        bool // it is to be left out
}

// next reads one artifact. fresh is set if it is the first with its id. An empty artifact adds nothing, and takes
// nothing away.
func (a *artifacts) next(v gjson.Result) (art artifact, fresh bool, err error) {
	var index int64
	var indexed bool
	var parts gjson.Result
	switch {
	case v.Type == gjson.String: // some agents have only its text
		parts = v
	case !v.IsObject():
		return art, false, wire.Refuse("the agent's answer has an artifact that is no object")
	}
	var others wire.Extensions
	whole := true
	wire.Members(v, func(key string, v gjson.Result) {
		switch key {
		case "name":
			art.product.Name = v.String()
		case "description":
			art.product.Description = v.String()
		case "parts":
			parts = v
		case "index":
			indexed = true
			index, whole = intOf(v)
		case "append":
			art.append = v.Bool()
		case "lastChunk":
			art.last = v.Bool()
		case "kind", "type", "artifactId": // of other versions
		default:
			others.Add(key, v)
		}
	})
	art.product.Extensions = extension.OfArtifact(&others)
	if !whole || index < 0 {
		return art, false, wire.Refuse("the agent's answer has an artifact whose index is no number from 0 on")
	}
	if art.product.DataItems, err = part.Read(parts); err != nil {
		return art, false, err
	}
	art.base = idOf(index, art.product.Name)
	art.product.ID = a.id(art.base, art.product.Name, art.append)
	if part.IsEmpty(&art.product) &&
		(!art.append || !slices.Contains(a.seen, art.product.ID) && !a.knows(art.product.ID)) {
		art.empty = true
		return art, false, nil
	}
	if named := art.product.Name != ""; !art.append && (a.listed || !indexed && !named) {
		art.product.ID = a.another(art.base)
	}
	if a.again(art.product.ID) {
		return art, false, nil
	}
	if len(a.seen) == part.MaxArtifacts {
		return art, false, wire.Refuse("the agent's answer has more than %d artifacts", part.MaxArtifacts)
	}
	a.seen = append(a.seen, art.product.ID)
	return art, true, nil
}

// intOf returns an integer. Some agents write it as a string.
func intOf(v gjson.Result) (n int64, ok bool) {
	if v.Type != gjson.String {
		return jsonrpc.Int(v)
	}
	n, err := strconv.ParseInt(v.Str, 10, 64)
	return n, err == nil
}

// idOf returns the id of an artifact's product, if it shares the id with no other.
func idOf(index int64, name string) string {
	number := strconv.FormatInt(index, 10)
	if len(name) > maxName {
		h := fnv.New64a()
		io.WriteString(h, name)
		name = strconv.FormatUint(h.Sum64(), 16)
	}
	if name != "" {
		return "artifact-" + number + "-" + name
	}
	return "artifact-" + number
}

// another returns the id of a further artifact with a given id before numbering.
func (a *artifacts) another(id string) string {
	last := shared{id: id, number: max(1, a.shared[id].number)}
	for slices.Contains(a.seen, last.id) || a.knows(last.id) {
		last.number++
		last.id = numbered(id, last.number)
	}
	if last.number > 1 {
		if a.shared == nil {
			a.shared = make(map[string]shared)
		}
		a.shared[id] = last
	}
	return last.id
}

func numbered(id string, number int) string { return id + "-" + strconv.Itoa(number) }

// id returns the id of the product that an artifact is, or belongs to, unless it is another one. base is the result of
// idOf for it.
func (a *artifacts) id(base, name string, adds bool) string {
	if last, ok := a.shared[base]; ok && (name != "" || !adds) {
		return last.id
	}
	if adds && name == "" {
		for i := len(a.seen) - 1; i >= 0; i-- {
			if hasIndex(a.seen[i], base) {
				return a.seen[i]
			}
		}
		for i := len(a.known) - 1; i >= 0; i-- {
			if hasIndex(a.known[i].ID, base) {
				return a.known[i].ID
			}
		}
	}
	return base
}

func hasIndex(id, base string) bool {
	rest, ok := strings.CutPrefix(id, base)
	return ok && (rest == "" || rest[0] == '-')
}

// chunks adds the artifact of an event to rep.
func (a *artifacts) chunks(rep *agent.Report, v gjson.Result) error {
	art, fresh, err := a.next(v)
	if err != nil || art.empty {
		return err
	}
	c := task.Chunk{Product: art.product, Append: art.append, Last: art.last}
	if fresh && c.Append { // a piece of a missing product begins it
		c.Append = a.knows(c.Product.ID)
	}
	rep.Chunks = append(rep.Chunks, c)
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

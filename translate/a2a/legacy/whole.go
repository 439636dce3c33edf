// SPDX-License-Identifier: Apache-2.0

package legacy

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// whole adds the artifacts of a Task to rep. Some agents list every piece ever sent, so pieces are joined, as task.Fold
// joins those of a stream.
func (a *artifacts) whole(rep *agent.Report, list gjson.Result) error {
	if !list.Exists() || jsonrpc.IsEmpty(list) {
		return nil
	}
	w := whole{list: artifacts{listed: true}} // it begins with the task, so no product is known before it
	var err error
	switch {
	case list.IsArray():
		jsonrpc.ForEach(list, func(_, v gjson.Result) bool {
			err = w.add(v)
			return err == nil
		})
	case list.IsObject(), list.Type == gjson.String: // some agents have one alone
		err = w.add(list)
	default:
		err = wire.Refuse("the agent's answer has artifacts that are no array")
	}
	if err != nil {
		return err
	}
	if len(w.list.shared) > 0 && len(a.known)+len(a.withdrawn) > 0 {
		w.settle(a)
	}
	a.seen, a.shared = w.list.seen, w.list.shared // a stream continues from here
	rep.Products = w.products
	return nil
}

// whole joins the artifacts of one Task.
type whole struct {
	list     artifacts
	products []task.Product
	bases    []string // the id of each if it shared it with no other
	pieces   task.Texts
}

func (w *whole) add(v gjson.Result) error {
	art, fresh, err := w.list.next(v)
	if err != nil || art.empty {
		return err
	}
	if fresh {
		w.products, w.bases = append(w.products, art.product), append(w.bases, art.base)
		return nil
	}
	i := len(w.products) - 1
	for w.products[i].ID != art.product.ID {
		i--
	}
	w.pieces.Add(&w.products[i], &art.product)
	return nil
}

// settle gives artifacts with the same id before numbering their ids for good. Some agents list the artifacts of each
// turn, without a word about the turn. So an artifact unchanged since an earlier turn keeps its id. The artifacts
// before it are older still, and are left out. New ones take the ids of those of a turn with withdrawn products, as in
// a stream.
func (w *whole) settle(of *artifacts) {
	ids := make([]string, len(w.products)) // for good; empty for artifacts left out
	taken := make(map[string]bool)
	for i := range w.products {
		if _, ok := w.list.shared[w.bases[i]]; !ok {
			ids[i] = w.bases[i]
			taken[ids[i]] = true
		}
	}
	for _, base := range slices.Sorted(maps.Keys(w.list.shared)) {
		w.settleOne(base, of, ids, taken)
	}
	names := make(map[string]string)
	for i := range w.products {
		names[w.products[i].ID], w.products[i].ID = ids[i], ids[i]
	}
	w.products = slices.DeleteFunc(w.products, func(p task.Product) bool { return p.ID == "" })
	for i, id := range w.list.seen {
		w.list.seen[i] = names[id]
	}
	w.list.seen = slices.DeleteFunc(w.list.seen, func(id string) bool { return id == "" })
}

// settleOne is settle for those with the id base before numbering.
func (w *whole) settleOne(base string, of *artifacts, ids []string, taken map[string]bool) {
	last := -1      // the last one unchanged since an earlier turn
	goesOn := false // the task has one of them, or there is a new one
	withdrawn := make([]bool, len(w.bases))
	for i := range w.products {
		if w.bases[i] != base {
			continue
		}
		if ids[i] = idAmong(of.known, base, &w.products[i]); ids[i] == "" {
			ids[i] = idAmong(of.withdrawn, base, &w.products[i])
			withdrawn[i] = true
		}
		if ids[i] != "" {
			last = i
		}
		goesOn = goesOn || !withdrawn[i]
	}
	for i := last + 1; i < len(w.bases); i++ {
		goesOn = goesOn || w.bases[i] == base
	}
	number := 1
	for i := range w.products {
		switch {
		case w.bases[i] != base:
			continue
		case i > last:
			for ids[i] = base; taken[ids[i]]; ids[i] = numbered(base, number) {
				number++
			}
		case taken[ids[i]] || withdrawn[i] && goesOn:
			ids[i] = ""
		}
		if ids[i] != "" {
			taken[ids[i]], w.list.shared[base] = true, shared{id: ids[i], number: number}
		}
	}
}

// idAmong returns the id of the one among products equal to p, empty for none. base is their id if they shared it with
// no other.
func idAmong(products []task.Product, base string, p *task.Product) string {
	for i := range products {
		rest, ok := strings.CutPrefix(products[i].ID, base)
		if number, err := strconv.Atoi(strings.TrimPrefix(rest, "-")); !ok || rest != "" && (err != nil || number < 2) {
			continue
		}
		if task.Unchanged(&products[i], p) {
			return products[i].ID
		}
	}
	return ""
}

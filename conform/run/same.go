// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aip-gateway/aip-gateway/conform/acts"
)

// sameEvents compares two streams. And must have every event of Of from the first that both have; with After, every one
// whose number is above it. What And has beyond the end of Of is not compared.
func (t *scenario) sameEvents(ctx context.Context, s *acts.Step, v verifier) (*outcome, error) {
	of, err := t.stream(s.SameEvents.Of)
	if err != nil {
		return nil, err
	}
	and, err := t.stream(s.SameEvents.And)
	if err != nil {
		return nil, err
	}
	after, err := v.vars.Resolve(s.SameEvents.After)
	if err != nil {
		return nil, err
	}
	of.settle()
	want := slices.Clone(of.events)
	if after != nil {
		want = slices.DeleteFunc(want, func(e event) bool {
			return len(acts.Match(map[string]any{"gt": after}, e.sequence)) > 0
		})
	}
	var got []event
	err = changes(ctx, and, millis(t.runner.profile.Bounds.WaitMS), func() bool {
		got = and.events
		if after == nil {
			want, got = common(of.events, and.events)
		}
		return len(got) > 0 && len(got) >= len(want)
	})
	if err != nil && !errors.Is(err, errTime) {
		return nil, err
	}
	if after == nil {
		want, got = common(of.events, and.events)
	} else {
		got = and.events
	}
	if len(want) == 0 && after == nil {
		return nil, t.fail(s, and, []acts.Mismatch{{Path: s.SameEvents.And, Expected: "events of " + s.SameEvents.Of,
			Actual: "none is in both"}})
	}
	for i, e := range want {
		path := fmt.Sprintf("event %s of %s", brief(e.sequence), s.SameEvents.Of)
		switch {
		case i >= len(got):
			return nil, t.fail(s, and, []acts.Mismatch{{Path: path, Expected: "in " + s.SameEvents.And, Actual: "not there"}})
		case !acts.Equal(e.sequence, got[i].sequence) || !acts.Equal(of.bare(e), of.bare(got[i])):
			return nil, t.fail(s, and, []acts.Mismatch{{Path: path, Expected: brief(e.data), Actual: brief(got[i].data)}})
		}
	}
	return &outcome{}, nil
}

// bare is the object of an event without members that may differ when it is sent again.
func (o *outcome) bare(e event) any {
	object, ok := e.object.(map[string]any)
	if !ok || len(o.form.Apart) == 0 {
		return e.object
	}
	bare := maps.Clone(object)
	for _, name := range o.form.Apart {
		delete(bare, name)
	}
	return bare
}

// common returns both lists from the first number that both have.
func common(a, b []event) ([]event, []event) {
	for i, e := range a {
		if j := slices.IndexFunc(b, func(o event) bool { return acts.Equal(e.sequence, o.sequence) }); j >= 0 {
			return a[i:], b[j:]
		}
	}
	return nil, nil
}

// fold adds up the events of a stream: the task that they describe, as {status, statuses, products}. The texts of a
// product's pieces are joined, as far as they follow each other.
func (t *scenario) fold(s *acts.Step, v verifier) (*outcome, error) {
	o, err := t.stream(s.Fold.Stream)
	if err != nil {
		if o = t.scope.steps[s.Fold.Stream]; o == nil || o.exchange == nil || o.exchange.Stream == nil {
			return nil, err
		}
	}
	o.settle()
	folded := fold(o.events, t.scope.protocol)
	found, err := v.match("", s.Fold.Expect, folded, true)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		return nil, t.fail(s, o, found)
	}
	return &outcome{root: folded, hasRoot: true}, nil
}

func fold(events []event, p *acts.Protocol) map[string]any {
	var status any
	var statuses, products []any
	before := ""
	for _, e := range events {
		object, _ := e.object.(map[string]any)
		kind := object["type"]
		if kind == p.Names["chunk_event"] {
			products = addPiece(products, object)
			continue
		}
		if next, has := object["status"]; has {
			status = next
			statuses = append(statuses, next)
			if state, _ := at(next, "state"); state == "working" && before == "awaiting-completion" {
				products = nil // another turn begins
			}
		}
		if whole, has := object["products"].([]any); has {
			products = whole
		}
		before = e.state
	}
	return map[string]any{"status": status, "statuses": list(statuses), "products": list(products)}
}

func list(values []any) []any {
	if values == nil {
		return []any{}
	}
	return values
}

// addPiece adds a piece of a product.
func addPiece(products []any, piece map[string]any) []any {
	product, _ := piece["product"].(map[string]any)
	id := product["id"]
	items, _ := product["dataItems"].([]any)
	i := slices.IndexFunc(products, func(p any) bool {
		had, _ := at(p, "id")
		return acts.Equal(had, id)
	})
	if i < 0 {
		return append(products, mapWith(product, joined(nil, items)))
	}
	had, _ := products[i].(map[string]any)
	old, _ := had["dataItems"].([]any)
	if piece["append"] != true {
		old = nil
	}
	products = slices.Clone(products)
	products[i] = mapWith(had, joined(old, items))
	return products
}

func mapWith(product map[string]any, items []any) map[string]any {
	with := make(map[string]any, len(product)+1)
	for name, v := range product {
		with[name] = v
	}
	with["dataItems"] = items
	return with
}

// joined adds items to those before. A text behind a text is joined to it.
func joined(old, items []any) []any {
	all := slices.Clone(list(old))
	for _, item := range items {
		text, isText := textOf(item)
		if n := len(all); n > 0 && isText {
			if before, also := textOf(all[n-1]); also {
				had := all[n-1].(map[string]any)
				with := make(map[string]any, len(had))
				for name, v := range had {
					with[name] = v
				}
				with["text"] = before + text
				all[n-1] = with
				continue
			}
		}
		all = append(all, item)
	}
	return all
}

func textOf(item any) (string, bool) {
	object, _ := item.(map[string]any)
	text, ok := object["text"].(string)
	return text, ok && object["type"] == "text"
}

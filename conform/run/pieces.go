// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"

	"github.com/aip-gateway/aip-gateway/conform/acts"
)

// Names in the tests with these procedures: the stream s, and the step get.
const (
	procedureStream = "s"
	procedureGet    = "get"
)

// piecesBeginAndEnd finds pieces of products in a wrong order: a first one that appends, or one behind the last.
func piecesBeginAndEnd(t *scenario, _ context.Context, _ *acts.Step, v verifier) (found []acts.Mismatch, err error) {
	o, err := t.stream(procedureStream)
	if err != nil {
		return nil, err
	}
	o.settle()
	begun, ended := make(map[string]bool), make(map[string]bool)
	pieces := 0
	for i, e := range o.events {
		for _, whole := range productsOf(e.object) {
			begun[idOf(whole)] = true
		}
		if kind, _ := at(e.object, "type"); kind != v.protocol.Names["chunk_event"] {
			continue
		}
		pieces++
		product, _ := at(e.object, "product")
		appends, _ := at(e.object, "append")
		last, _ := at(e.object, "lastChunk")
		id, path := idOf(product), fmt.Sprintf("event %d", i+1)
		switch {
		case appends == true && !begun[id]:
			found = append(found, acts.Mismatch{Path: path + ".append", Expected: "false: it is the first piece of " + id,
				Actual: "true"})
		case appends == true && ended[id]:
			found = append(found, acts.Mismatch{Path: path, Expected: "no piece of " + id + " behind its last one",
				Actual: brief(e.object)})
		}
		begun[id], ended[id] = true, last == true
	}
	if pieces == 0 {
		found = append(found, acts.Mismatch{Path: procedureStream, Expected: "pieces of products", Actual: "none"})
	}
	return found, nil
}

func productsOf(object any) []any {
	value, _ := at(object, "products")
	products, _ := value.([]any)
	return products
}

func idOf(product any) string {
	value, _ := at(product, "id")
	id, _ := value.(string)
	return id
}

// piecesAddUp compares the products of a stream with those of the task: their ids, and their data items. Texts that
// follow each other are one, and members that are null are as if they were not there.
func piecesAddUp(t *scenario, _ context.Context, _ *acts.Step, v verifier) ([]acts.Mismatch, error) {
	o, err := t.stream(procedureStream)
	if err != nil {
		return nil, err
	}
	got := t.scope.steps[procedureGet]
	if got == nil {
		return nil, fmt.Errorf("the test has no step %s", procedureGet)
	}
	o.settle()
	added, _ := fold(o.events, v.protocol)["products"].([]any)
	want, have := contents(productsOf(got.root)), contents(added)
	if len(want) == 0 || !acts.Equal(want, have) {
		return []acts.Mismatch{{Path: "products", Expected: brief(want) + ", as a get says", Actual: brief(have)}}, nil
	}
	return nil, nil
}

// contents returns the id and the joined data items of each product.
func contents(products []any) []any {
	all := []any{}
	for _, product := range products {
		value, _ := at(product, "dataItems")
		items, _ := value.([]any)
		bare := []any{}
		for _, item := range items {
			object, _ := item.(map[string]any)
			kept := make(map[string]any)
			for name, member := range object {
				if member != nil && name != "metadata" {
					kept[name] = member
				}
			}
			bare = append(bare, kept)
		}
		all = append(all, map[string]any{"id": idOf(product), "dataItems": joined(nil, bare)})
	}
	return all
}

// The most events of a stream after which reStreamAtEachEvent takes it up again.
const maxPositions = 64

// reStreamAtEachEvent takes a stream up again after each of its events but the last, and compares what comes.
func reStreamAtEachEvent(t *scenario, ctx context.Context, s *acts.Step, v verifier) ([]acts.Mismatch, error) {
	of, err := t.stream(procedureStream)
	if err != nil {
		return nil, err
	}
	of.settle()
	events := of.events
	for i := 0; i < min(len(events)-1, maxPositions); i++ {
		name := fmt.Sprintf("after event %d", i+1)
		step := &acts.Step{ID: s.ID, Operation: "re_stream", OpenStream: name, As: s.As,
			Command: map[string]any{"commandParams": map[string]any{"lastEventSeq": events[i].sequence}}}
		o, err := t.send(ctx, step, v)
		if err != nil {
			return nil, err
		}
		if t.last = o; t.streams[name] == nil {
			return []acts.Mismatch{{Path: name, Expected: "a stream of events", Actual: o.exchange.Got()}}, nil
		}
		step.SameEvents = &acts.SameEvents{Of: procedureStream, And: name, After: events[i].sequence}
		if _, err := t.sameEvents(ctx, step, v); err != nil {
			return nil, err
		}
		o.exchange.Stream.Cut()
	}
	return nil, nil
}

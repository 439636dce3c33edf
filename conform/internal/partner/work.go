// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Step is one of some work: Do is called with the Partner's lock, after the wait.
type Step struct {
	Wait time.Duration
	Do   func(t *Task)
}

// begin begins the work for a start or a continue. What needs no time is done when it returns.
func (p *Partner) begin(t *Task, c *Call, first bool) {
	steps := p.steps(t, said(c), first)
	if p.Pieces != nil {
		steps = p.Pieces(t, steps)
	}
	for i, s := range steps {
		if s.Wait > 0 {
			p.begins(func() { p.carryOut(t, steps[i:]) })
			return
		}
		s.Do(t)
	}
}

func (p *Partner) carryOut(t *Task, steps []Step) {
	for _, s := range steps {
		if s.Wait > 0 && !p.pause(s.Wait) {
			return
		}
		p.mu.Lock()
		ended := final(t.State())
		if !ended {
			s.Do(t)
		}
		p.mu.Unlock()
		if ended {
			return
		}
	}
}

// said returns the text of a command.
func said(c *Call) string {
	items, _ := c.Message["dataItems"].([]any)
	for _, item := range items {
		if object, _ := item.(Object); object["type"] == "text" {
			return text(object, "text")
		}
	}
	return ""
}

func textItem(s string) Object { return Object{"type": "text", "text": s} }

// To returns a step to a state.
func (p *Partner) To(state string, items ...any) Step {
	return Step{Do: func(t *Task) { p.change(t, state, items) }}
}

// Piece returns a step that adds a piece of a product.
func (p *Partner) Piece(id string, add, last bool, items ...any) Step {
	return Step{Do: func(t *Task) {
		product := Object{"id": id, "name": id + ".txt", "description": "what was asked for", "dataItems": items}
		if add && len(t.Products) > 0 {
			had := t.Products[len(t.Products)-1].(Object)
			before, _ := had["dataItems"].([]any)
			one := before[0].(Object)
			one["text"] = text(one, "text") + text(items[0].(Object), "text")
		} else {
			t.Products = append(t.Products, clone(product))
		}
		if most := number(t.Params, "maxProductsBytes"); most > 0 && size(t.Products) > most &&
			!p.Accepts["too many bytes"] {
			t.Products = []any{}
			p.change(t, "failed", []any{textItem(fmt.Sprintf("the products have more than %d bytes", most))})
			return
		}
		p.log(t, p.message(t, Object{"type": "product-chunk", "taskId": t.ID, "sessionId": t.Session,
			"product": clone(product), "append": add, "lastChunk": last}), "")
	}}
}

// size counts the bytes of products.
func size(products []any) (n int64) {
	for _, product := range products {
		items, _ := product.(Object)["dataItems"].([]any)
		for _, item := range items {
			object := item.(Object)
			n += int64(len(text(object, "text")) + len(text(object, "bytes")))
			if data := object["data"]; data != nil {
				b, _ := json.Marshal(data)
				n += int64(len(b))
			}
		}
	}
	return n
}

// steps are the work for a text.
func (p *Partner) steps(t *Task, said string, first bool) []Step {
	word, rest, _ := strings.Cut(said, " ")
	var steps []Step
	switch {
	case first && word == "reject":
		return []Step{p.To("rejected", textItem("this is not what I do"))}
	case first && word == "accept":
		return []Step{p.To("accepted")}
	case first:
		steps = []Step{p.To("accepted"), p.To("working")}
	default:
		steps = []Step{p.To("working")}
	}
	finish := p.To("awaiting-completion", textItem("ready"))
	product := fmt.Sprintf("product-%d", t.turn+1)
	if t.Asked && !first {
		word = ""
		t.Asked = false
	}
	switch word {
	case "ask":
		t.Asked = true
		return append(steps, p.To("awaiting-input", textItem("which colour?")))
	case "fail":
		return append(steps, p.To("failed", textItem("it does not work")))
	case "slow":
		seconds, _ := strconv.ParseFloat(rest, 64)
		finish.Wait = time.Duration(seconds * float64(time.Second))
		piece := p.Piece(product, false, true, textItem("slow: ready"))
		piece.Wait, finish.Wait = finish.Wait, 0
		return append(steps, piece, finish)
	case "stream":
		count, pace, _ := strings.Cut(rest, " ")
		n, _ := strconv.Atoi(count)
		ms, _ := strconv.Atoi(pace)
		for i := range n {
			s := p.Piece(product, i > 0, i == n-1, textItem(fmt.Sprintf("piece %d ", i+1)))
			s.Wait = time.Duration(ms) * time.Millisecond
			steps = append(steps, s)
		}
		return append(steps, finish)
	case "two":
		return append(steps, p.Piece(product+"-1", false, true, textItem("one")),
			p.Piece(product+"-2", false, true, textItem("two")), finish)
	case "file":
		return append(steps, p.Piece(product, false, true, Object{"type": "file", "name": "hello.txt",
			"mimeType": "text/plain", "bytes": "aGVsbG8="}), finish)
	case "data":
		return append(steps, p.Piece(product, false, true, Object{"type": "data", "data": Object{"answer": 42}}), finish)
	}
	return append(steps, p.Piece(product, false, true, textItem("echo: "+said)), finish)
}

// SPDX-License-Identifier: Apache-2.0

package task

import "slices"

// Fold applies events, in order, to the Task they describe. The zero Fold is a task without events. It is not safe for
// concurrent use, and after it was copied only the copy is used.
type Fold struct {
	Seq uint64 // number of the last event applied

	// Withdrawn has the products of the task before the present turn, if a continue has withdrawn them.
	Withdrawn []Product

	// MaxSaid is the most bytes of the agent's words kept in the history, 4 MiB at most; 0 for 4 MiB.
	MaxSaid int64

	task  Task // without the pieces in texts and said, added by Task
	texts Texts
	late  []*growing // texts with pieces not in task yet
	said  remarks

	size  int64 // of the products, with all pieces, as ProductsSize counts
	sized bool  // size is known
}

// NewFold returns the fold of an existing task, to apply events to.
func NewFold(t Task) Fold { return Fold{task: t} }

// Task returns the task as it is after the applied events. It is valid until the next call of Apply, and is not to be
// changed; its slices stay as they are.
func (f *Fold) Task() *Task {
	f.join()
	f.joinRemarks()
	return &f.task
}

// Status returns the status of Task.
func (f *Fold) Status() *Status { return &f.task.Status }

// Apply adds one event. Events must come in the order of their numbers.
func (f *Fold) Apply(ev Event) {
	f.Seq = ev.Seq
	switch {
	case ev.Task != nil:
		f.task = *ev.Task
		f.task.StatusHistory = slices.Clone(ev.Task.StatusHistory)
		f.task.MessageHistory = slices.Clone(ev.Task.MessageHistory)
		f.task.Products = append([]Product(nil), ev.Task.Products...) // nil if there are none, stored or not
		f.texts, f.late, f.sized, f.Withdrawn = Texts{}, nil, false, ev.Withdrawn
		if len(f.task.StatusHistory) == 0 {
			f.task.StatusHistory = append(make([]Status, 0, 4), f.task.Status) // most tasks have no more
		}
		f.said.see(&f.task)
	case ev.Status != nil:
		moved := ev.Status.State != f.task.Status.State
		f.pass(ev.Status, ev.Cause)
		f.task.Status = *ev.Status
		if news := ev.Status.TaskExtensions; len(news) > 0 {
			f.task.Extensions, f.task.Status.TaskExtensions = merged(f.task.Extensions, news), nil
		}
		if moved {
			f.task.StatusHistory = append(f.task.StatusHistory, f.task.Status)
		}
		if ev.Cause != nil {
			f.Withdrawn = nil
		}
		if ev.Offer != nil {
			f.offer(ev.Offer, ev.Cause != nil)
		}
	case ev.Chunk != nil:
		f.chunk(ev.Chunk)
	case ev.Message != nil:
		f.message(ev.Message)
	}
	if ev.Cause != nil {
		f.message(ev.Cause)
	}
}

// offer reduces the products to the ones of ids, in that order.
func (f *Fold) offer(ids []string, continued bool) {
	f.join()
	f.sized = false
	if continued {
		f.Withdrawn = f.task.Products
	}
	var offered []Product
	for _, id := range ids {
		p := findProduct(f.task.Products, id)
		if p != nil && findProduct(offered, id) == nil {
			offered = append(offered, *p)
		}
	}
	for id := range f.texts.growing {
		if findProduct(offered, id) == nil {
			f.texts.Forget(id)
		}
	}
	f.task.Products = offered
}

// message adds a message to the history.
func (f *Fold) message(m *Message) {
	if m.SenderRole == Partner {
		f.remark(*m)
		return
	}
	f.joinRemarks()
	f.task.MessageHistory = append(f.task.MessageHistory, *m)
	f.said.turn(f.task.MessageHistory)
}

func (f *Fold) chunk(c *Chunk) {
	if c.Append && c.plainText() {
		if g := f.growing(c.Product.ID, c.Product.Name); g != nil {
			text := c.Product.DataItems[0].Text
			g.text.WriteString(text)
			f.grown(g, int64(len(text)))
			return
		}
	}
	f.join()
	f.sized = false
	i := slices.IndexFunc(f.task.Products, func(p Product) bool { return p.ID == c.Product.ID })
	if i < 0 {
		p := c.Product
		p.DataItems = slices.Clone(p.DataItems)
		f.task.Products = append(slices.Clip(f.task.Products), p)
		return
	}
	// Readers may hold the slice of an earlier moment: a copy is changed.
	f.task.Products = slices.Clone(f.task.Products)
	p := &f.task.Products[i]
	if !c.Append {
		f.texts.Forget(p.ID)
		*p = c.Product
		p.DataItems = slices.Clone(p.DataItems)
		return
	}
	p.DataItems = slices.Clone(p.DataItems)
	f.texts.Add(p, &c.Product)
}

// ApplyPieces applies pieces[from:to] as events. seq is the number of the first.
func (f *Fold) ApplyPieces(pieces *Pieces, from, to int, seq uint64) {
	var g *growing
	for i := from; i < to; i++ {
		one := &pieces.list[i]
		if one.chunk == nil && one.append {
			if g == nil || !g.takes(one.product, one.name) {
				g = f.growing(one.product, one.name)
			}
			if g != nil {
				g.add(pieces.stored[one.from:one.to], one.escaped)
				f.grown(g, one.size)
				continue
			}
		}
		c := pieces.Chunk(i)
		f.chunk(&c)
		g = nil
	}
	f.Seq = seq + uint64(to-from) - 1
}

// growing returns the text of a product if a plain text of this name can be added to it without any other change; nil
// if there is none.
func (f *Fold) growing(product, name string) *growing {
	if g := f.texts.growing[product]; g != nil && g.takes(product, name) {
		return g
	}
	return nil
}

// grown records so many more bytes of a text. They are joined with the product when it is read.
func (f *Fold) grown(g *growing, more int64) {
	if !g.late {
		g.late = true
		f.late = append(f.late, g)
	}
	f.size += more
}

// join makes the products of task complete.
func (f *Fold) join() {
	if len(f.late) == 0 {
		return
	}
	f.task.Products = slices.Clone(f.task.Products) // readers may hold the slices of an earlier moment
	for _, g := range f.late {
		p := findProduct(f.task.Products, g.product)
		p.DataItems = slices.Clone(p.DataItems)
		p.DataItems[len(p.DataItems)-1].Text, g.late = g.text.String(), false
	}
	clear(f.late)
	f.late = f.late[:0]
}

// ProductsSize returns the size of the products as the function ProductsSize counts it.
func (f *Fold) ProductsSize() int64 {
	if !f.sized {
		f.size, f.sized = ProductsSize(f.Task().Products), true
	}
	return f.size
}

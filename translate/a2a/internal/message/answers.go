// SPDX-License-Identifier: Apache-2.0

package message

import (
	"slices"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Answers are the Messages of an agent in one stream, as products. Some agents send several, perhaps an empty one
// first, or one in pieces with the same id.
type Answers struct{ said []task.Product }

// Add makes the Messages before a report a part of it, if it is the report of a Message.
func (a *Answers) Add(rep *agent.Report) {
	if !rep.Message || len(rep.Products) == 0 {
		a.said = nil
		return
	}
	if len(a.said) > 0 && rep.Products[0].IsEmpty() {
		rep.Products = a.said
		return
	}
	p := rep.Products[0]
	i := slices.IndexFunc(a.said, func(q task.Product) bool { return q.ID == p.ID })
	all := slices.Clone(a.said)
	if i < 0 {
		all = append(all, p)
	} else {
		all[i].DataItems = wire.JoinTexts(nil, slices.Concat(all[i].DataItems, p.DataItems))
	}
	if rep.Products = all; !p.IsEmpty() {
		a.said = all
	}
}

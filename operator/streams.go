// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"net/http"
	"strconv"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// listStreams answers with the open streams of the process, those of replaced configurations included.
func listStreams(a *Admin, r *http.Request) (any, error) {
	q := r.URL.Query()
	f := gateway.StreamFilter{Partner: q.Get("partner"), Leader: q.Get("leader"), Task: q.Get("task")}
	var err error
	if f.After, err = readNumber(q, "after", "the number of a stream"); err != nil {
		return nil, err
	}
	if f.Limit, err = readLimit(q); err != nil {
		return nil, err
	}
	list, more := a.Process.OpenStreams(r.Context(), f)
	page := adminapi.StreamPage{Streams: make([]adminapi.Stream, 0, len(list))}
	for i := range list {
		page.Streams = append(page.Streams, a.streamOf(&list[i]))
	}
	if more {
		page.Next = adminapi.Cursor(strconv.FormatUint(list[len(list)-1].Number, 10))
	}
	return page, nil
}

func (a *Admin) streamOf(s *gateway.OpenStream) adminapi.Stream {
	out := adminapi.Stream{
		TaskName: adminapi.TaskName{Partner: s.Partner, Leader: s.Leader, Task: s.Task}, Number: s.Number,
		User: s.User, Address: s.Address, Transport: s.Transport, Dialect: s.Dialect, Command: s.Command, Since: s.Since,
		Events: s.Events, Last: s.Last, OfAgent: a.agent(s.Partner),
	}
	if s.End > 0 {
		behind := max(s.End, s.Last) - s.Last // it may have sent more since its task was read
		out.Behind = &behind
	}
	return out
}

var allStreams = paged(func(p *adminapi.StreamPage) listFields[adminapi.Stream] {
	return listFields[adminapi.Stream]{&p.Streams, &p.Missing, (*string)(&p.Next)}
})

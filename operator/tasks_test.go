// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/partner"
)

// TestNewestOfGateways: the pages of several gateways that differ in how many tasks they have, from when, and how far
// they look for a page, have every task once, those that have changed last first.
func TestNewestOfGateways(t *testing.T) {
	order := func(a, b adminapi.Task) int { return partner.CompareCursors(cursorOf(&a), cursorOf(&b)) }
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		has, want := make([][]adminapi.Task, 1+r.IntN(4)), []adminapi.Task{}
		look := make([]int, len(has)) // how many tasks a gateway looks at for a page
		for i := range has {
			look[i] = 1 + r.IntN(6)
			for n := range r.IntN(40) * r.IntN(2) {
				task := adminapi.Task{TaskName: adminapi.TaskName{Partner: "P", Leader: fmt.Sprint("l", i), Task: fmt.Sprint(n)},
					Since: begin.Add(time.Duration(r.IntN(30)+20*i*r.IntN(2)) * time.Second)} // some at one time
				has[i] = append(has[i], task)
				task.Gateway = fmt.Sprint("g", i)
				want = append(want, task)
			}
			slices.SortFunc(has[i], order)
		}
		slices.SortFunc(want, order)
		wanted := func(t *adminapi.Task) bool { return t.Task[0] != '1' } // what the filter selects
		want = slices.DeleteFunc(want, func(t adminapi.Task) bool { return !wanted(&t) })

		limit, got, after := 1+r.IntN(5), []adminapi.Task{}, ""
		for pages := 0; ; pages++ {
			var all []ofNode[adminapi.TaskPage]
			for i, list := range has {
				page, left := new(adminapi.TaskPage), look[i]
				for j := range list {
					if after != "" && partner.CompareCursors(after, cursorOf(&list[j])) >= 0 {
						continue
					}
					if left == 0 || len(page.Tasks) == limit {
						page.Next = cursorOf(&list[j-1])
						break
					}
					if left--; wanted(&list[j]) {
						page.Tasks = append(page.Tasks, list[j])
					}
				}
				all = append(all, ofNode[adminapi.TaskPage]{name: fmt.Sprint("g", i), page: page})
			}
			page := newestOf(all, limit)
			if len(page.Tasks) > limit || pages > 200 {
				t.Fatalf("%d: page %d has %d tasks", seed, pages, len(page.Tasks))
			}
			got = append(got, page.Tasks...)
			if after = page.Next; after == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%d (-want +got):\n%s", seed, diff)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"fmt"
	"testing"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/google/go-cmp/cmp"
)

// TestGroup invites an agent that never heard of AMQP, and leads it through a task, in both generations of AIP.
func TestGroup(t *testing.T) {
	t.Parallel()
	p := site.Certificates(t)
	b := site.SharedBroker(t)
	node, err := b.Eval("binary_to_list(rabbit_nodes:cluster_name())")
	site.NoError(t, err)
	for name, leader := range map[string]devpki.File{"v01": p.LeaderV1, "v02": p.Leader} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, agent := site.SampleAgent(t)
			m := newMember(t, "a2a/legacy http://"+agent, fmt.Sprint("localhost:", b.Port))
			g := site.NewGroup(t, b, "group123", leader)
			joined := g.Join(m)
			want := site.Membership{ConnectionName: "agent-" + m.AIC, VHost: g.VHost, NodeName: node[1 : len(node)-1],
				QueueName: "group_" + g.AIC() + "_" + g.ID + "_" + m.AIC, ProcessID: joined.ProcessID, AIC: m.AIC,
				Status: joined.Status, GroupID: g.ID}
			if diff := cmp.Diff(want, *joined); diff != "" || joined.ProcessID == "" || joined.Status == "" {
				t.Errorf("the answer to the invitation (-want +got):\n%s", diff)
			}

			g.Say("start", "one", "hello")
			if got := g.WaitForState(m.AIC, "one", "awaiting-completion"); got.Says() != "echo: hello" {
				t.Errorf("the product is %s", got.Raw)
			}
			g.Say("continue", "one", "more", m.AIC)
			g.WaitFor(m.AIC, "the second product", func(m site.HeardMessage) bool { return m.Says() == "echo: more" })
			g.Say("complete", "one", "", "all")
			g.WaitForState(m.AIC, "one", "completed")
			g.Check(m, "one", task.Accepted, task.Working, task.AwaitingCompletion, task.Working, task.AwaitingCompletion,
				task.Completed)
		})
	}
}

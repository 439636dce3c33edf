// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"fmt"
	"slices"
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestGroupDeputy has a Leader without an account at the broker invite a Partner, which logs in by its certificate, to
// the exchange of another Leader. It can neither write there nor have a queue bound to it.
//
// Promise: a Leader has the Partner write into, or read from, the group of another Leader
func TestGroupDeputy(t *testing.T) {
	t.Parallel()
	b := site.SharedBroker(t)
	p := site.Certificates(t)
	_, agent := site.SampleAgent(t)
	g := site.NewGroup(t, b, "deputy", p.LeaderV1)
	m := site.MakeMember(t)
	cert := m.Identify()
	site.NoError(t, b.AddUser(m.AIC, ""), g.Permit(m.AIC))
	g.Token, g.Port = "", b.TLSPort
	m.Config = m.Fronting("a2a/legacy http://"+agent, "localhost",
		fmt.Sprintf("allow_exchanges %s %s", g.AIC(), g.Exchange),
		fmt.Sprintf("tls {\n\t\t\t\tca %s\n\t\t\t\tclient_cert %s %s\n\t\t\t}", p.CA.Cert, cert.Cert, cert.Key))
	m.Start(m.Config)
	g.Join(m)
	queues, err := b.Queues(g.VHost)
	site.NoError(t, err)

	hostile := m.CalledBy(p.Leader)
	for _, id := range []string{g.ID, "mine"} {
		params := g.Invitation(m.AIC)
		params["group"].(site.Object)["leader"].(site.Object)["aic"] = string(p.Leader.AIC)
		params["group"].(site.Object)["groupId"] = id
		if _, refused := g.Invite(hostile, params); refused == nil || refused.Code != -32020 && refused.Code != -32009 {
			t.Errorf("an invitation to the exchange of another Leader is answered %+v", refused)
		}
		start := site.StartCall("T", "hello forged result")
		start.Message.GroupID = id
		if _, err := hostile.Try(start); err == nil {
			t.Error("a task is started in the group")
		}
		if _, err := hostile.Try(site.CommandCall(task.Get, "T")); err == nil {
			t.Error("the task is there")
		}
	}
	now, err := b.Queues(g.VHost)
	site.NoError(t, err)
	slices.Sort(queues)
	slices.Sort(now)
	if !slices.Equal(now, queues) {
		t.Errorf("the queues are %v, and were %v", now, queues)
	}
	g.Say("start", "T", "hello")
	g.WaitForState(m.AIC, "T", "awaiting-completion")
	for _, heard := range g.Of(m.AIC, "T") {
		if says := heard.Says(); says != "" && says != "echo: hello" {
			t.Errorf("the group hears %s", heard.Raw)
		}
	}
}

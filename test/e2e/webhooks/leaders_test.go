// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestWebhooksOfTwoLeaders has one Leader set more webhooks at hosts that hang than attempts may be under way. Another
// Leader's webhooks are notified all the same.
func TestWebhooksOfTwoLeaders(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, nil)
	s := site.Serve(
		t,
		site.Config{Store: "store memory", Notify: site.AllowHere + "timeout 1m",
			Handle: "aip_gateway a2a/legacy " + agent.URL},
	)
	v1 := site.Certificates(t).LeaderV1
	good, bad := site.LeaderOf(t, s.URL()), site.CallerWith(t, s.URL(), string(v1.AIC), devpkitest.KeyPair(t, v1))

	known := site.NewSink(t)
	history := site.LeadWithWebhook(good, "known", known.Origin()+"/known")
	known.WaitForChanges("/known", history)

	// A receiver that the kernel answers for, and that says nothing, at each address of 127.77.0.0/16.
	hangs, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hangs.Close()
	port := hangs.Addr().(*net.TCPAddr).Port
	const workers, tasks, hooks = 8, 10, 16 // 1280 hosts
	each := func(do func(i, j int, id string)) {
		var work sync.WaitGroup
		for i := range workers {
			work.Go(func() {
				for j := range tasks {
					do(i, j, fmt.Sprint("bad ", i, " ", j))
				}
			})
		}
		work.Wait()
	}
	each(func(i, j int, id string) {
		for k := range hooks {
			bad.SetHook(site.Hook{URL: fmt.Sprintf("http://127.77.%d.%d:%d/", i, 1+j*hooks+k, port), Token: "t", TaskID: id})
		}
	})
	each(func(_, _ int, id string) { bad.Start(id, "hello") }) // from now on, an attempt hangs for a minute
	site.Eventually(t, "many attempts hang", func() bool {
		n := 0
		for _, e := range s.Endpoints() {
			n += e.InFlight
		}
		return n > 800
	})

	again := site.LeadWithWebhook(good, "again", known.Origin()+"/again")
	known.WaitForChanges("/again", again)
	fresh := site.NewSink(t)
	first := site.LeadWithWebhook(good, "first", fresh.Origin()+"/first")
	fresh.WaitForChanges("/first", first)
	if ended := s.Deliveries("status=failing"); len(ended) > 0 {
		t.Errorf("the other Leader waited until %d attempts that hang had ended", len(ended))
	}
}

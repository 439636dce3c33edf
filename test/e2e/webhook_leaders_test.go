// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"sync"
	"testing"
)

// TestWebhooksOfTwoLeaders has one Leader set more webhooks at hosts that hang than attempts may be under way. Another
// Leader's webhooks are notified all the same.
func TestWebhooksOfTwoLeaders(t *testing.T) {
	t.Parallel()
	agent := newFakeAgent(t, nil)
	s := serve(
		t,
		config{store: "store memory", notify: here + "timeout 1m", handle: "aip_gateway a2a/legacy " + agent.url},
	)
	v1 := certificates(t).LeaderV1
	good, bad := leaderOf(t, s.url()), callerWith(t, s.url(), string(v1.AIC), keyPair(t, v1))

	known := newSink(t)
	history := lead(good, "known", known.origin()+"/known")
	known.waitForChanges("/known", history)

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
			bad.setHook(hook{URL: fmt.Sprintf("http://127.77.%d.%d:%d/", i, 1+j*hooks+k, port), Token: "t", TaskID: id})
		}
	})
	each(func(_, _ int, id string) { bad.start(id, "hello") }) // from now on, an attempt hangs for a minute
	eventually(t, "many attempts hang", func() bool {
		n := 0
		for _, e := range s.endpoints() {
			n += e.InFlight
		}
		return n > 800
	})

	again := lead(good, "again", known.origin()+"/again")
	known.waitForChanges("/again", again)
	fresh := newSink(t)
	first := lead(good, "first", fresh.origin()+"/first")
	fresh.waitForChanges("/first", first)
	if ended := s.deliveries("status=failing"); len(ended) > 0 {
		t.Errorf("the other Leader waited until %d attempts that hang had ended", len(ended))
	}
}

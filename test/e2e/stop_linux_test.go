// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
)

// TestStopUnderStreams runs caddy stop while 500 streams are open and starts wait, at an agent that takes ten minutes.
// Nothing but drain ends them properly: each stream with the request to resume it, each start with its task.
func TestStopUnderStreams(t *testing.T) {
	t.Parallel()
	const streams, starts = 500, 20
	_, agent := sampleAgent(t)
	s := newSite(t)
	s.start(config{handle: gatewayTo(agent), store: "store pebble " + s.dir + "/store\n\t\tdrain 2s"})
	l := leaderOf(t, s.url())
	transports := l.transports(t)
	var group sync.WaitGroup
	for i := range streams {
		id := fmt.Sprint("stream-", i)
		client := &http.Client{Transport: transports[fmt.Sprint(1+i%2)]}
		group.Go(func() {
			res, err := client.Post(s.url()+"/stream", "application/json",
				bytes.NewReader(streamBody(l.Sender, "start", id, "slow 600", "")))
			if err != nil {
				t.Errorf("%s: %v", id, err)
				return
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			if err != nil || !strings.Contains(string(body), `"working"`) ||
				!strings.Contains(string(body), "re-stream from the last event") {
				t.Errorf("%s ended with %v, after %q", id, err, body)
			}
		})
	}
	for i := range starts {
		id := fmt.Sprint("start-", i)
		group.Go(func() {
			call := startCall(id, "slow 600")
			call.Terms.Response = 10 * time.Minute
			got, err := l.try(call)
			if err != nil {
				t.Errorf("%s: %v", id, explain(err))
				return
			}
			if diff := cmp.Diff(answered{State: task.Working}, of(got)); diff != "" || got.ID != id {
				t.Errorf("%s is answered with %s (-want +got):\n%s", id, got.ID, diff)
			}
		})
	}
	eventually(t, "all streams are open", func() bool {
		return s.held("streams") == streams && s.held("streams_taken_over") == streams/2
	})
	for i := range starts {
		eventually(t, "all starts wait for their agent", func() bool {
			got, err := l.try(commandCall(task.Get, fmt.Sprint("start-", i)))
			return err == nil && got.Status.State == task.Working
		})
	}
	if status, _, stderr := s.caddy("stop", "--address", strings.TrimPrefix(s.adminURL(), "http://")); status != 0 {
		t.Errorf("caddy stop ends with %d: %s", status, stderr)
	}
	select {
	case <-s.ended:
	case <-time.After(patience):
		t.Error("the gateway does not stop")
		s.kill()
	}
	group.Wait()
}

// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/google/go-cmp/cmp"
)

// TestStopUnderStreams runs caddy stop while 500 streams are open and starts wait, at an agent that takes ten minutes.
// Nothing but drain ends them properly: each stream with the request to resume it, each start with its task.
func TestStopUnderStreams(t *testing.T) {
	t.Parallel()
	const streams, starts = 500, 20
	_, agent := site.SampleAgent(t)
	s := site.New(t)
	s.Start(site.Config{Handle: site.GatewayTo(agent), Store: "store pebble " + s.Dir + "/store\n\t\tdrain 2s"})
	l := site.LeaderOf(t, s.URL())
	transports := l.Transports(t)
	var group sync.WaitGroup
	for i := range streams {
		id := fmt.Sprint("stream-", i)
		client := &http.Client{Transport: transports[fmt.Sprint(1+i%2)]}
		group.Go(func() {
			res, err := client.Post(s.URL()+"/stream", "application/json",
				bytes.NewReader(site.StreamBody(l.Sender, "start", id, "slow 600", "")))
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
			call := site.StartCall(id, "slow 600")
			call.Terms.Response = 10 * time.Minute
			got, err := l.Try(call)
			if err != nil {
				t.Errorf("%s: %v", id, site.Explain(err))
				return
			}
			if diff := cmp.Diff(site.Answered{State: task.Working}, site.AnswerOf(got)); diff != "" || got.ID != id {
				t.Errorf("%s is answered with %s (-want +got):\n%s", id, got.ID, diff)
			}
		})
	}
	site.Eventually(t, "all streams are open", func() bool {
		return held(s, "streams") == streams && held(s, "streams_taken_over") == streams/2
	})
	for i := range starts {
		site.Eventually(t, "all starts wait for their agent", func() bool {
			got, err := l.Try(site.CommandCall(task.Get, fmt.Sprint("start-", i)))
			return err == nil && got.Status.State == task.Working
		})
	}
	if status, _, stderr := s.Caddy("stop", "--address", s.AdminAddress()); status != 0 {
		t.Errorf("caddy stop ends with %d: %s", status, stderr)
	}
	select {
	case <-s.Ended:
	case <-time.After(site.Patience):
		t.Error("the gateway does not stop")
		s.Kill()
	}
	group.Wait()
}

// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestUnauthenticatedConnections opens more connections than the gateway has file descriptors for, and sends nothing on
// them. A Leader that is connected is served, tasks wait for a connection to their agent, and everything works again
// when these connections are closed.
func TestUnauthenticatedConnections(t *testing.T) {
	t.Parallel()
	const files, strangers = 400, 600
	agent := site.NewFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
		w.Header().Set("Connection", "close") // so that each task needs a connection
		site.WriteTask(w, h, "completed", "done")
	})
	s := site.New(t)
	s.Files = files
	s.Start(site.Config{Handle: "aip_gateway {\nagent a2a/legacy " + agent.URL + " {\nretry_for 0\n}\n}"})
	connected := site.LeaderOf(t, s.URL())
	connected.Refused(site.CommandCall(task.Get, "none"))
	conns := make([]net.Conn, strangers)
	for i := range conns {
		var err error
		if conns[i], err = net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.Port)); err != nil {
			t.Fatal(err)
		}
		defer conns[i].Close()
	}
	tasks := 0
	site.Eventually(t, "tasks wait for a file descriptor", func() bool {
		call := site.StartCall(fmt.Sprint("t", tasks), "hello")
		call.Terms.Response = time.Millisecond
		connected.Send(call)
		connected.Get(call.Message.TaskID)
		tasks++
		return strings.Contains(s.Out.String(), "no file descriptors are left to reach the agent")
	})
	for _, conn := range conns {
		conn.Close()
	}
	for i := range tasks {
		got := connected.Rests(fmt.Sprint("t", i))
		site.CheckHistory(t, got)
		if got.Status.State != task.AwaitingCompletion {
			t.Errorf("%s is %+v", got.ID, site.AnswerOf(got))
		}
	}
	if got := site.LeaderOf(t, s.URL()).Start("after", "hello"); got.Status.State != task.AwaitingCompletion {
		t.Errorf("the start of another connection is answered %+v", site.AnswerOf(got))
	}
	if n := len(agent.Requests("tasks/send")); n != tasks+1 {
		t.Errorf("the agent has had %d tasks", n)
	}
}

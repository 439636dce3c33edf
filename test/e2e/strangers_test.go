// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// TestUnauthenticatedConnections opens more connections than the gateway has file descriptors for, and sends nothing on
// them. A Leader that is connected is served, tasks wait for a connection to their agent, and everything works again
// when these connections are closed.
func TestUnauthenticatedConnections(t *testing.T) {
	t.Parallel()
	const files, strangers = 400, 600
	agent := newFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h heard) {
		w.Header().Set("Connection", "close") // so that each task needs a connection
		writeTask(w, h, "completed", "done")
	})
	s := newSite(t)
	s.files = files
	s.start(config{handle: "aip_gateway {\nagent a2a/legacy " + agent.url + " {\nretry_for 0\n}\n}"})
	connected := leaderOf(t, s.url())
	connected.refused(commandCall(task.Get, "none"))
	conns := make([]net.Conn, strangers)
	for i := range conns {
		var err error
		if conns[i], err = net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.port)); err != nil {
			t.Fatal(err)
		}
		defer conns[i].Close()
	}
	tasks := 0
	eventually(t, "tasks wait for a file descriptor", func() bool {
		call := startCall(fmt.Sprint("t", tasks), "hello")
		call.Terms.Response = time.Millisecond
		connected.do(call)
		connected.get(call.Message.TaskID)
		tasks++
		return strings.Contains(s.out.String(), "no file descriptors are left to reach the agent")
	})
	for _, conn := range conns {
		conn.Close()
	}
	for i := range tasks {
		got := connected.rests(fmt.Sprint("t", i))
		checkHistory(t, got)
		if got.Status.State != task.AwaitingCompletion {
			t.Errorf("%s is %+v", got.ID, of(got))
		}
	}
	if got := leaderOf(t, s.url()).start("after", "hello"); got.Status.State != task.AwaitingCompletion {
		t.Errorf("the start of another connection is answered %+v", of(got))
	}
	if n := len(agent.requests("tasks/send")); n != tasks+1 {
		t.Errorf("the agent has had %d tasks", n)
	}
}

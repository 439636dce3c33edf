// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
)

func TestX(t *testing.T) {
	for _, kind := range []string{"-32603", "-32602", "-32005", "502", "401", "garbage", "-32001"} {
		n := 0
		agent := newFakeAgent(t, func(w http.ResponseWriter, r *http.Request, h heard) {
			if h.Method == "tasks/send" {
				n++
				if n == 2 {
					switch kind {
					case "garbage":
						fmt.Fprint(w, "garbage")
					case "502", "401":
						w.WriteHeader(map[string]int{"502": 502, "401": 401}[kind])
					default:
						var code int
						fmt.Sscan(kind, &code)
						writeError(w, h, code, "the model is out")
					}
					return
				}
			}
			if h.Method == "tasks/resubscribe" {
				writeError(w, h, -32601, "no")
				return
			}
			writeTask(w, h, "completed", fmt.Sprint("answer"))
		})
		c := config{handle: "aip_gateway a2a/legacy " + agent.url}
		s := serve(t, c)
		leader := leaderOf(t, s.url())
		leader.start("one", "hello")
		t.Log(kind, of(leader.do(commandCall(task.Continue, "one", "more"))))
	}
}

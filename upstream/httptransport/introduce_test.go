// SPDX-License-Identifier: Apache-2.0

package httptransport_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// introducing names the Leader of a request.
type introducing struct{}

func (introducing) Introduce(r *upstream.Request) []translate.Field {
	return []translate.Field{{Name: "Aip-Leader", Value: r.Caller.Leader}, {Name: "Aip-Task", Value: r.Ref.Task}}
}

// TestIntroduction: the fields of an Introducer stand in the head of every request, whole beside the other fields.
func TestIntroduction(t *testing.T) {
	for _, scheme := range schemes {
		type request struct {
			Leader, Task, Key, Field []string
			Body                     string
		}
		var got request
		a := newRawAgent(t, scheme, func(conn net.Conn, in *bufio.Reader, _ int) {
			for {
				r, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				body, _ := io.ReadAll(r.Body)
				got = request{r.Header["Aip-Leader"], r.Header["Aip-Task"], r.Header["X-Key"], r.Header["X-Field"],
					string(body)}
				io.WriteString(conn, answered("{}"))
			}
		})
		a.Introducer, a.Header = introducing{}, http.Header{"X-Key": {"secret"}}
		transport := a.transport(t)
		for _, leader := range []string{"one", "two"} { // the second on the connection of the first
			r := requestOf(`{"x":1}`)
			r.Caller, r.Ref = agent.Caller{Leader: leader}, agent.Ref{Task: "t"}
			r.Fields = []translate.Field{{Name: "X-Field", Value: "of " + leader}}
			if _, err := send(t.Context(), transport, r); err != nil {
				t.Fatal(err)
			}
			want := request{[]string{leader}, []string{"t"}, []string{"secret"}, []string{"of " + leader},
				`{"x":1}`}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", scheme, diff)
			}
		}
	}
}

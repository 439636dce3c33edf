// SPDX-License-Identifier: Apache-2.0

package a2atest

import (
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// InformalErrors checks that a client reports an error of a stream in the agent's words, if it has none of the forms of
// its dialect. Other events keep their meaning.
func InformalErrors(t *testing.T, c translate.Client) {
	t.Helper()
	for _, ev := range []struct{ name, data string }{
		{"error", "the model is overloaded"},
		{"error", `"the model is overloaded"`},
		{"error", `{"error":"the model is overloaded"}`},
		{"message", `{"error":"the model is overloaded"}`},
		{"", `{"error":{"message":"the model is overloaded"}}`},
	} {
		_, err := c.For(translate.Query{ID: "r-1", Turn: true}).NewStream(nil).Event(ev.name, []byte(ev.data))
		if err == nil || task.KindOf(err) != task.Internal ||
			!strings.Contains(err.Error(), ": the model is overloaded") {
			t.Errorf("the event %q with %s: %v", ev.name, ev.data, err)
		}
	}
	for _, data := range []string{"the model is overloaded", "<html>502</html>"} {
		_, err := c.For(translate.Query{ID: "r-1", Turn: true}).NewStream(nil).Event("", []byte(data))
		if task.KindOf(err) != task.InvalidAgentResponse {
			t.Errorf("an event that is %s: %v", data, err)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

// TestTextsOfVectors: the pieces of texts of the real server are read in one pass, but for the first of each message,
// and they say the same.
func TestTextsOfVectors(t *testing.T) {
	for name, want := range map[string]int{"hello": 1, "tool": 1, "boom": 0, "stop": 7, "badreq": 0} {
		if got := translatetest.SameTexts(t, Client(Options{}), vector(t, name)); got != want {
			t.Errorf("of %s, %d events are read as pieces, want %d", name, got, want)
		}
	}
	if got := translatetest.SameTexts(t, Client(Options{Expose: ExposeProduct}), vector(t, "tool")); got != 2 {
		t.Errorf("of all messages, %d events are read as pieces", got)
	}
}

// seeds adds the events of the real server, one by one, and those of each answer together.
func seeds(f *testing.F) {
	for _, name := range []string{"hello", "tool", "boom", "badreq", "stop"} {
		events := vector(f, name)
		f.Add(bytes.Join(events, []byte("\n")))
		for _, ev := range events {
			f.Add(ev)
		}
	}
}

// FuzzTexts: Text and Event agree about all events, one on each line, in the middle of an answer.
func FuzzTexts(f *testing.F) {
	seeds(f)
	begin := vector(f, "stop")[:4]
	f.Fuzz(func(t *testing.T, body []byte) {
		events := slices.Concat(begin, bytes.Split(body, []byte("\n")), begin[3:])
		for e := range exposeNames {
			translatetest.SameTexts(t, Client(Options{Expose: Expose(e)}), events)
		}
	})
}

// FuzzClient: any body of an agent, in a stream or as one answer, is reported, or refused in one clean sentence.
func FuzzClient(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		check := func(rep agent.Report, err error) {
			if err == nil {
				if rep.State != task.None && !rep.State.Valid() {
					t.Fatalf("the state is %q", rep.State)
				}
				return
			}
			e, ok := errors.AsType[*task.Error](err)
			if !ok || e.Detail == "" || strings.ContainsFunc(e.Detail, unicode.IsControl) {
				t.Fatalf("it is refused as %v", err)
			}
		}
		for e := range exposeNames {
			c := Client(Options{Expose: Expose(e)})
			check(c.Reply(slices.Clone(body), nil))
			s := c.NewStream(nil)
			for line := range bytes.SplitSeq(body, []byte("\n")) {
				check(s.Event("", slices.Clone(line)))
			}
		}
	})
}

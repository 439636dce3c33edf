// SPDX-License-Identifier: Apache-2.0

package translatetest

import (
	"bytes"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
)

// known are the products of the tasks of these tests when a stream begins.
var known = []task.Product{{ID: "p-0", Name: "zero", DataItems: []task.DataItem{task.Text("0")}}}

// SameTexts reads the events of one stream twice: by Event alone, and by Text if it takes them. It fails the test if
// the reports differ, or their stored parts. It returns the number of events taken by Text.
func SameTexts(t testing.TB, c translate.Client, events [][]byte) (texts int) {
	t.Helper()
	slow, fast := c.NewStream(known), c.NewStream(known)
	var pieces task.Pieces
	for i, ev := range events {
		want, bad := slow.Event("message", ev)
		pieces.Reset()
		data := slices.Clone(ev)
		if !fast.(translate.TextStream).Text("message", data, &pieces) {
			if pieces.Len() > 0 {
				t.Fatalf("event %d: Text has added a piece that it does not take:\n%q", i, ev)
			}
			got, err := fast.Event("message", ev)
			if d := cmp.Diff(want, got); d != "" || (err == nil) != (bad == nil) {
				t.Fatalf("event %d (-all by Event +by Text and Event):\n%s%v, %v, for\n%q", i, d, bad, err, ev)
			}
			continue
		}
		texts++
		for j := range data { // nothing of it may be kept
			data[j] = 'x'
		}
		if bad != nil || pieces.Len() != 1 {
			t.Fatalf("event %d: Text has taken it, as %d pieces; Event: %v, for\n%q", i, pieces.Len(), bad, ev)
		}
		got := agent.Report{Chunks: []task.Chunk{pieces.Chunk(0)}}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("event %d (-Event +Text):\n%s, for\n%q", i, d, ev)
		}
		stored := task.AppendEvent(nil, &task.Event{Chunk: &want.Chunks[0]})
		if d := cmp.Diff(string(stored), string(pieces.Record(0))); d != "" {
			t.Fatalf("event %d: what is stored (-Event +Text):\n%s, for\n%q", i, d, ev)
		}
	}
	return texts
}

// productID is the metadata of this gateway with the name of a product in A2A 0.1. Other agents do not send it, and
// with any metadata a piece is more than a text.
var productID = regexp.MustCompile(`,"metadata":\{"productId":"[^"]*"\}`)

// streamed returns the events of a stream of the dialect, with a growing product.
func streamed(s translate.Server) (events [][]byte) {
	begin := task.Task{ID: "t", SessionID: "s", Status: task.Status{State: task.Working, ChangedAt: time.Unix(1e9, 0)}}
	out := s.NewStream(jsonrpc.ID("1"), new(translate.Call), &begin)
	add := func(ev task.Event) {
		ev.Seq = uint64(len(events) + 1)
		for next := (func(dst []byte) translate.Frame { return out.Event(dst, &ev) }); next != nil; {
			f := next(nil)
			if next = f.Next; f.Data != nil {
				events = append(events, productID.ReplaceAll(f.Data, nil))
			}
		}
	}
	add(task.Event{Task: &begin})
	add(task.Event{Status: &begin.Status})
	for i, text := range append([]string{"begin", "", "\"\\/\b\f\n\r\t\x00\x1f\u007f\u2028é💡"}, Strings()...) {
		for _, name := range [...]string{"one", "", "two"} {
			add(task.Event{Chunk: &task.Chunk{
				Product: task.Product{ID: "p-" + name, Name: name, DataItems: []task.DataItem{task.Text(text)}},
				Append:  i > 0 && i%5 != 0, Last: i%3 == 0,
			}})
		}
	}
	return events
}

// textsAreEvents: Text and Event agree about an agent's events, and about broken ones.
func textsAreEvents(t *testing.T, c translate.Client, s translate.Server) {
	events := streamed(s)
	if n := SameTexts(t, c, events); n < len(events)/2 {
		t.Errorf("Text takes %d of %d events", n, len(events))
	}
	tried, taken := 0, 0
	begin := slices.Clip(events[:5])
	for _, ev := range events[8:11] {
		alone := SameTexts(t, c, append(begin, ev, ev))
		try := func(body []byte) {
			tried++
			taken += SameTexts(t, c, append(begin, ev, body, ev)) - alone
		}
		mutatedBytes(ev, 100, try)
		if !inJSON(c) {
			continue
		}
		mutatedValues(t, ev, try)
		for _, escape := range [...]string{`\/`, `\b`, `\f`, `\u000a`, `\u0022`, `\u005C`, `\u00e9`, `\ud83d\uDCA1`, `\ud83d`,
			`\u0000`, `\ufffd`, `\x`, "\t"} {
			try(bytes.Replace(ev, []byte(`"text":"`), []byte(`"text":"`+escape), 1))
		}
		for _, space := range [...]string{" ", "\n", "\r\n\t"} {
			try(bytes.ReplaceAll(ev, []byte(`,"`), []byte(space+","+space+`"`)))
		}
	}
	t.Logf("Text takes %d of %d mutated events", taken, tried)
	if inJSON(c) && taken < tried/20 { // other bodies than JSON are mostly no message any more
		t.Errorf("Text takes %d of %d mutated events", taken, tried)
	}
}

// FuzzTexts checks that Text and Event agree about all events, one on each line. s is the side towards callers of the
// same dialect.
func FuzzTexts(f *testing.F, c translate.Client, s translate.Server) {
	events := streamed(s)
	begin := events[:8]
	for _, ev := range events[8:] {
		f.Add(ev)
	}
	f.Add(bytes.Join(events[8:16], []byte("\n")))
	f.Fuzz(func(t *testing.T, body []byte) {
		SameTexts(t, c, append(slices.Clone(begin), bytes.Split(body, []byte("\n"))...))
	})
}

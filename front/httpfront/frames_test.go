// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// severalFrames is a dialect with three frames for an event.
type severalFrames struct{ translate.Server }

func (d severalFrames) NewStream(id jsonrpc.ID, c *translate.Call, t *task.Task) translate.Encoder {
	return framesEncoder{d.Server.NewStream(id, c, t)}
}

type framesEncoder struct{ translate.Encoder }

func (e framesEncoder) Event(dst []byte, ev *task.Event) translate.Frame {
	last := func(dst []byte) translate.Frame { return e.Encoder.Event(dst, ev) }
	second := func(dst []byte) translate.Frame {
		return translate.Frame{Name: "second", Data: fmt.Appendf(dst, `"2 of %d"`, ev.Seq), Next: last}
	}
	return translate.Frame{Data: fmt.Appendf(dst, `"1 of %d"`, ev.Seq), Next: second}
}

// framesRecorder shows events from their stored form.
type framesRecorder struct{ framesEncoder }

func (e framesRecorder) Record(dst []byte, seq uint64, record []byte) translate.Frame {
	ev, err := task.DecodeEvent(record)
	if err != nil {
		panic(err)
	}
	ev.Seq = seq
	return e.Event(dst, &ev)
}

// severalRecorded is severalFrames with a RecordEncoder.
type severalRecorded struct{ severalFrames }

func (d severalRecorded) NewStream(id jsonrpc.ID, c *translate.Call, t *task.Task) translate.Encoder {
	return framesRecorder{framesEncoder{d.Server.NewStream(id, c, t)}}
}

// read returns the frames of a stream until one with end, each as its lines with a bar between them. A task's own data
// is not shown, nor the hint before the first event.
func (g *gate) read(ctx context.Context, body, end string) (frames []string) {
	g.t.Helper()
	res := g.postStream(ctx, body)
	defer res.Body.Close()
	var lines []string
	for s, last := bufio.NewScanner(res.Body), false; s.Scan(); {
		line := s.Text()
		switch {
		case line == "":
			frames, lines = append(frames, strings.Join(lines, " | ")), nil
			if last {
				return frames
			}
			continue
		case strings.HasPrefix(line, "retry: ") && len(frames)+len(lines) == 0:
			continue
		case strings.HasPrefix(line, `data: {`):
			last = strings.Contains(line, end)
			line = "data: {}"
		}
		lines = append(lines, line)
	}
	g.t.Fatalf("the stream ended after %q", frames)
	return nil
}

// TestEventsOfSeveralFrames: the frames of an event are sent in order, and only the last one has the event's id, so a
// caller with some of them resumes after the event before and receives all of them again.
func TestEventsOfSeveralFrames(t *testing.T) {
	for name, dialect := range map[string]translate.Server{
		"from events": severalFrames{aip.Server()}, "from records": severalRecorded{severalFrames{aip.Server()}},
	} {
		t.Run(name, func(t *testing.T) {
			g := open(t, func(h *setup) { h.Callers = []translate.Server{dialect} })
			const rests = `"state":"awaiting-completion"`
			got := g.read(t.Context(), message("stream", "start", "t1", "stream 2 5"), rests)
			var want []string
			for seq := 1; seq <= len(got)/3; seq++ {
				want = append(want, fmt.Sprintf(`data: "1 of %d"`, seq), fmt.Sprintf(`data: "2 of %d" | event: second`,
					seq),
					fmt.Sprintf("id: %d | data: {}", seq))
			}
			if diff := cmp.Diff(want, got); diff != "" || len(want) < 9 {
				t.Errorf("the stream (-want +got):\n%s", diff)
			}
			// The connection was lost behind the first frame of event 3: the caller's last id is 2.
			again := g.read(t.Context(), message("stream", "re-stream", "t1", "",
				`,"commandParams":{"lastEventSeq":2}`), rests)
			if diff := cmp.Diff(want[6:], again); diff != "" {
				t.Errorf("resumed in the middle of the frames of event 3 (-want +got):\n%s", diff)
			}
		})
	}
}

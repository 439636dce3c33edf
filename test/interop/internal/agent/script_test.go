// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/test/interop/internal/agent"
)

// notes is a stage that writes down what happens, and breaks when it has written so much.
type notes struct {
	began time.Time
	all   []string
	most  int
}

var errFull = errors.New("full")

func (n *notes) note(format string, args ...any) error {
	if len(n.all) == n.most {
		return errFull
	}
	n.all = append(n.all, time.Since(n.began).String()+" "+fmt.Sprintf(format, args...))
	return nil
}

func (n *notes) Begin() error { return n.note("begin") }

func (n *notes) Status(s agent.State, text string) error { return n.note("%s: %s", s, text) }

func (n *notes) Message(text string) error { return n.note("message: %s", text) }

func (n *notes) Artifact(c agent.Chunk) error {
	if c.Part.File != nil {
		return n.note("%s: %s %s %q", c.Name, c.Part.File.Name, c.Part.File.MediaType, c.Part.File.Bytes)
	}
	return n.note("%s: %s%v first=%t last=%t", c.Name, c.Part.Text, c.Part.Data, c.First, c.Last)
}

func TestPlay(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		turn agent.Turn
		want []string
	}{
		{"echo", agent.Turn{Text: "echo a b"}, []string{"0s begin", "0s echo: echo: a bmap[] first=true last=true",
			"0s completed: ok"}},
		{"anything", agent.Turn{Text: "hello"}, []string{"0s begin", "0s echo: echo: hellomap[] first=true last=true",
			"0s completed: ok"}},
		{"a behavior of A2A's tests", agent.Turn{Text: "tck-stream-basic hello"}, []string{
			"0s begin", "100ms out: chunk-0 map[] first=true last=true", "100ms completed: streamed"}},
		{"stream", agent.Turn{Text: "stream 2 50"}, []string{
			"0s begin", "50ms out: chunk-0 map[] first=true last=false", "100ms out: chunk-1 map[] first=false last=true",
			"100ms completed: streamed"}},
		{"stream of nothing", agent.Turn{Text: "stream 0"}, []string{"0s begin", "0s completed: streamed"}},
		{"stream by default", agent.Turn{Text: "stream -1 x"}, []string{
			"0s begin", "100ms out: chunk-0 map[] first=true last=false", "200ms out: chunk-1 map[] first=false last=false",
			"300ms out: chunk-2 map[] first=false last=true", "300ms completed: streamed"}},
		{"slow", agent.Turn{Text: "slow 2"}, []string{"0s begin", "1s working: tick 0", "2s working: tick 1",
			"2s completed: slow done"}},
		{"ask", agent.Turn{Text: "ask"}, []string{"0s begin", "0s input-required: which colour?"}},
		{"the answer", agent.Turn{Text: "msg blue", Waiting: true},
			[]string{"0s begin", "0s answer: you said: msg bluemap[] first=true last=true", "0s completed: done"}},
		{"auth", agent.Turn{Text: "auth"}, []string{"0s begin", "0s auth-required: log in at https://login.example/"}},
		{"reject", agent.Turn{Text: "reject"}, []string{"0s begin", "0s rejected: not my job"}},
		{"fail", agent.Turn{Text: "fail"}, []string{"0s begin", "0s failed: agent broke"}},
		{"msg", agent.Turn{Text: "msg hi there"}, []string{"0s message: direct: hi there"}},
		{"file", agent.Turn{Text: "file"}, []string{"0s begin", `0s file: hello.txt text/plain "hello\n"`,
			"0s completed: ok"}},
		{"data", agent.Turn{Text: "data"}, []string{"0s begin",
			"0s data: map[colour:blue parts:[1 2 3]] first=true last=true", "0s completed: ok"}},
		{"legacy has no message", agent.Turn{Text: "msg hi", Legacy: true},
			[]string{"0s begin", "0s echo: echo: msg himap[] first=true last=true", "0s completed: ok"}},
		{"legacy has no login", agent.Turn{Text: "auth", Legacy: true},
			[]string{"0s begin", "0s echo: echo: authmap[] first=true last=true", "0s completed: ok"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := &notes{began: time.Now(), most: 100}
				if err := tc.turn.Play(t.Context(), n); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, n.all); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestPlayEnds proves that a turn ends with the context, with the stage, and with an SDK's error in v0.1.
func TestPlayEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		n := &notes{began: time.Now(), most: 100}
		if err := (agent.Turn{Text: "slow 60"}).Play(ctx, n); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("slow ended with %v", err)
		}
		if diff := cmp.Diff([]string{"0s begin", "1s working: tick 0"}, n.all); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, text := range []string{"echo x", "slow 60", "stream 5"} {
			for most := range 2 {
				if err := (agent.Turn{Text: text}).Play(t.Context(), &notes{most: most}); !errors.Is(err, errFull) {
					t.Errorf("%s ended with %v at a stage that takes %d", text, err, most)
				}
			}
		}
		if err := (agent.Turn{Text: "fail", Legacy: true}).Play(t.Context(), &notes{most: 100}); err == nil ||
			err.Error() != "agent broke" {
			t.Errorf("fail ended with %v", err)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// TestStreamsOfAIP2CarryResults: wherever a task settles, a stream of AIP 2 has the whole task: a Leader reading no
// other event gets status and products. This holds in whatever way it is sent, after whatever event it resumes, and
// when the log has been trimmed.
func TestStreamsOfAIP2CarryResults(t *testing.T) {
	for name, configure := range map[string]func(*gateway.Config){
		"whole":   func(*gateway.Config) {},
		"trimmed": func(c *gateway.Config) { c.Partner.MaxEvents = 16 },
	} {
		t.Run(name, func(t *testing.T) {
			for way, run := range ways {
				bubble.Test(t, func(t *testing.T) {
					peer := identity.Peer{Proof: identity.ByToken, Kind: "test", ID: "leader"}
					g := newGateway(t, func(c *gateway.Config) {
						c.Callers, c.Partner.Agent = []translate.Server{aip.ServerV2("1.2.3")}, chatty{}
						c.Partner.MaxBytes, c.Limits.Bytes, c.Streaming.Patience = 8<<20, 1<<20, time.Minute
						configure(c)
					})
					f := &front{t: t, g: g, peer: peer, kind: "task-command"}
					s := f.send(t.Context(), "stream", "start")
					time.AfterFunc(5*time.Minute, func() { f.send(context.Background(), "rpc", "cancel") })
					r := &record{random: rand.New(rand.NewPCG(3, 4))}
					run(s, r)
					s.Close()
					synctest.Wait()
					lines := strings.Split(strings.TrimSpace(r.sent.String()), "\n")
					got, text := results(t, lines)
					states := []string{"accepted", "awaiting-input " + fmt.Sprint(len(text)), "canceled " + fmt.Sprint(len(text))}
					if diff := cmp.Diff(states, got); diff != "" {
						t.Errorf("%s (-want +got):\n%s", way, diff)
					}
					after := len(lines) - 5
					again := &record{}
					s = f.sendMessage(t.Context(), "stream", "re-stream", "t",
						fmt.Sprintf(`,"commandParams":{"lastEventSeq":%d}`, after))
					s.Run(again)
					s.Close()
					want, have := untimed(strings.Join(lines[after:], "\n")), untimed(strings.TrimSpace(again.sent.String()))
					if diff := cmp.Diff(want, have); diff != "" {
						t.Errorf("%s: after %d (-want +got):\n%.2000s", way, after, diff)
					}
				})
			}
		})
	}
}

var sentAt = regexp.MustCompile(`"sentAt":"[^"]*"`)

// untimed takes out the times of messages: a piece has the time of the stream's last state.
func untimed(lines string) string { return sentAt.ReplaceAllString(lines, "") }

// results returns the state and the length of the text of each TaskResult, and all chunks of the stream together.
func results(t *testing.T, lines []string) (found []string, text string) {
	for _, line := range lines {
		_, data, _ := strings.Cut(line, " ")
		var m struct {
			Result struct {
				EventData struct {
					Type          string
					Status        task.Status
					Products      []task.Product
					Product       task.Product
					StatusHistory []task.Status
				}
			}
		}
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			t.Fatalf("%.200s: %v", line, err)
		}
		switch e := &m.Result.EventData; e.Type {
		case "product-chunk":
			text += e.Product.DataItems[0].Text
		case "task-result":
			shown := string(e.Status.State)
			for _, p := range e.Products {
				shown += fmt.Sprintf(" %d", len(p.DataItems[0].Text))
				if p.DataItems[0].Text != text {
					t.Error("the product is not what the pieces were")
				}
			}
			if len(e.StatusHistory) > 0 {
				t.Error("a result has histories")
			}
			found = append(found, shown)
		}
	}
	return found, text
}

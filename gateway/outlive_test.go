// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
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

// unresumed is a dialect with callers that do not resume a stream.
type unresumed struct{ translate.Server }

func (unresumed) Numbered() bool { return true }

// TestCallsOutliveTheirConfiguration: if the configuration was replaced while a call was received, the call is refused
// in case the configuration in force refuses its caller.
// Promise: a Leader that is no longer allowed goes on
func TestCallsOutliveTheirConfiguration(t *testing.T) {
	for name, tc := range map[string]struct {
		allow    []identity.AIC // in the configuration in force
		taken    bool           // it does not have the caller's key
		gone     bool           // nor the Partner
		replaced bool
		want     string
	}{
		"in force":        {allow: []identity.AIC{"another"}, want: "reply awaiting-input"},
		"allowed":         {replaced: true, want: "reply awaiting-input"},
		"not allowed":     {replaced: true, allow: []identity.AIC{"another"}, want: "reply -32009"},
		"its key is gone": {replaced: true, taken: true, want: "reply -32008"},
		"without Partner": {replaced: true, gone: true, want: "reply awaiting-input"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				drain, replace := context.WithCancel(t.Context())
				defer replace()
				var process gateway.Process
				now := newGateway(t, func(c *gateway.Config) {
					c.Process, c.Guard = &process, &identity.Guard{Allow: tc.allow}
					c.Issues = func(kind identity.Kind, id string) bool {
						return !tc.taken || kind != "test" || id != "leader"
					}
				})
				before := newGateway(t, func(c *gateway.Config) {
					c.Process, c.Streaming.Drain = &process, drain
					c.InForce = func(partner string) []*gateway.Gateway {
						if partner != "agent" || tc.gone {
							return nil
						}
						return []*gateway.Gateway{now}
					}
				})
				f := &front{t: t, g: before, peer: identity.Peer{Proof: identity.ByToken, Kind: "test", ID: "leader"}}
				if tc.replaced {
					replace()
				}
				f.send(t.Context(), "rpc", "start")
				if diff := cmp.Diff([]string{tc.want}, f.seen); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}

				// so is a call that its front has decoded, as one of a group
				var q gateway.Request
				defer q.Release()
				_, err := before.Do(t.Context(), f.peer, &q, &gateway.Call{Dialect: "aip", Call: translate.Call{
					Call: task.Call{Message: task.Message{Command: task.Get, TaskID: "t", SenderID: "leader"}}}})
				want := map[string]task.Kind{"reply -32009": task.AuthorizationFailed,
					"reply -32008": task.AuthenticationRequired}[tc.want]
				if task.KindOf(err) != want || (err == nil) != (tc.want == "reply awaiting-input") {
					t.Errorf("the decoded call is answered by %v", err)
				}
			})
		})
	}
}

// TestStreamsOutliveTheirConfiguration: a stream not resumed by its caller goes on after a reload, unless the
// configuration in force refuses the caller.
// Promise: a Leader that is no longer allowed goes on
func TestStreamsOutliveTheirConfiguration(t *testing.T) {
	for name, tc := range map[string]struct {
		allow []identity.AIC // in the configuration in force
		gone  bool           // it does not have the Partner
		want  []string
	}{
		"allowed": {want: []string{"1 accepted", "2 working", "3 awaiting-input", "4 canceled"}},
		"not allowed": {allow: []identity.AIC{"another"},
			want: []string{"1 accepted", "2 working", "3 awaiting-input", "-32009"}},
		"gone": {gone: true, allow: []identity.AIC{"another"},
			want: []string{"1 accepted", "2 working", "3 awaiting-input", "4 canceled"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				var process gateway.Process
				before := newGateway(t, func(c *gateway.Config) {
					c.Process, c.Callers = &process, []translate.Server{unresumed{aip.Server()}}
					c.Streaming.Exit = t.Context()
				})
				now := newGateway(t, func(c *gateway.Config) {
					c.Process, c.Callers = &process, []translate.Server{unresumed{aip.Server()}}
					c.Guard = &identity.Guard{Allow: tc.allow}
				})
				peer := identity.Peer{Proof: identity.ByToken, Kind: "test", ID: "leader"}
				f := &front{t: t, g: before, peer: peer}
				s := f.send(t.Context(), "stream", "start")
				over := make(chan struct{})
				go func() {
					s.Run(f)
					s.Close()
					close(over)
				}()
				time.Sleep(2 * time.Second) // the agent has asked for input
				process.CutRefused(func(partner string) []*gateway.Gateway {
					if partner != "agent" || tc.gone {
						return nil
					}
					return []*gateway.Gateway{now}
				})
				synctest.Wait()
				(&front{t: t, g: before, peer: f.peer}).send(t.Context(), "rpc", "cancel")
				<-over
				if diff := cmp.Diff(tc.want, f.seen); diff != "" {
					t.Errorf("the stream (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// sending is a dialect's way of sending a message along with a webhook.
type sending struct {
	send, stream, list string
	version            []string
	message            func(task, text, config string) string // the params; config is the configuration
	config             func(id, url string) string
	listOf             func(task string) string
	configs            string // path of the configs in the answer to list
}

var sendings = map[string]sending{
	"a2a/1.0": {
		send: "SendMessage", stream: "SendStreamingMessage", list: "ListTaskPushNotificationConfigs",
		version: []string{"A2A-Version", "1.0"},
		message: func(task, text, config string) string {
			return fmt.Sprintf(`{"message":{"messageId":%q,"role":"ROLE_USER"%s,"parts":[{"text":%q}]}%s}`, text,
				ofTask(task), text, config)
		},
		config: func(id, url string) string {
			return fmt.Sprintf(`,"configuration":{"taskPushNotificationConfig":{"id":%q,"url":%q}}`, id, url)
		},
		listOf:  func(task string) string { return fmt.Sprintf(`{"taskId":%q}`, task) },
		configs: "result.configs.#.{id,url}",
	},
	"a2a/0.3": {
		send: "message/send", stream: "message/stream", list: "tasks/pushNotificationConfig/list",
		message: func(task, text, config string) string {
			return fmt.Sprintf(`{"message":{"kind":"message","messageId":%q,"role":"user"%s,"parts":[{"kind":"text","text":%q}`+
				`]}%s}`, text, ofTask(task), text, config)
		},
		config: func(id, url string) string {
			return fmt.Sprintf(`,"configuration":{"pushNotificationConfig":{"id":%q,"url":%q}}`, id, url)
		},
		listOf:  func(task string) string { return fmt.Sprintf(`{"id":%q}`, task) },
		configs: "result.#.pushNotificationConfig.{id,url}",
	},
}

func ofTask(id string) string {
	if id == "" {
		return ""
	}
	return fmt.Sprintf(`,"taskId":%q`, id)
}

// hooked is everyone, with webhooks on the loopback interface, too.
func hooked(h *setup) {
	everyone(h)
	h.webhooks = notify.Config{Egress: &egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		Dialects: func(w *task.Webhook, _ string) translate.Notifier {
			for _, s := range h.Callers {
				if s.Name() == w.Dialect {
					return s
				}
			}
			return nil
		}}
}

// TestWebhookConfirm: a webhook remembers whether its Partner's tasks wait to be confirmed, for its notifications to
// show them so.
func TestWebhookConfirm(t *testing.T) {
	for name, d := range sendings {
		for _, confirm := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s confirm=%t", name, confirm), func(t *testing.T) {
				notified := make(chan task.Webhook, 16)
				g := open(t, hooked, func(h *setup) {
					h.Confirm = confirm
					h.webhooks.Dialects = func(w *task.Webhook, _ string) translate.Notifier {
						notified <- *w
						return nil
					}
				})
				g.call(d.send, d.message("", "ask", d.config("mine", "http://127.0.0.1:1/")), d.version...)
				if w := <-notified; w.Confirm != confirm || w.Dialect != name {
					t.Errorf("the webhook is %+v", w)
				}
			})
		}
	}
}

// TestWebhookOfASend: a message may carry a webhook of the caller's own id, for creating or replacing it. A refused
// message leaves none behind and changes none.
func TestWebhookOfASend(t *testing.T) {
	for name, d := range sendings {
		for _, streams := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s stream=%t", name, streams), func(t *testing.T) {
				notified := make(chan string, 16)
				var seen sync.Map // deliveries under way while their webhook is replaced come again, under the same id
				sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					if _, again := seen.LoadOrStore(r.Header.Get("webhook-id"), true); again {
						return
					}
					body, err := io.ReadAll(r.Body)
					if err != nil {
						t.Error(err)
					}
					state := gjson.GetBytes(body, "status.state").String() + gjson.GetBytes(body,
						"task.status.state").String()
					notified <- r.URL.Path + " " + strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(state,
						"TASK_STATE_")), "_", "-")
				}))
				defer sink.Close()
				g := open(t, hooked)
				method := d.send
				if streams {
					method = d.stream
				}
				var id string
				start := func(config string) {
					_, body := g.call(d.send, d.message("", "ask", config), d.version...)
					id = gjson.Get(body, "result.id").String() + gjson.Get(body, "result.task.id").String()
				}
				check := func(when string, want ...string) {
					t.Helper()
					_, body := g.call(d.list, d.listOf(id), d.version...)
					var got []string
					for _, c := range gjson.Get(body, d.configs).Array() {
						got = append(got, c.Get("id").String()+" "+strings.TrimPrefix(c.Get("url").String(), sink.URL))
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("the webhooks %s (-want +got):\n%s\n%s", when, diff, body)
					}
				}
				hears := func(want ...string) {
					t.Helper()
					var got []string
					for range want {
						select {
						case one := <-notified:
							got = append(got, one)
						case <-time.After(2 * time.Minute):
							t.Fatalf("of %q there came %q only", want, got)
						}
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("the webhook hears (-want +got):\n%s", diff)
					}
				}
				goOn := func(config string) {
					t.Helper()
					if _, body := g.call(method, d.message(id, "more", config), d.version...); strings.Contains(body,
						`"error"`) {
						t.Fatalf("a message with %s is answered %s", config, body)
					}
				}
				refused := func(why, task, config string) {
					t.Helper()
					if _, body := g.call(method, d.message(task, "again", config),
						d.version...); !strings.Contains(body, `"error"`) {
						t.Errorf("%s is answered %s", why, body)
					}
				}
				start("")
				refused("a webhook that can never be reached", id, d.config("mine", "https://10.0.0.1/"))
				check("after one was refused")
				goOn(d.config("mine", sink.URL+"/one"))
				check("after one was created", "mine /one")
				hears("/one working", "/one completed") // from the first event of the message on

				start(d.config("mine", sink.URL+"/two"))
				hears("/two submitted", "/two working", "/two input-required")
				goOn(d.config("mine", sink.URL+"/three"))
				check("after it was replaced", "mine /three")
				hears("/three working", "/three completed")
				refused("a webhook of a task that has ended", id, d.config("mine", sink.URL+"/four"))
				refused("another webhook of a task that has ended", id, d.config("other", sink.URL+"/five"))
				check("of a task that has ended", "mine /three")

				refused("a webhook of a task that does not exist", "none", d.config("mine", sink.URL+"/six"))
				id = "none"
				check("of a task that does not exist")
			})
		}
	}
}

// TestWebhooksOfUnidentified: with identity off, a request about webhooks without a sender is not about the task of a
// logged-in caller, be it there or to come.
func TestWebhooksOfUnidentified(t *testing.T) {
	g := open(t, hooked)
	alice := identity.Peer{Proof: identity.ByToken, Kind: identity.AIDKind, ID: "alice.aid.test", Login: true}
	start := func(id string) error {
		var r gateway.Request
		defer r.Release()
		var c gateway.Call
		c.Message = task.Message{ID: "m", Command: task.Start, TaskID: id,
			DataItems: []task.DataItem{{Kind: task.TextItem, Text: "hello"}}}
		_, err := g.Front.gateway.Do(t.Context(), alice, &r, &c)
		return err
	}
	if err := start("t"); err != nil {
		t.Fatal(err)
	}
	log := g.Front.gateway.LogOf(alice.Leader(), "t")
	_, body := g.post("/agents/one/notification/set", `{"jsonrpc":"2.0","id":1,"method":"notification/set",`+
		`"params":{"taskId":"t","token":"t","url":"http://127.0.0.1:1/"}}`)
	if !strings.Contains(body, `"result"`) {
		t.Errorf("the webhook is refused: %s", body)
	}
	if _, err := g.store.Head(t.Context(), logname.OutboxOf(log)); !errors.Is(err, replay.ErrNotFound) {
		t.Errorf("the task of another caller has a webhook: %v", err)
	}
	_, body = g.post("/agents/one/notification/set", `{"jsonrpc":"2.0","id":1,"method":"notification/set",`+
		`"params":{"taskId":"later","token":"t","url":"http://127.0.0.1:1/"}}`)
	if !strings.Contains(body, `"result"`) {
		t.Errorf("the webhook is refused: %s", body)
	}
	if err := start("later"); err != nil {
		t.Errorf("the start is refused: %v", err)
	}
	log = g.Front.gateway.LogOf(alice.Leader(), "later")
	if _, err := g.store.Head(t.Context(), log); err != nil {
		t.Errorf("the task was not started: %v", err)
	}
	if _, err := g.store.Head(t.Context(), logname.OutboxOf(log)); !errors.Is(err, replay.ErrNotFound) {
		t.Errorf("the new task of another caller has a webhook: %v", err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestWildNotified has Leaders of AIP by rule be notified, by what they have set before the task, or during it.
func TestWildNotified(t *testing.T) {
	t.Parallel()
	runWild(t, wildNotified)
}

var wildNotified = []wildRow{
	notifiedRow("sets, sends `notification/start` without content, then starts by rpc", func(l *wildLeader) error {
		if err := l.subscribe(); err != nil {
			return err
		}
		_, err := l.rpc("start", "hello", nil)
		return err
	}, completedHello),
	notifiedRow("starts by rpc, then sets and sends `notification/start` without content", func(l *wildLeader) error {
		if err := l.started("ask", nil); err != nil {
			return err
		}
		if err := l.subscribe(); err != nil {
			return err
		}
		_, err := l.rpc("continue", "blue", nil)
		return err
	}, askedColour),
}

const wildToken = "token of the receiver"

// subscribe sets a webhook and starts it, without content.
func (l *wildLeader) subscribe() error {
	set, err := l.post("notification/set", "notification/set",
		site.Object{"url": l.receiver, "token": wildToken, "taskId": l.task})
	if err != nil {
		return err
	}
	var hook struct{ ID string }
	if err := json.Unmarshal(set, &hook); err != nil {
		return err
	}
	started, err := l.post("notification/start", "notification/start", site.Object{"message": l.command("start", "",
		site.Object{"commandParams": site.Object{"notificationConfigId": hook.ID}})})
	if text := string(started); err == nil && (text == "null" || text == "false" || text == "") {
		err = fmt.Errorf("notification/start is answered by %q", text)
	}
	return err
}

// notifiedRow is a row of a Leader that is notified until it can complete its task, and of its completion.
func notifiedRow(name string, begin func(*wildLeader) error, want wildEnd) wildRow {
	return aipRow{
		name: name,
		lead: func(l *wildLeader) error {
			got := make(chan wildResult, 100)
			receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var body wildResult
				if err := json.NewDecoder(r.Body).Decode(&body); err != nil ||
					r.Header.Get("X-ACPS-AIP-Notification-Token") != wildToken {
					http.Error(w, "no notification of ours", http.StatusUnauthorized)
					return
				}
				got <- body
			}))
			defer receiver.Close()
			l.receiver = receiver.URL
			if err := begin(l); err != nil {
				return err
			}
			for limit := time.After(site.Patience); ; {
				select {
				case r := <-got:
					if !settled(r.Status.State) {
						continue
					}
					if err := l.settledBy(&r, nil); err != nil || ended(r.Status.State) {
						return err
					}
					if _, err := l.rpc("complete", "", nil); err != nil {
						return err
					}
				case <-limit:
					return fmt.Errorf("it was notified of %q only", l.end.Settled)
				}
			}
		},
		want: want,
	}.row()
}

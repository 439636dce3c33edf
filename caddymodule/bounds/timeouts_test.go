// SPDX-License-Identifier: Apache-2.0

package bounds

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf/conftest"
	"github.com/aip-gateway/aip-gateway/task"
)

// readTimeouts reads timeouts as Caddy does.
func readTimeouts(t *testing.T, text string) (*Timeouts, error) {
	t.Helper()
	all := new(Timeouts)
	if err := json.Unmarshal([]byte(text), all); err != nil {
		t.Fatal(err)
	}
	all.FillDefaults()
	return all, all.Check()
}

// TestTimeouts: the terms of a task have what is set, and the defaults of what is not. A Leader may have a task wait
// for a month, or for as long as the settings do.
func TestTimeouts(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]struct {
		terms             task.Terms
		blocking, longest time.Duration
	}{
		`{}`: {task.Terms{Response: 25 * time.Second, AwaitingInput: day, AwaitingCompletion: day}, 10 * time.Minute,
			30 * day},
		`{"response":"1s","blocking":"2s","awaiting_input":"3s","awaiting_completion":"4s"}`: {task.Terms{
			Response: time.Second, AwaitingInput: 3 * time.Second, AwaitingCompletion: 4 * time.Second}, 2 * time.Second,
			30 * day},
		`{"awaiting_input":"31d"}`: {task.Terms{Response: 25 * time.Second, AwaitingInput: 31 * day,
			AwaitingCompletion: day}, 10 * time.Minute, 31 * day},
		`{"awaiting_completion":"32d"}`: {task.Terms{Response: 25 * time.Second, AwaitingInput: day,
			AwaitingCompletion: 32 * day}, 10 * time.Minute, 32 * day},
		`{"response":"90d","blocking":"90d"}`: {task.Terms{Response: 90 * day, AwaitingInput: day,
			AwaitingCompletion: day}, 90 * day, 30 * day},
	} {
		got, err := readTimeouts(t, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want.terms, got.Terms()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		if blocking := time.Duration(got.Blocking); blocking != want.blocking || got.MaxAwaiting() != want.longest {
			t.Errorf("%s: a blocking call waits %s, and a task at most %s", text, blocking, got.MaxAwaiting())
		}
	}
}

// TestTimeoutMistakes: what is said about each mistake.
func TestTimeoutMistakes(t *testing.T) {
	conftest.Refuses(t, map[string]string{
		`{"response":"-1s"}`:            "timeouts: response is -1s, but must not be negative",
		`{"blocking":"-1ms"}`:           "timeouts: blocking is -1ms, but must not be negative",
		`{"awaiting_input":"-1d"}`:      "timeouts: awaiting_input is -24h0m0s, but must not be negative",
		`{"awaiting_completion":"-1s"}`: "timeouts: awaiting_completion is -1s, but must not be negative",
	}, func(text string) error {
		_, err := readTimeouts(t, text)
		return err
	})
}

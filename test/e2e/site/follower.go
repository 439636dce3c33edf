// SPDX-License-Identifier: Apache-2.0

package site

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/sseproxy"
)

// Follower is a Leader that follows one task by stream and comes back whenever the stream breaks, and that
// checks its events: each one once, in order, and never with another content.
type Follower struct {
	*Caller
	Over   *http.Client // the one to use; default the caller's
	ID     string       // of the task
	Events []string     // eventData of the events 1, 2, …, as they came
	state  string       // that of the last status
	Cuts   int          // how often the stream broke

	Course  *Course       // of the load: each event is a step; nil for none
	Working chan struct{} // closed with the first piece of a product; nil if no test waits for it
}

// errGone says that the gateway no longer keeps the next events.
var errGone = errors.New("an error frame")

// StreamBody is a command over a stream.
func StreamBody(sender, command, id, text, params string) []byte {
	return AIPBody("stream", sender, command, id, text, params)
}

// RPCBody is a command without a stream.
func RPCBody(sender, command, id, text string) []byte {
	return AIPBody("rpc", sender, command, id, text, "")
}

// AIPBody is a command of AIP. params are further members of its message, each with a comma behind it.
func AIPBody(method, sender, command, id, text, params string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"id":%q,"params":{"message":{"type":"message","id":"m",`+
		`"senderRole":"leader","senderId":%q,"command":%q,%s"taskId":%q,"sessionId":"s",`+
		`"dataItems":[{"type":"text","text":%q}]}}}`, method, id, sender, command, params, id, text)
}

// FollowTo starts the task, or resumes its stream, and follows it until it is in a state.
func (f *Follower) FollowTo(ctx context.Context, text, state string) error {
	started := len(f.Events) > 0
	wait := 20 * time.Millisecond
	for f.state != state {
		before := len(f.Events)
		body := StreamBody(f.Sender, "start", f.ID, text, "")
		if started {
			body = StreamBody(
				f.Sender,
				"re-stream",
				f.ID,
				"",
				fmt.Sprintf(`"commandParams":{"lastEventSeq":%d},`, len(f.Events)),
			)
		}
		got, err := f.Once(ctx, body, state)
		started = started || got
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%s: after %d events, in state %q: %w (last: %v)", f.ID, len(f.Events), f.state, ctx.Err(), err)
		case errors.Is(err, errGone), errors.Is(err, errOtherwise):
			return fmt.Errorf("%s: %w", f.ID, err)
		case f.state != state:
			f.Cuts++
			if wait = min(2*wait, 2*time.Second); len(f.Events) > before {
				wait = 20 * time.Millisecond
			}
			select { // as a Leader would, and not all at once
			case <-time.After(wait/2 + rand.N(wait)):
			case <-ctx.Done():
			}
		}
	}
	return nil
}

var errOtherwise = errors.New("an event has another content than before")

// Once reads one stream until a state, or until it breaks. started says that the task exists.
func (f *Follower) Once(ctx context.Context, body []byte, state string) (started bool, _ error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.Mount+"/stream", bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	req.Header.Set("Content-Type", "application/json")
	client := f.Over
	if client == nil {
		client = f.HTTP
	}
	res, err := client.Do(req)
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		answer, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10))
		if strings.Contains(string(answer), "-32001") { // the start did not arrive before the crash
			return false, errors.New("no such task yet")
		}
		return false, fmt.Errorf("status %d: %s", res.StatusCode, answer)
	}
	reader := sseproxy.NewReader(res.Body, sseproxy.Limits{})
	for {
		ev, err := reader.Next()
		if err != nil {
			return started, err
		}
		var frame struct {
			ID     string
			Error  json.RawMessage
			Result struct {
				EventSeq  int
				EventData json.RawMessage
			}
		}
		if err := json.Unmarshal(ev.Data, &frame); err != nil {
			return started, fmt.Errorf("%w: %w", errOtherwise, err)
		}
		if frame.Error != nil {
			return started, fmt.Errorf("%w: %s", errGone, frame.Error)
		}
		started = true
		seq, data := frame.Result.EventSeq, string(frame.Result.EventData)
		switch {
		case frame.ID != f.ID || string(ev.ID) != fmt.Sprint(seq):
			return started, fmt.Errorf("%w: event %d has the ids %q and %q", errOtherwise, seq, frame.ID, ev.ID)
		case seq <= len(f.Events) && f.Events[seq-1] == data && bytes.Contains(body, []byte(`"command":"start"`)):
			// A repeated start replays all events.
		case seq != len(f.Events)+1:
			return started, fmt.Errorf("%w: event %d came after %d", errOtherwise, seq, len(f.Events))
		default:
			f.Events = append(f.Events, data)
			f.Course.step()
		}
		var event struct {
			Type   string
			Status struct{ State string }
		}
		if err := json.Unmarshal(frame.Result.EventData, &event); err != nil {
			return started, fmt.Errorf("%w: %w", errOtherwise, err)
		}
		if event.Status.State != "" {
			f.state = event.Status.State
		}
		if event.Type == "product-chunk" && f.Working != nil {
			close(f.Working)
			f.Working = nil
		}
		if f.state == state {
			return started, nil
		}
	}
}

// Text returns the text of the product that the chunks make.
func (f *Follower) Text() string {
	var b strings.Builder
	for _, data := range f.Events {
		var event struct {
			Type    string
			Append  bool
			Product struct {
				DataItems []struct{ Text string }
			}
		}
		if json.Unmarshal([]byte(data), &event) != nil || event.Type != "product-chunk" {
			continue
		}
		if !event.Append {
			b.Reset()
		}
		for _, it := range event.Product.DataItems {
			b.WriteString(it.Text)
		}
	}
	return b.String()
}

// SPDX-License-Identifier: Apache-2.0

package site

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/aip-gateway/aip-gateway/task"
)

// AllowHere lets webhooks reach the sinks of these tests.
const AllowHere = "allow_networks 127.0.0.0/8 ::1/128\n"

// Hook is AIP's NotificationConfig (v01.00 §6.3.1).
type Hook struct {
	ID     string `json:"id,omitempty"`
	URL    string `json:"url"`
	Token  string `json:"token"`
	TaskID string `json:"taskId"`
}

// refusedWith is an error that a request was answered with.
type refusedWith struct {
	Code int64           `json:"code"`
	Data json.RawMessage `json:"data"`
}

// notification sends a request of AIP's notification style, and returns its result or the error.
func (c *Caller) notification(method string, params any, header ...string) (json.RawMessage, *refusedWith) {
	c.T.Helper()
	body, err := json.Marshal(
		map[string]any{"jsonrpc": "2.0", "id": "1", "method": "notification/" + method, "params": params},
	)
	if err != nil {
		c.T.Fatal(err)
	}
	res, raw := c.Post("/notification/"+method, body, header...)
	var answer struct {
		ID     string          `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  *refusedWith    `json:"error"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil || res.StatusCode != 200 || answer.ID != "1" ||
		(answer.Result == nil) == (answer.Error == nil) {
		c.T.Fatalf("notification/%s was answered with status %d: %s", method, res.StatusCode, raw)
	}
	return answer.Result, answer.Error
}

// Granted is notification for what must not be refused.
func (c *Caller) Granted(method string, params any, header ...string) json.RawMessage {
	c.T.Helper()
	result, refusal := c.notification(method, params, header...)
	if refusal != nil {
		c.T.Fatalf("notification/%s of %+v: %d %s", method, params, refusal.Code, refusal.Data)
	}
	return result
}

// Denied demands that a request is refused with a code, and with words. It returns the error's data.
func (c *Caller) Denied(code int64, method string, params any) map[string]any {
	c.T.Helper()
	result, refusal := c.notification(method, params)
	if refusal == nil {
		c.T.Errorf("notification/%s of %+v is answered %s, want the error %d", method, params, result, code)
		return nil
	}
	members := Data(c.T, refusal.Data)
	if details, _ := members["details"].(string); refusal.Code != code || !strings.Contains(details, " ") {
		c.T.Errorf(
			"notification/%s of %+v is refused with %d %s, want %d and a sentence",
			method,
			params,
			refusal.Code,
			refusal.Data,
			code,
		)
	}
	return members
}

// SetHook creates or replaces a webhook, and returns it as it was answered.
func (c *Caller) SetHook(h Hook) Hook {
	c.T.Helper()
	var set Hook
	if err := json.Unmarshal(c.Granted("set", h), &set); err != nil {
		c.T.Fatal(err)
	}
	return set
}

// TrySet sets a webhook, and reports false where no answer came.
func (c *Caller) TrySet(h Hook) bool {
	body := fmt.Appendf(
		nil,
		`{"jsonrpc":"2.0","id":"1","method":"notification/set","params":{"url":%q,"token":%q,"taskId":%q}}`,
		h.URL,
		h.Token,
		h.TaskID,
	)
	ctx, cancel := context.WithTimeout(c.T.Context(), Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Mount+"/notification/set", bytes.NewReader(body))
	if err != nil {
		c.T.Error(err)
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := c.HTTP.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && !strings.Contains(string(answer), `"result":{"id":"notification-`) {
		c.T.Errorf("set of %s is answered %s", h.TaskID, answer)
	}
	if err == nil {
		c.Course.step()
	}
	return err == nil
}

// Hooks returns the webhooks of a task, or the one of an id.
func (c *Caller) Hooks(taskID, id string) []Hook {
	c.T.Helper()
	var hooks []Hook
	if err := json.Unmarshal(c.Granted("get", IDs(taskID, id)), &hooks); err != nil || hooks == nil {
		c.T.Fatalf("the webhooks are %v: %v", hooks, err)
	}
	return hooks
}

// IDs are the params of get and delete.
func IDs(taskID, id string) map[string]any {
	params := map[string]any{"taskId": taskID}
	if id != "" {
		params["notificationConfigId"] = id
	}
	return params
}

// BeginWithWebhook sets a webhook for a task and starts it. It returns the history of the task.
func BeginWithWebhook(c *Caller, id, url string) []task.Status {
	c.T.Helper()
	c.SetHook(Hook{URL: url, Token: "t", TaskID: id})
	c.Start(id, "hello")
	return c.Get(id).StatusHistory
}

// LeadWithWebhook is BeginWithWebhook, and then leads the task to its end.
func LeadWithWebhook(c *Caller, id, url string) []task.Status {
	c.T.Helper()
	BeginWithWebhook(c, id, url)
	c.GoOn(id, "more")
	c.Complete(id)
	return c.Get(id).StatusHistory
}

// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// webhookFlags are the flags of `caddy aip call <url> webhook`.
type webhookFlags struct{ id, token string }

func (f *webhookFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.id, "webhook", "", "webhook: its id (default for set: a new one; for get, delete: all)")
	flags.StringVar(&f.token, "token", "", "webhook set: the secret that notifications carry")
}

// webhookConfig is a webhook on the wire (AIP v01.00 §6.3.1).
type webhookConfig struct {
	ID     string `json:"id,omitempty"`
	TaskID string `json:"taskId"`
	URL    string `json:"url"`
	Token  string `json:"token,omitempty"`
}

// webhook returns the method and the parameters of the command webhook with its arguments.
func (f *callFlags) webhook(args []string) (method string, params any, err error) {
	if len(args) == 0 {
		return "", nil, errors.New("webhook needs set, get or delete")
	}
	verb, args := args[0], args[1:]
	switch {
	case f.task == "":
		err = fmt.Errorf("webhook %s needs --task", verb)
	case verb == "set" && (len(args) != 1 || f.webhooks.token == ""):
		err = errors.New("webhook set needs the webhook's URL and --token")
	case verb == "set":
		params = webhookConfig{ID: f.webhooks.id, TaskID: f.task, URL: args[0], Token: f.webhooks.token}
	case verb != "get" && verb != "delete":
		err = fmt.Errorf("unknown command %q; use webhook set, get or delete", verb)
	case len(args) > 0 || f.webhooks.token != "":
		err = fmt.Errorf("webhook %s takes --task and --webhook only", verb)
	default:
		params = struct {
			TaskID string `json:"taskId"`
			ID     string `json:"notificationConfigId,omitempty"`
		}{f.task, f.webhooks.id}
	}
	return "notification/" + verb, params, err
}

// sendWebhook sends a command about webhooks and prints the answer. The token is a secret, and not printed.
func (c *leaderCall) sendWebhook(ctx context.Context, method string, params any) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, c.wait())
	defer cancel()
	result, raw, err := c.client.Request(ctx, method, params)
	if err != nil {
		return 1, c.explain(err)
	}
	out := printer{w: c.cmd.OutOrStdout()}
	if c.json {
		return 0, out.raw(raw)
	}
	var list []webhookConfig
	switch method {
	case "notification/delete":
		out.line("webhook", "deleted")
		return 0, out.err
	case "notification/get":
		err = json.Unmarshal(result, &list)
	default:
		list = make([]webhookConfig, 1)
		err = json.Unmarshal(result, &list[0])
	}
	if err != nil {
		return 1, fmt.Errorf("the answer is no list of webhooks: %w", err)
	}
	for _, w := range list {
		out.line("webhook", joined(w.ID, w.URL))
	}
	if len(list) == 0 {
		out.line("webhook", "none")
	}
	return 0, out.err
}

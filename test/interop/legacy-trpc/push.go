// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"trpc.group/trpc-go/trpc-a2a-go/auth"
	"trpc.group/trpc-go/trpc-a2a-go/protocol"
	"trpc.group/trpc-go/trpc-a2a-go/taskmanager"
)

// pusher sends push notifications: the SDK's memory keeps their configurations and never uses them.
type pusher struct {
	tasks  *taskmanager.MemoryTaskManager
	signer *auth.PushNotificationAuthenticator
	form   string
}

var webhooks = &http.Client{Timeout: 10 * time.Second}

// notify posts the state of a task to the URL that was set for it, if any.
func (p *pusher) notify(ctx context.Context, id string) error {
	p.tasks.PushNotificationsMutex.RLock()
	config, wanted := p.tasks.PushNotifications[id]
	p.tasks.PushNotificationsMutex.RUnlock()
	if !wanted {
		return nil
	}
	body, err := p.body(id)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, config.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if config.Token != "" {
		r.Header.Set("X-A2A-Notification-Token", config.Token)
	}
	if config.Authentication != nil && config.Authentication.Credentials != nil {
		r.Header.Set("Authorization", "Bearer "+*config.Authentication.Credentials)
	} else {
		signed, err := p.signer.CreateAuthorizationHeader(body)
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", signed)
	}
	res, err := webhooks.Do(r)
	if err != nil {
		return err
	}
	return res.Body.Close()
}

// body is what is posted. v0.1 never settled on one form, so that there are three in the field.
func (p *pusher) body(id string) ([]byte, error) {
	p.tasks.TasksMutex.RLock()
	task := *p.tasks.Tasks[id]
	p.tasks.TasksMutex.RUnlock()
	switch p.form {
	case "notifyEvent": // a JSON-RPC notification, as this SDK's Redis driver sends
		return json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "tasks/notifyEvent", "params": map[string]any{
			"id": id, "eventType": "task_status_update", "event": protocol.TaskStatusUpdateEvent{ID: id, Status: task.Status},
		}})
	case "taskUpdate": // the specification's example
		return json.Marshal(map[string]any{"eventType": "taskUpdate", "taskId": id, "status": task.Status})
	}
	return json.Marshal(task) // the whole task, as the first samples did
}

// SPDX-License-Identifier: Apache-2.0

package partner

import "fmt"

// Version is the words of a version of AIP.
type Version struct {
	V2      bool
	Member  string // of params with the command, in rpc
	Command string // the type of a command
	Task    string // the type of a Task
	TaskID  string // the member of a Task with its id
	Update  string // the type of an event with a status
	History string
	Since   string
	Timeout string
}

var (
	v1 = Version{false, "message", "message", "task", "id", "status-update", "messageHistory", "lastMessageSentAt",
		"responseTimeout"}
	v2 = Version{true, "command", "task-command", "task-result", "taskId", "task-status-update", "commandHistory",
		"lastCommandSentAt", "timeout"}
)

// message puts what all messages of v02 have into an object.
func (p *Partner) message(t *Task, object Object) Object {
	if t.Version.V2 {
		p.serial++
		object["id"] = fmt.Sprintf("msg-%d", p.serial)
		object["sentAt"] = p.stamp(p.Now())
		object["senderRole"] = "partner"
		object["senderId"] = p.AIC
	}
	return object
}

// object returns a Task as it goes out. The caller has the lock.
func (p *Partner) object(t *Task, histories bool) Object {
	o := Object{"type": t.Version.Task, t.Version.TaskID: t.ID, "sessionId": t.Session, "status": clone(t.Status),
		"products": clone(t.Products)}
	o = p.message(t, o)
	if t.Version.V2 {
		o["taskId"] = t.ID
	} else {
		o["id"] = t.ID
	}
	if histories {
		o[t.Version.History], o["statusHistory"] = clone(list(t.Messages)), clone(list(t.Statuses))
	}
	if p.Result != nil {
		p.Result(t, o)
	}
	return o
}

func list[T any](values []T) []any {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	return all
}

// clone copies a value of JSON.
func clone(v any) any {
	switch v := v.(type) {
	case Object:
		copied := make(Object, len(v))
		for name, member := range v {
			copied[name] = clone(member)
		}
		return copied
	case []any:
		copied := make([]any, len(v))
		for i, element := range v {
			copied[i] = clone(element)
		}
		return copied
	}
	return v
}

func card(aic string) Object {
	return Object{"aic": aic, "active": true, "lastModifiedTime": "2026-01-01T00:00:00+08:00", "protocolVersion": "01.00",
		"name": "Small Partner", "description": "A Partner in memory", "version": "1.0.0",
		"provider": Object{"countryCode": "CN", "organization": "Example", "department": "Tests",
			"url": "https://partner.example", "license": "none"},
		"securitySchemes": Object{"mtls": Object{"type": "mutualTLS",
			"x-caChallengeBaseUrl": "https://partner.example/challenge"}},
		"endPoints": []any{Object{"url": "https://partner.example/rpc", "transport": "JSONRPC",
			"security": []any{Object{"mtls": []any{}}}}},
		"capabilities":      Object{"streaming": true, "notification": true, "messageQueue": []any{}},
		"defaultInputModes": []any{"text/plain"}, "defaultOutputModes": []any{"text/plain"},
		"skills": []any{Object{"id": "test.echo.repeat", "name": "Echo", "description": "Repeats a text",
			"version": "1.0.0", "tags": []any{"test"}}}}
}

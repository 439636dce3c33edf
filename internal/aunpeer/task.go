// SPDX-License-Identifier: Apache-2.0

package aunpeer

import (
	"context"
	"encoding/json"
)

// Task is a task of AUN, as far as the texts name its members.
type Task struct {
	TaskID       string     `json:"task_id"`
	Status       string     `json:"status"`
	Owner        string     `json:"owner,omitempty"`
	Assignee     string     `json:"assignee,omitempty"`
	Participants []string   `json:"participants,omitempty"`
	Visibility   string     `json:"visibility,omitempty"`
	ParentTaskID string     `json:"parent_task_id,omitempty"`
	Input        *Content   `json:"input,omitempty"`
	Artifacts    []Artifact `json:"artifacts,omitempty"`
	Messages     []Message  `json:"messages,omitempty"`
	Message      *Content   `json:"message,omitempty"` // the assignee's words with the status
	Reason       string     `json:"reason,omitempty"`
	Children     []Task     `json:"children,omitempty"`
	CreatedAt    string     `json:"created_at,omitempty"`
	UpdatedAt    string     `json:"updated_at,omitempty"`
}

// Content is an input, or the message of an event.
type Content struct {
	Type    string `json:"type"`
	Content any    `json:"content"`
}

// Text returns a content with a text.
func Text(s string) Content { return Content{"text", s} }

// String returns the text of a content, empty for another content.
func (c *Content) String() string {
	if c == nil {
		return ""
	}
	s, _ := c.Content.(string)
	return s
}

// Message is one of the context messages of a task.
type Message struct {
	From string `json:"from,omitempty"`
	Content
}

// Artifact is a product of a task.
type Artifact struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Name     string `json:"name,omitempty"`
	MIMEType string `json:"mime_type,omitempty"`
	Content  any    `json:"content"`
}

// TaskEvent has the parameters of the events of tasks.
type TaskEvent struct {
	Task
	Artifact  *Artifact `json:"artifact,omitempty"`
	Append    bool      `json:"append,omitempty"`
	LastChunk bool      `json:"last_chunk,omitempty"`
	Child     *Task     `json:"child,omitempty"`
	Seq       int       `json:"seq,omitempty"` // identifies an event sent again
}

// Do makes a call, and reads its result into a Task.
func (c *Conn) Do(ctx context.Context, method string, params any) (Task, error) {
	var t Task
	result, err := c.Call(ctx, method, params)
	if err == nil {
		err = json.Unmarshal(result, &t)
	}
	return t, err
}

// Create creates a task.
func (c *Conn) Create(ctx context.Context, to, text string) (Task, error) {
	return c.Do(ctx, "task.create", map[string]any{"to": to, "input": Text(text), "visibility": "private"})
}

// Subscribe subscribes to all events of tasks, and returns the ids of the subscribed ones.
func (c *Conn) Subscribe(ctx context.Context, ids ...string) ([]string, error) {
	result, err := c.Call(ctx, "task.subscribe", map[string]any{"task_ids": ids})
	var got struct{ Subscribed []string }
	if err == nil {
		err = json.Unmarshal(result, &got)
	}
	return got.Subscribed, err
}

// TaskEvent waits for the next event of a task with this method and, if status is not empty, status. Other events are
// dropped.
func (c *Conn) TaskEvent(ctx context.Context, method, id, status string) (TaskEvent, error) {
	var ev TaskEvent
	_, err := c.Event(ctx, func(f Frame) bool {
		var is TaskEvent
		if f.Method != method || json.Unmarshal(f.Params, &is) != nil || is.TaskID != id {
			return false
		}
		ev = is
		return status == "" || is.Status == status
	})
	return ev, err
}

// Ended reports whether a status is final.
func Ended(status string) bool {
	switch status {
	case "rejected", "completed", "failed", "canceled":
		return true
	}
	return false
}

// SPDX-License-Identifier: Apache-2.0

// Package agent is what the agents here have in common: what they do on which message, and how they are started.
//
// An agent does what the first word of a message says:
//
//	echo X          an artifact that says "echo: X"
//	stream N [MS]   an artifact in N chunks, one every MS milliseconds (default 100)
//	slow SECS       works for so long and reports every second
//	ask             asks for a colour; whatever is said next completes the task
//	fail            fails
//	file            an artifact with a file
//	data            an artifact with structured data
//	auth            asks to log in; whatever is said next completes the task
//	reject          rejects the task
//	msg X           a message instead of a task
//
// Anything else is echoed. The last three came with A2A v0.2. The prefixes of A2A's own tests, such as
// tck-complete-task, stand for some of them; see behaviors.
package agent

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// State is the state of a task, as A2A v0.3 writes it.
type State string

// The states that a script puts a task in.
const (
	Working       State = "working"
	InputRequired State = "input-required"
	AuthRequired  State = "auth-required"
	Completed     State = "completed"
	Failed        State = "failed"
	Rejected      State = "rejected"
)

// Rests reports whether nothing more comes in the turn that led to the state.
func (s State) Rests() bool { return s != Working }

// Chunk is a piece of an artifact.
type Chunk struct {
	Name        string // of the artifact
	Part        Part
	First, Last bool // of the artifact's chunks; the others are appended to the first
}

// Part is what a chunk holds: a file, else data, else text.
type Part struct {
	Text string
	Data map[string]any
	File *File
}

// File is a file with its content.
type File struct {
	Name, MediaType string
	Bytes           []byte
}

// Stage is where a turn is played: one task at one SDK. An error of any of its methods ends the turn.
type Stage interface {
	// Begin is called once, before anything else happens to the task, and not at all before a Message.
	Begin() error
	// Status puts the task in a state; text is what the agent says about it, or empty.
	Status(s State, text string) error
	// Artifact hands over a piece of an artifact.
	Artifact(c Chunk) error
	// Message answers without a task.
	Message(text string) error
}

// behaviors are the prefixes of A2A's own tests (ACTS §11.2), and what an agent does on them. No agent has a file with
// a URL.
var behaviors = map[string]string{
	"tck-complete-task": "echo", "tck-input-required": "ask", "tck-reject-task": "reject",
	"tck-message-response": "msg", "tck-artifact-text": "echo", "tck-artifact-file": "file",
	"tck-artifact-data": "data", "tck-long-running": "slow 5", "tck-multi-turn": "ask", "tck-cancel": "slow 300",
	"tck-stream-basic": "stream 1", "tck-stream-chunked": "stream 3", "tck-task-failure": "fail",
	"tck-auth-required": "auth",
}

// Turn is one message to the agent.
type Turn struct {
	Text    string
	Waiting bool // the task is in InputRequired or AuthRequired
	Legacy  bool // what A2A v0.1 has no words for is echoed, and an SDK gets a failure as an error
}

// What is asked for over the network is bounded, so that no message keeps an agent busy for ever.
const (
	maxChunks = 10_000
	maxPause  = time.Minute
	maxTicks  = 3600
)

// Play carries the turn out. It returns the stage's error, or the context's when that ended.
func (t Turn) Play(ctx context.Context, stage Stage) error {
	word, rest, _ := strings.Cut(strings.TrimSpace(t.Text), " ")
	if behavior := behaviors[word]; behavior != "" {
		word, rest, _ = strings.Cut(behavior+" "+rest, " ")
	}
	if t.Legacy && (word == "msg" || word == "auth" || word == "reject") {
		word = ""
	}
	if word == "msg" && !t.Waiting {
		return stage.Message("direct: " + rest)
	}
	if err := stage.Begin(); err != nil {
		return err
	}
	if t.Waiting {
		return whole(stage, "answer", Part{Text: "you said: " + t.Text}, "done")
	}
	switch word {
	case "stream":
		return stream(
			ctx,
			stage,
			number(rest, 0, 3, maxChunks),
			time.Duration(number(rest, 1, 100, int(maxPause.Milliseconds())))*time.Millisecond,
		)
	case "slow":
		return slow(ctx, stage, number(rest, 0, 10, maxTicks))
	case "ask":
		return stage.Status(InputRequired, "which colour?")
	case "auth":
		return stage.Status(AuthRequired, "log in at https://login.example/")
	case "reject":
		return stage.Status(Rejected, "not my job")
	case "fail":
		if t.Legacy {
			return errors.New("agent broke")
		}
		return stage.Status(Failed, "agent broke")
	case "file":
		return whole(
			stage,
			"file",
			Part{File: &File{Name: "hello.txt", MediaType: "text/plain", Bytes: []byte("hello\n")}},
			"ok",
		)
	case "data":
		return whole(stage, "data", Part{Data: map[string]any{"colour": "blue", "parts": []any{1, 2, 3}}}, "ok")
	case "echo":
		return whole(stage, "echo", Part{Text: "echo: " + rest}, "ok")
	}
	return whole(stage, "echo", Part{Text: "echo: " + t.Text}, "ok")
}

// whole completes the task with an artifact in one piece.
func whole(stage Stage, name string, part Part, text string) error {
	if err := stage.Artifact(Chunk{Name: name, Part: part, First: true, Last: true}); err != nil {
		return err
	}
	return stage.Status(Completed, text)
}

func stream(ctx context.Context, stage Stage, chunks int, every time.Duration) error {
	for i := range chunks {
		if err := pause(ctx, every); err != nil {
			return err
		}
		c := Chunk{Name: "out", Part: Part{Text: fmt.Sprintf("chunk-%d ", i)}, First: i == 0, Last: i == chunks-1}
		if err := stage.Artifact(c); err != nil {
			return err
		}
	}
	return stage.Status(Completed, "streamed")
}

func slow(ctx context.Context, stage Stage, seconds int) error {
	for i := range seconds {
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
		if err := stage.Status(Working, fmt.Sprintf("tick %d", i)); err != nil {
			return err
		}
	}
	return stage.Status(Completed, "slow done")
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// number returns the word at an index as a number from 0 to most, or otherwise where there is none.
func number(words string, index, otherwise, most int) int {
	fields := strings.Fields(words)
	if index >= len(fields) {
		return otherwise
	}
	n, err := strconv.Atoi(fields[index])
	if err != nil || n < 0 {
		return otherwise
	}
	return min(n, most)
}

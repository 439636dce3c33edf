// SPDX-License-Identifier: Apache-2.0

package aunpeer

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Work is a task carried out by a script. Its methods return an error when the task has ended otherwise, or its context
// has.
type Work interface {
	Accept(ctx context.Context) error
	Reject(ctx context.Context, reason string) error
	Ask(ctx context.Context, question string) (answer string, err error)
	Piece(ctx context.Context, a Artifact, last bool) error // a text to append to the artifact
	Complete(ctx context.Context, artifacts ...Artifact) error
	Fail(ctx context.Context, reason string) error
}

// Delegator is a Work able to delegate a part of its task.
type Delegator interface {
	Delegate(ctx context.Context, to, text string) error
}

// Run carries out the script named by a text, as the sample agent does: ask, fail, file, data, "slow ms", "stream n
// ms", whatever follows, and further reject, "late-reject ms", and "delegate aid text". Any other text is echoed.
func Run(ctx context.Context, text string, w Work) error {
	verb, rest, _ := strings.Cut(text, " ")
	switch verb {
	case "reject":
		return w.Reject(ctx, "unsupported_scope")
	case "late-reject":
		if err := wait(ctx, rest); err != nil {
			return err
		}
		return w.Reject(ctx, "unsupported_scope")
	}
	if err := w.Accept(ctx); err != nil {
		return err
	}
	switch verb {
	case "ask":
		answer, err := w.Ask(ctx, "which colour?")
		if err != nil {
			return err
		}
		return w.Complete(ctx, textArtifact("answer", "you said: "+answer))
	case "fail":
		return w.Fail(ctx, "agent broke")
	case "file":
		return w.Complete(ctx, Artifact{ID: "artifact-file", Type: "multipart", Name: "file", Content: []Artifact{
			{Type: "file", Name: "hello.txt", MIMEType: "text/plain", Content: "data:text/plain;base64,aGVsbG8K"}}})
	case "data":
		return w.Complete(ctx, Artifact{ID: "artifact-data", Type: "json",
			Content: json.RawMessage(`{"colour":"blue","parts":[1,2,3]}`)})
	case "slow":
		ms, _, _ := strings.Cut(rest, " ")
		if err := wait(ctx, ms); err != nil {
			return err
		}
		return w.Complete(ctx, textArtifact("slow", "slow done"))
	case "stream":
		count, pause, _ := strings.Cut(rest, " ")
		pause, _, _ = strings.Cut(pause, " ")
		n, err := strconv.Atoi(count)
		if err != nil {
			return w.Fail(ctx, "how many pieces?")
		}
		var whole strings.Builder
		for i := range n {
			piece := fmt.Sprintf("chunk-%d ", i)
			whole.WriteString(piece)
			if err := w.Piece(ctx, textArtifact("out", piece), i == n-1); err != nil {
				return err
			}
			if err := wait(ctx, pause); err != nil {
				return err
			}
		}
		return w.Complete(ctx, textArtifact("out", whole.String()))
	}
	if d, ok := w.(Delegator); ok && verb == "delegate" {
		to, part, _ := strings.Cut(rest, " ")
		if err := d.Delegate(ctx, to, part); err != nil {
			return err
		}
	}
	return w.Complete(ctx, textArtifact("echo", "echo: "+text))
}

// wait waits for a number of milliseconds.
func wait(ctx context.Context, ms string) error {
	n, err := strconv.Atoi(ms)
	if err != nil || n == 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(time.Duration(n) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func textArtifact(name, text string) Artifact {
	return Artifact{ID: "artifact-" + name, Type: "text", Name: name, MIMEType: "text/plain", Content: text}
}

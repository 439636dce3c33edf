// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long any program may take. Nothing is measured by it: it only keeps a broken one from hanging a test.
const patience = 3 * time.Minute

// program is a command line: a name in bin, or node and a file.
type program []string

func (p program) with(args ...string) program { return append(p[:len(p):len(p)], args...) }

// command returns the command, which ends with the test at the latest.
func (p program) command(t *testing.T) *exec.Cmd {
	t.Helper()
	name, args := p[0], p[1:]
	if name != "node" {
		name = filepath.Join(bin, name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// start runs an agent and returns its URL.
func (p program) start(t *testing.T) string {
	t.Helper()
	cmd := p.command(t)
	cmd.Args = append(cmd.Args, "-addr", "127.0.0.1:0")
	said := new(lockedBuffer)
	cmd.Stderr = said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() // it may have ended by itself
		cmd.Wait()
		if t.Failed() {
			t.Logf("what %q said:\n%s", cmd.Args, said)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	address, ready := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ready {
		t.Fatalf("%q said %q (%v)", cmd.Args, line, err)
	}
	return "http://" + address
}

// lockedBuffer is the output of a process, to be read while it runs.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// line is what a client prints for a result or an event, as far as it is of interest here, in any protocol.
type line struct {
	Kind      string     `json:"kind"`
	ID        string     `json:"id"`
	TaskID    string     `json:"taskId"`
	Name      string     `json:"name"`
	URL       string     `json:"url"`
	Status    status     `json:"status"`
	Artifacts []artifact `json:"artifacts"`
	Artifact  artifact   `json:"artifact"`
	Parts     []part     `json:"parts"`
	Tasks     []line     `json:"tasks"`
	Push      struct {
		ID  string `json:"id"`
		URL string `json:"url"`
	} `json:"pushNotificationConfig"`
}

type status struct {
	State   string `json:"state"`
	Message struct {
		Parts []part `json:"parts"`
	} `json:"message"`
}

type artifact struct {
	Name  string `json:"name"`
	Parts []part `json:"parts"`
}

type part struct {
	Text string          `json:"text"`
	Data json.RawMessage `json:"data"`
	Raw  string          `json:"raw"`
	File struct {
		Bytes string `json:"bytes"`
	} `json:"file"`
}

// task returns the id of the task that the line is about.
func (l line) task() string {
	if l.TaskID != "" {
		return l.TaskID
	}
	return l.ID
}

// view is what a line shows: the state as A2A v0.3 writes it, what the agent says, and what the artifacts hold.
type view struct{ Kind, State, Says, Holds string }

func (l line) view() view {
	state := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(l.Status.State, "TASK_STATE_")), "_", "-")
	holds := content(l.Artifact.Parts)
	for _, a := range l.Artifacts {
		holds += content(a.Parts)
	}
	return view{l.Kind, state, content(l.Status.Message.Parts) + content(l.Parts), holds}
}

func content(parts []part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text + sorted(p.Data) + p.Raw + p.File.Bytes)
	}
	return b.String()
}

// sorted returns JSON whose members are sorted: over gRPC they have no order.
func sorted(data json.RawMessage) string {
	var v any
	if json.Unmarshal(data, &v) != nil {
		return string(data)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return string(data)
	}
	return string(text)
}

func parse(t *testing.T, b []byte) line {
	t.Helper()
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		t.Fatalf("a client printed %q: %v", b, err)
	}
	return l
}

// call runs a client to its end, which must be a good one, and returns what it printed.
func (p program) call(t *testing.T, args ...string) []line {
	t.Helper()
	out, said, err := p.try(t, args...)
	if err != nil {
		t.Fatalf("%q: %v: %s", p.with(args...), err, said)
	}
	return out
}

// one runs a client that prints one line.
func (p program) one(t *testing.T, args ...string) line {
	t.Helper()
	lines := p.call(t, args...)
	if len(lines) != 1 {
		t.Fatalf("%q printed %d lines: %+v", p.with(args...), len(lines), lines)
	}
	return lines[0]
}

// try runs a client to its end and returns what it printed and said.
func (p program) try(t *testing.T, args ...string) ([]line, string, error) {
	t.Helper()
	cmd := p.with(args...).command(t)
	var said strings.Builder
	cmd.Stderr = &said
	b, err := cmd.Output()
	var out []line
	for l := range bytes.Lines(b) {
		out = append(out, parse(t, l))
	}
	return out, said.String(), err
}

// follow starts a client that prints a stream, and returns its lines as they come; they end with the client.
func (p program) follow(t *testing.T, args ...string) *following {
	t.Helper()
	cmd := p.with(args...).command(t)
	said := new(lockedBuffer)
	cmd.Stderr = said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() // it may have ended by itself
		cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	return &following{t: t, lines: lines, said: said}
}

// following is a client that prints a stream. One test reads it.
type following struct {
	t     *testing.T
	lines *bufio.Scanner
	said  *lockedBuffer
}

// next returns the next line; the stream must continue.
func (f *following) next() line {
	f.t.Helper()
	if !f.lines.Scan() {
		f.t.Fatalf("the stream ended (%v): %s", f.lines.Err(), f.said)
	}
	return parse(f.t, f.lines.Bytes())
}

// until reads on until a line with the state.
func (f *following) until(state string) line {
	f.t.Helper()
	for {
		if l := f.next(); l.view().State == state {
			return l
		}
	}
}

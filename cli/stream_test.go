// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// taskWith serves a Partner with the task t1 and statuses, one a second from 12:00:00 +08:00 on, as its events. It
// leaves a stream of an unfinished task open.
func taskWith(t *testing.T, statuses ...string) (url string) {
	t.Helper()
	at := func(i int) string {
		return fmt.Sprintf(`{"state":%q,"stateChangedAt":"2025-09-01T12:00:%02d+08:00"}`, statuses[i], i)
	}
	last := len(statuses) - 1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		request := gjson.ParseBytes(body)
		reply := func(result string) string {
			return `{"jsonrpc":"2.0","id":` + request.Get("id").Raw + `,"result":` + result + `}`
		}
		id := request.Get("params.message.taskId").Str
		switch {
		case id != "t1":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, request.Get("id").Raw, notFound)
		case r.URL.Path == "/rpc":
			io.WriteString(w, reply(`{"type":"task","id":"t1","sessionId":"s","status":`+at(last)+`}`))
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range statuses {
				event := `{"type":"status-update","taskId":"t1","status":` + at(i) + `}`
				if i == 0 {
					event = `{"type":"task","id":"t1","sessionId":"s","status":` + at(i) + `}`
				}
				if i+1 > int(request.Get("params.message.commandParams.lastEventSeq").Int()) {
					fmt.Fprintf(w, "data: %s\n\n", reply(fmt.Sprintf(`{"eventSeq":%d,"eventData":%s}`, i+1, event)))
				}
			}
			w.(http.Flusher).Flush()
			if statuses[last] != "completed" {
				<-r.Context().Done()
			}
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// printedEvent is the line printed for an event of taskWith.
func printedEvent(n int, state string) string {
	return fmt.Sprintf("state     %s since 2025-09-01T12:00:%02d+08:00", state, n-1)
}

// A stream with a history ends at the current state of the task, and the next command is named for that state.
func TestStreamEndsAtTheCurrentState(t *testing.T) {
	t.Chdir(t.TempDir())
	lines := func(s ...string) string { return strings.Join(s, "\n") + "\n" }
	head := lines("task      t1  (event 1)", "session   s", printedEvent(1, "accepted"))
	history := []string{"accepted", "working", "awaiting-input", "working", "awaiting-completion", "completed"}
	for _, tt := range []struct {
		name     string
		statuses []string
		args     []string
		want     commandResult
	}{
		{"completed", history, []string{"re-stream"}, commandResult{0, head + lines(
			printedEvent(2, "working")+"  (event 2)", printedEvent(3, "awaiting-input")+"  (event 3)",
			printedEvent(4, "working")+"  (event 4)", printedEvent(5, "awaiting-completion")+"  (event 5)",
			printedEvent(6, "completed")+"  (event 6)"), ""}},
		{"finished", history[:5], []string{"re-stream", "--after", "2"}, commandResult{0, lines(
			printedEvent(3, "awaiting-input")+"  (event 3)", printedEvent(4, "working")+"  (event 4)",
			printedEvent(5, "awaiting-completion")+"  (event 5)",
			"next      complete, continue or cancel, with --task t1"), ""}},
		{"needs input", history[:3], []string{"re-stream"}, commandResult{0, head + lines(
			printedEvent(2, "working")+"  (event 2)", printedEvent(3, "awaiting-input")+"  (event 3)",
			"next      continue or cancel, with --task t1"), ""}},
		{"no further events", history, []string{"re-stream", "--after", "6"}, commandResult{0, lines(
			printedEvent(6, "completed")), ""}},
		{"started again", history[:3], []string{"stream", "hello"}, commandResult{0, lines(
			"task      t1", "session   s  (event 1)", printedEvent(1, "accepted"),
			printedEvent(2, "working")+"  (event 2)", printedEvent(3, "awaiting-input")+"  (event 3)",
			"next      continue or cancel, with --task t1"),
			"The task t1 exists already: start changes nothing, and the agent gets no message; " +
				"send the message with continue.\n"}},
		{"start again", history, []string{"start", "hello"}, commandResult{0, lines(
			"task      t1", "session   s", printedEvent(6, "completed")),
			"The task t1 exists already: start changes nothing, and the agent gets no message; " +
				"it has ended, so choose another --task.\n"}},
		{"continue", history[:3], []string{"continue", "blue"}, commandResult{0, lines(
			"task      t1", "session   s", printedEvent(3, "awaiting-input"),
			"next      continue or cancel, with --task t1"), ""}},
		{"continue at work", history[:2], []string{"continue", "blue"}, commandResult{0, lines(
			"task      t1", "session   s", printedEvent(2, "working"), "next      get or cancel, with --task t1"),
			"The task t1 is working: continue changes nothing, and the agent gets no message; " +
				"wait until the agent finishes or needs input: re-stream waits.\n"}},
		{"continue at the end", history, []string{"continue", "blue"}, commandResult{0, lines(
			"task      t1", "session   s", printedEvent(6, "completed")),
			"The task t1 has ended: continue changes nothing, and the agent gets no message; start another one.\n"}},
	} {
		url := taskWith(t, tt.statuses...)
		args := append([]string{"call", url, tt.args[0], "--task", "t1", "--sender", "L"}, tt.args[1:]...)
		if diff := cmp.Diff(tt.want, runAIP(t, args...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// A command that is interrupted, or gives up, prints the command to continue, with the connection of its own.
func TestCallPrintsHowToContinue(t *testing.T) {
	t.Chdir(t.TempDir())
	streaming := taskWith(t, "accepted", "working")
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer silent.Close()
	const sender = " --sender 'the Leader'"
	for _, tt := range []struct {
		name   string
		args   []string
		until  string // the output after which the command is interrupted; empty for none
		status int
		resume string
	}{
		{"stream", []string{streaming, "re-stream", "--task", "t1", "--follow"}, "(event 2)", exitInterrupted,
			"this resumes the stream:\n  " + os.Args[0] + " aip call " + streaming +
				" re-stream --task t1 --after 2 --follow" + sender},
		{"stream in JSON", []string{streaming, "re-stream", "--task", "t1", "--json"}, `"eventSeq":2`, exitInterrupted,
			" re-stream --task t1 --after 2 --json" + sender},
		{"stream without an answer", []string{silent.URL, "stream", "x", "--timeout", "1s"}, "", 1,
			"if the task was started, this prints its events:\n  "},
		{"start", []string{silent.URL, "start", "x", "--timeout", "1s"}, "", 1,
			"if the task was started, this prints it:\n  " + os.Args[0] + " aip call " + silent.URL + " get --task task-"},
		{"continue", []string{silent.URL, "continue", "--task", "t 1", "--timeout", "1s"}, "", 1,
			" get --task 't 1'" + sender},
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		out := &waitingWriter{until: tt.until, then: interrupt}
		var errOut bytes.Buffer
		args := append([]string{"call"}, tt.args...)
		status := runAIPWith(ctx, out, &errOut, append(args, "--sender", "the Leader")...)
		interrupt()
		if status != tt.status || !strings.Contains(errOut.String(), tt.resume) {
			t.Errorf("%s: status %d, %swant %s", tt.name, status, errOut.String(), tt.resume)
		}
		if tt.status == exitInterrupted && !strings.HasPrefix(errOut.String(), "Error: interrupted\n") {
			t.Errorf("%s: %s", tt.name, errOut.String())
		}
	}
}

// waitingWriter calls a function when a text was written.
type waitingWriter struct {
	bytes.Buffer
	until string
	then  func()
}

func (w *waitingWriter) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if w.until != "" && strings.Contains(w.String(), w.until) {
		w.then()
	}
	return n, err
}

// An answer not from a Partner is explained, and its body is shown.
func TestCallExplainsHTTPErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, tt := range []struct {
		status int
		body   string
		want   string
	}{
		{200, "", "the answer has HTTP status 200 and is empty: the server has a site at this port, but nothing is mounted"},
		{200, "<html>a page", "a proxy or another handler answers: is aip_gateway mounted at this URL?\n  <html>a page\n"},
		{302, "", "302 Found; the server redirects"},
		{400, "Client sent an HTTP request to an HTTPS server.\n\x1b[31m",
			"400 Bad Request; the server cannot read the request"},
		{404, "no page", "404 Not Found; is aip_gateway mounted at this URL?\n  no page\n"},
		{421, "", "421 Misdirected Request; the server has no site of this host name"},
		{418, "short", "418 I'm a teapot; a Partner answers every command with HTTP 200"},
		{502, "", "502 Bad Gateway; a proxy before the gateway does not reach it"},
	} {
		for _, command := range []string{"get", "re-stream"} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				io.WriteString(w, tt.body)
			}))
			got := runAIP(t, "call", server.URL, command, "--task", "t1", "--sender", "L")
			server.Close()
			if got.Status != 1 || !strings.Contains(got.Stderr, tt.want) || strings.Contains(got.Stderr, "\x1b") {
				t.Errorf("%d, %s: %+v, want %s", tt.status, command, got, tt.want)
			}
		}
	}
}

// On a terminal, a line says that the command waits. It is removed before anything else is printed.
func TestProgress(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := newProgress(&out, "waiting")
		line := func(s string) string {
			return "\r\x1b[Kwaiting, " + s + "; Ctrl-C ends this command, not the task"
		}
		bubble.Pass(2*time.Second + time.Millisecond)
		p.pause()
		bubble.Pass(4900 * time.Millisecond)
		p.resume()
		bubble.Pass(1500 * time.Millisecond)
		p.stop()
		p.stop()
		bubble.Pass(5 * time.Second)
		const removed = "\r\x1b[K"
		if diff := cmp.Diff(line("1s")+line("2s")+removed+line("1s")+removed, out.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		newProgress(nil, "waiting").stop() // no terminal
	})
}

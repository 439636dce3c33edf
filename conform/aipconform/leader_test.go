// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/conform/leader"
)

// asCommand is the variable that makes the tests' binary the command itself.
const asCommand = "AIPCONFORM_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestLeader runs the Partner that misbehaves as a process, calls it, and interrupts it: it reports what it was sent.
func TestLeader(t *testing.T) {
	cmd := exec.Command(os.Args[0], "leader", "--json", "-")
	cmd.Env, cmd.Stderr = append(os.Environ(), asCommand+"=1"), os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill() // it has ended, if all is well
	lines := bufio.NewReader(stdout)
	urls := make(map[string]string) // by fault
	for line := ""; !strings.Contains(line, "/report\t"); {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatalf("it ends before it listens: %v", err)
		}
		url, _, _ := strings.Cut(line, "\t")
		parts := strings.Split(url, "/") // http: "" address fault rpc
		urls[parts[3]] = url
	}
	if want := len(leader.Faults()) + len([]string{"right", "report"}); len(urls) != want {
		t.Errorf("it lists %d URLs, want %d: %v", len(urls), want, urls)
	}
	post := func(url, body string) (int, string) {
		answer, err := http.Post(url, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		content, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(content)
	}
	const start = `{"jsonrpc":"2.0","id":"1","method":"rpc","params":{"message":{"type":"message","id":"m1",` +
		`"sentAt":"2026-01-01T00:00:00Z","senderRole":"leader","senderId":"L","command":"start","taskId":"t",` +
		`"sessionId":"s","dataItems":[{"type":"text","text":"hello"}]}}}`
	if status, _ := post(urls["503"], start); status != http.StatusServiceUnavailable {
		t.Errorf("503 has the status %d", status)
	}
	if status, body := post(urls["503"], start); status != 200 || !strings.Contains(body, `"result"`) {
		t.Errorf("the second call gets %d %s", status, body)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	var reports []leader.Report
	if err := json.NewDecoder(lines).Decode(&reports); err != nil {
		t.Errorf("the report: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	got := make(map[string]int)
	for _, r := range reports {
		if r.Requests > 0 {
			got[r.Fault] = r.Requests
		}
	}
	if diff := cmp.Diff(map[string]int{"503": 2}, got); diff != "" {
		t.Errorf("requests by fault (-want +got):\n%s", diff)
	}
}

// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/cli"
)

// TestDoctorTry: sentences describe an agent's work on one real task. If it is not clear which agent is meant, none
// gets one.
func TestDoctorTry(t *testing.T) {
	const secret = "x-very-secret"
	s := newSetup(t)
	good := s.agent
	evil := serveAgent(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			http.NotFound(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		id := gjson.GetBytes(body, "id").Raw
		if gjson.GetBytes(body, "method").Str == "tasks/get" {
			io.WriteString(w, `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32001,"message":"Task not found"}}`)
			return
		}
		said, _ := json.Marshal("\x1b[31m\u202e " + r.Header.Get("Authorization") + strings.Repeat("é", 300))
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"id":%s,"status":{"state":"failed","message":{"role":"agent",`+
			`"parts":[{"type":"text","text":%s}]}}}}`, id, gjson.GetBytes(body, "params.id").Raw, said)
	})
	two := func(first, second string) string {
		return "handle /a/* {\naip_gateway {\nname one\nbase_path /a\nagent " + first + "\n}\n}\n" +
			"handle /b/* {\naip_gateway {\nname two\nbase_path /b\nagent " + second + "\n}\n}"
	}
	bad := "a2a/legacy " + evil + " {\nheader_up Authorization \"Bearer " + secret + "\"\nstreams off\n}"
	const sent = `ok try \S+: it was sent a message that asks for a stream: its card has capabilities.streaming`
	for _, tc := range []struct {
		name, handle string
		args         []string
		status       int
		want         []string // patterns of findings, in order
	}{
		{"one gateway", "aip_gateway {\nagent " + good + "\n}", []string{"--try", "hello you"}, 0, []string{sent,
			`it answered by a stream: the first event came after \d+m?s, and there were \d+$`,
			`its states were "working", "completed" with the words "ok"$`,
			`it delivered an artifact "echo" with a text of 15 bytes: "echo: hello you"$`,
			`it has completed the task$`, `it knows the task afterwards, as "completed"$`}},
		{"a question", "aip_gateway {\nagent " + good + "\n}", []string{"--try", "ask"}, 0, []string{sent,
			`it asks: ".*colour.*"$`, `it knows the task afterwards, as "input-required"$`,
			`the task was canceled: "canceled"$`}},
		{"a file", "aip_gateway {\nagent " + good + "\n}", []string{"--try", "file"}, 0, []string{sent,
			`it delivered an artifact "\w+" with a file of \d+ bytes$`}},
		{"two gateways", two(good, bad), []string{"--try", "hello"}, 1, []string{
			`error try aip: no agent was tried, because there are several, .* with --partner: one, two$`}},
		{"another name", two(good, bad), []string{"--try", "hello", "--partner", "three"}, 1, []string{
			`error try three: no agent was tried, because no Partner has this name; .*: one, two$`}},
		{"one of two", two(good, bad), []string{"--try", "hello", "--partner", "two"}, 1, []string{
			`ok try two: it was sent a message that asks for no stream: streams is off$`,
			`ok try two: it answered by one message, after `,
			`ok try two: its states were "failed" with the words "\\x1b\[31m\\u202e REDACTED(é)+…"$`,
			`warning try two: it does not know the task afterwards, .*Task not found`,
			`error try two: the try failed: the agent says that the task is failed: ".*REDACTED`}},
	} {
		s.handle = tc.handle
		got := cli.RunAIP(t, append([]string{"doctor", "--config", s.write(t), "--json"}, tc.args...)...)
		if got.Status != tc.status || strings.Contains(got.Stdout+got.Stderr, secret) {
			t.Errorf("%s: exit status %d, %s%s", tc.name, got.Status, got.Stdout, got.Stderr)
		}
		var lines []string
		for _, f := range gjson.Get(got.Stdout, "findings").Array() {
			if f.Get("check").Str == "try" {
				lines = append(lines, f.Get("status").Str+" try "+f.Get("subject").Str+": "+f.Get("text").Str)
			}
		}
		rest := lines
		for _, want := range tc.want {
			at := slices.IndexFunc(rest, regexp.MustCompile(want).MatchString)
			if at < 0 {
				t.Errorf("%s: %s\nlack %s", tc.name, strings.Join(lines, "\n"), want)
				break
			}
			rest = rest[at+1:]
		}
	}
	for _, args := range [][]string{{"--try", " "}, {"--partner", "one"}} {
		got := cli.RunAIP(t, append([]string{"doctor"}, args...)...)
		if got.Status != 1 || !strings.Contains(got.Stderr, "--try") {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

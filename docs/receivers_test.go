// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/rabbittest"
	"github.com/aip-gateway/aip-gateway/notify/sign"
)

// TestDocsReceivers runs the receivers of contrib/webhooks, and sends them notifications that they must take, and
// others that they must not.
func TestDocsReceivers(t *testing.T) {
	const token = "a secret of mine"
	code := func(name string) string {
		text, err := os.ReadFile("contrib/webhooks/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	dir := t.TempDir()
	// write writes a receiver that has the port that is free, and prints it.
	write := func(name, code string, changes ...string) {
		for i := 0; i < len(changes); i += 2 {
			if !strings.Contains(code, changes[i]) {
				t.Fatalf("%s has no %q", name, changes[i])
			}
		}
		code = strings.NewReplacer(changes...).Replace(code)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("receiver.js", code("receiver.js"),
		"listen(8080)", `listen(0, "127.0.0.1", function () { console.log(this.address().port) })`)
	write("receiver.py", code("receiver.py"), `("", 8080)`, `("127.0.0.1", 0)`,
		"server.serve_forever()", "print(server.server_port, flush=True)\nserver.serve_forever()")
	write("go.mod", "module receiver\n\ngo 1.26\n")
	write("receiver.go", code("receiver.go"), "\t\"net/http\"", "\t\"net\"\n\t\"net/http\"",
		"log.Fatal(server.ListenAndServe())", `
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(l.Addr().(*net.TCPAddr).Port)
	log.Fatal(server.Serve(l))`)
	build := exec.Command("go", "build", "-o", "receiver", ".")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the receiver in Go does not compile: %v\n%s", err, out)
	}
	run := func(name string, args ...string) func(context.Context) *exec.Cmd {
		return func(ctx context.Context) *exec.Cmd { return exec.CommandContext(ctx, name, args...) }
	}
	python := func(ctx context.Context) *exec.Cmd {
		cmd, err := rabbittest.Python(ctx, "receiver.py")
		if err != nil {
			t.Fatal(err)
		}
		return cmd
	}

	public, shared := sign.Generate(), sign.GenerateHMAC()
	for _, tt := range []struct {
		name, key, verify string
		command           func(context.Context) *exec.Cmd
	}{
		{"node ed25519", public, publicOf(t, public), run("node", "receiver.js")},
		{"node hmac", shared, shared, run("node", "receiver.js")},
		{"python hmac", shared, shared, python},
		{"go ed25519", public, publicOf(t, public), run("./receiver")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			key, err := sign.Parse(tt.key)
			if err != nil {
				t.Fatal(err)
			}
			other, err := sign.Parse(sign.Generate())
			if err != nil {
				t.Fatal(err)
			}
			url, said := startReceiver(t, dir, tt.command, "WEBHOOK_KEY="+tt.verify, "WEBHOOK_TOKEN="+token)
			body := `{"type":"task","id":"t1","status":{"state":"working"}}`
			now := time.Now()
			post := func(id string, at time.Time, keys sign.Keys, sent string, change func(http.Header)) int {
				t.Helper()
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(sent))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set(sign.HeaderID, id)
				req.Header.Set(sign.HeaderTimestamp, sign.Timestamp(at))
				if s := keys.Header(id, at, []byte(body)); s != "" {
					req.Header.Set(sign.HeaderSignature, s)
				}
				req.Header.Set("X-ACPS-AIP-Notification-Token", token)
				change(req.Header)
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				return res.StatusCode
			}
			same := func(http.Header) {}
			set := func(name, value string) func(http.Header) {
				return func(h http.Header) {
					if h.Del(name); value != "" {
						h.Set(name, value)
					}
				}
			}
			for _, p := range []struct {
				name string
				got  int
				good bool
			}{
				{"no token", post("msg_0", now, sign.Keys{key}, body, set("X-ACPS-AIP-Notification-Token", "")), false},
				{"another token", post("msg_0", now, sign.Keys{key}, body, set("X-ACPS-AIP-Notification-Token", "x")), false},
				{"no signature", post("msg_0", now, nil, body, same), false},
				{"an empty signature", post("msg_0", now, nil, body, set(sign.HeaderSignature, "v1a, v1,")), false},
				{"another key", post("msg_0", now, sign.Keys{other}, body, same), false},
				{"another body", post("msg_0", now, sign.Keys{key}, body+" ", same), false},
				{"another id", post("msg_0", now, sign.Keys{key}, body, set(sign.HeaderID, "msg_9")), false},
				{"no id", post("msg_0", now, sign.Keys{key}, body, set(sign.HeaderID, "")), false},
				{"no time", post("msg_0", now, sign.Keys{key}, body, set(sign.HeaderTimestamp, "")), false},
				{"another time", post("msg_0", now, sign.Keys{key}, body,
					set(sign.HeaderTimestamp, sign.Timestamp(now.Add(time.Minute)))), false},
				{"too old", post("msg_0", now.Add(-6*time.Minute), sign.Keys{key}, body, same), false},
				{"too new", post("msg_0", now.Add(6*time.Minute), sign.Keys{key}, body, same), false},
				{"good", post("msg_1", now, sign.Keys{key}, body, same), true},
				{"good, again", post("msg_1", now, sign.Keys{key}, body, same), true},
				{"good, with another key before it", post("msg_2", now, sign.Keys{other, key}, body, same), true},
			} {
				want := http.StatusUnauthorized
				if p.good {
					want = http.StatusNoContent
				}
				if p.got != want {
					t.Errorf("%s: status %d, want %d", p.name, p.got, want)
				}
			}
			// It acts once on each.
			body = strings.Replace(body, "working", "completed", 1)
			if status := post("msg_3", now, sign.Keys{key}, body, same); status != http.StatusNoContent {
				t.Errorf("the last one: status %d", status)
			}
			if diff := cmp.Diff([]string{"t1 working", "t1 working", "t1 completed"}, said(3)); diff != "" {
				t.Errorf("the receiver says (-want +got):\n%s", diff)
			}
		})
	}
}

func publicOf(t *testing.T, secret string) string {
	t.Helper()
	key, err := sign.Parse(secret)
	if err != nil {
		t.Fatal(err)
	}
	return key.Public()
}

// startReceiver runs a program that prints the port that it listens on, until the end of the test. said returns the
// next lines that it prints.
func startReceiver(
	t *testing.T, dir string, command func(context.Context) *exec.Cmd, env ...string,
) (url string, said func(n int) []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := command(ctx)
	cmd.Dir, cmd.Env = dir, append(cmd.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
	})
	lines := bufio.NewScanner(out)
	said = func(n int) (all []string) {
		for range n {
			if !lines.Scan() {
				t.Fatalf("the receiver has ended: %s", stderr.String())
			}
			all = append(all, lines.Text())
		}
		return all
	}
	return "http://127.0.0.1:" + said(1)[0] + "/aip", said
}

// SPDX-License-Identifier: Apache-2.0

// Package browser drives a real Chromium without a window, from Debian's packages, for the tests of the console. It
// speaks the DevTools protocol.
package browser

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// packages is install.sh's name of the set of packages.
const packages = "chromium-1"

// patience is the time for anything expected at once. Nothing is measured by it: it only keeps a hanging page from
// hanging a test.
const patience = time.Minute

// Browser is a running Chromium with a profile of its own.
type Browser struct {
	t    testing.TB
	conn *connection
}

// Start starts a browser. It does not outlive the test.
func Start(t testing.TB) *Browser {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(cache, "aip-gateway", packages)
	if _, err := os.Stat(root); err != nil {
		t.Fatalf("%v; run make chromium", err)
	}
	dir := t.TempDir()
	fonts := filepath.Join(dir, "fonts.conf")
	config := fmt.Sprintf(`<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>%s/usr/share/fonts</dir><cachedir>%s/fonts</cachedir></fontconfig>`, root, dir)
	if err := os.WriteFile(fonts, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var libraries []string
	for _, pattern := range []string{"usr/lib/*-linux-gnu", "usr/lib/*-linux-gnu/pulseaudio", "lib/*-linux-gnu"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		libraries = append(libraries, found...)
	}
	cmd := exec.Command(filepath.Join(root, "usr/lib/chromium/chromium-headless-shell"),
		"--remote-debugging-port=0", "--user-data-dir="+filepath.Join(dir, "profile"), "--disable-gpu",
		// The sandbox needs rights not given by a container; the pages are the test's own. The protection would leave out
		// navigations of a quick test.
		"--no-sandbox", "--disable-ipc-flooding-protection",
		"--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run", "--disable-extensions",
		"--force-device-scale-factor=1", "--hide-scrollbars", "--lang=en-US", "about:blank")
	cmd.Env = []string{"HOME=" + dir, "TMPDIR=" + dir, "TZ=UTC", "FONTCONFIG_FILE=" + fonts,
		"LD_LIBRARY_PATH=" + strings.Join(libraries, ":")}
	var said bytes.Buffer // read after the process has ended
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-ended
		if t.Failed() {
			t.Logf("what Chromium said:\n%s", said.String())
		}
	})

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	url, err := endpoint(ctx, filepath.Join(dir, "profile", "DevToolsActivePort"), ended)
	if err != nil {
		t.Fatal(err)
	}
	ws, _, err := websocket.Dial(ctx, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	conn := newConnection(ws)
	t.Cleanup(conn.close)
	return &Browser{t: t, conn: conn}
}

// endpoint waits for the file with the address Chromium listens on.
func endpoint(ctx context.Context, file string, ended <-chan struct{}) (string, error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		content, err := os.ReadFile(file)
		if port, path, ok := strings.Cut(string(content), "\n"); err == nil && ok && path != "" {
			return "ws://127.0.0.1:" + port + strings.TrimSpace(path), nil
		}
		select {
		case <-tick.C:
		case <-ended:
			return "", errors.New("the browser has ended before it listened")
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

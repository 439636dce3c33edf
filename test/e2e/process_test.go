// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the gateway from outside: the real binary, real TLS, real agents. It needs ../../caddy, or the
// binary that AIP_CADDY names, and the agents in ../interop/bin; `make e2e` builds both.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/freeport"
)

// patience is how long anything may take that should happen at once. Nothing is measured by it: it only keeps
// a broken gateway from hanging a test.
const patience = time.Minute

// caddyBinary returns the path of the gateway under test.
func caddyBinary(t testing.TB) string {
	t.Helper()
	return binary(t, os.Getenv("AIP_CADDY"), "../../caddy", "make caddy")
}

// binary returns the path of a binary: the first of the two that is given.
func binary(t testing.TB, path, otherwise, build string) string {
	t.Helper()
	if path == "" {
		path = otherwise
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		t.Fatalf("there is no binary %s; run %s", path, build)
	}
	return path
}

// process is a process that the test has started, and that does not outlive it.
type process struct {
	name  string
	cmd   *exec.Cmd
	out   asynctest.Buffer // stdout and stderr, as they come
	ended chan struct{}    // closed when it has ended, with err set
	err   error
}

// startProcess starts a binary in a directory that also is its home, so that it touches nothing else.
func startProcess(t testing.TB, dir string, env []string, path string, args ...string) *process {
	t.Helper()
	p := &process{name: filepath.Base(path), cmd: command(dir, env, path, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("what %s %q said:\n%s", p.name, args, tail(p.out.String(), 20_000))
		}
	})
	return p
}

func command(dir string, env []string, path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(),
		"HOME=" + dir, "XDG_DATA_HOME=" + filepath.Join(dir, "share"), "XDG_CONFIG_HOME=" + filepath.Join(dir, "config"),
	}, env...)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// kill ends the process as a power cut does, and waits for its end.
func (p *process) kill() {
	p.cmd.Process.Kill() // it may have ended by itself
	<-p.ended
}

// stop asks the process to end, and waits for it.
func (p *process) stop(t testing.TB) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("%s cannot be stopped: %v", p.name, err)
	}
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Errorf("%s does not stop", p.name)
		p.kill()
	}
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// pause stops the process, as that of a machine which is suspended, until the function that it returns is called.
func (p *process) pause(t testing.TB) (goOn func()) {
	t.Helper()
	noError(t, p.cmd.Process.Signal(syscall.SIGSTOP))
	return func() {
		t.Helper()
		noError(t, p.cmd.Process.Signal(syscall.SIGCONT))
	}
}

// waitForPort waits until something accepts connections at an address.
func (p *process) waitForPort(t testing.TB, address string) {
	t.Helper()
	eventually(t, p.name+" listens on "+address, func() bool {
		if p.hasEnded() {
			t.Fatalf("%s has ended: %v", p.name, p.err)
		}
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
}

// runProcess runs a binary to its end and returns its exit status and what it says on stdout and stderr.
func runProcess(
	t testing.TB,
	dir string,
	env []string,
	path string,
	args ...string,
) (status int, stdout, stderr string) {
	t.Helper()
	cmd := command(dir, env, path, args...)
	var out, errs asynctest.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	err := cmd.Wait()
	stop()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		t.Fatalf("%s %q does not end; it said:\n%s%s", filepath.Base(path), args, out.String(), errs.String())
	case err != nil && !errors.As(err, &exit):
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func tail(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return "…" + s[len(s)-most:]
}

// waitFor waits until the process has said something, and returns what matched.
func (p *process) waitFor(t testing.TB, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	var found []string
	eventually(t, p.name+" says "+pattern, func() bool {
		ended := p.hasEnded() // before the output is read, so that nothing of it is missed
		found = re.FindStringSubmatch(p.out.String())
		if found == nil && ended {
			t.Fatalf("%s has ended before it said %s: %v", p.name, pattern, p.err)
		}
		return found != nil
	})
	return found
}

// eventually waits until ok says so. These tests use it to wait for what they cannot be notified of.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	eventuallyWithin(t, patience, what, ok)
}

// eventuallyWithin is eventually for what may take longer.
func eventuallyWithin(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !ok() {
		select {
		case <-again.C:
		case <-deadline.C:
			t.Fatalf("within %v it did not come true that %s", limit, what)
		}
	}
}

// freePort returns a port on which no process listens, and which no other test gets.
func freePort(t testing.TB) int {
	t.Helper()
	port, err := freeport.Take()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// isFree reports whether no process listens on a port.
func isFree(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err == nil {
		l.Close()
	}
	return err == nil
}

// SPDX-License-Identifier: Apache-2.0

package site

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/freeport"
)

// CaddyBinary returns the path of the gateway under test.
func CaddyBinary(t testing.TB) string {
	t.Helper()
	return Binary(t, os.Getenv("AIP_CADDY"), "../../../caddy", "make caddy")
}

// Binary returns the path of a binary: the first of the two that is given.
func Binary(t testing.TB, path, otherwise, build string) string {
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

// Process is a process that the test has started, and that does not outlive it.
type Process struct {
	name  string
	Cmd   *exec.Cmd        // as started
	Out   asynctest.Buffer // stdout and stderr, as they come
	Ended chan struct{}    // closed when it has ended, with err set
	Err   error            // of Wait, once the process has ended
}

// StartProcess starts a binary in a directory that also is its home, so that it touches nothing else.
func StartProcess(t testing.TB, dir string, env []string, path string, args ...string) *Process {
	t.Helper()
	p := &Process{name: filepath.Base(path), Cmd: command(dir, env, path, args...), Ended: make(chan struct{})}
	p.Cmd.Stdout, p.Cmd.Stderr = &p.Out, &p.Out
	if err := p.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.Err = p.Cmd.Wait()
		close(p.Ended)
	}()
	t.Cleanup(func() {
		p.Kill()
		if strings.Contains(p.Out.String(), "this is a bug of the gateway") { // though it has gone on
			t.Error("the gateway has met a bug")
		}
		if t.Failed() {
			t.Logf("what %s %q said:\n%s", p.name, args, Tail(p.Out.String(), 20_000))
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

// Kill ends the process as a power cut does, and waits for its end.
func (p *Process) Kill() {
	p.Cmd.Process.Kill() // it may have ended by itself
	<-p.Ended
}

// Stop asks the process to end, and waits for it.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("%s cannot be stopped: %v", p.name, err)
	}
	select {
	case <-p.Ended:
	case <-time.After(Patience):
		t.Errorf("%s does not stop", p.name)
		p.Kill()
	}
}

// HasEnded reports whether the process has ended.
func (p *Process) HasEnded() bool {
	select {
	case <-p.Ended:
		return true
	default:
		return false
	}
}

// Pause stops the process, as that of a machine which is suspended, until the function that it returns is called.
func (p *Process) Pause(t testing.TB) (goOn func()) {
	t.Helper()
	NoError(t, p.Cmd.Process.Signal(syscall.SIGSTOP))
	return func() {
		t.Helper()
		NoError(t, p.Cmd.Process.Signal(syscall.SIGCONT))
	}
}

// WaitForPort waits until something accepts connections at an address.
func (p *Process) WaitForPort(t testing.TB, address string) {
	t.Helper()
	Eventually(t, p.name+" listens on "+address, func() bool {
		if p.HasEnded() {
			t.Fatalf("%s has ended: %v", p.name, p.Err)
		}
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
}

// RunProcess runs a binary to its end and returns its exit status and what it says on stdout and stderr.
func RunProcess(
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
	ctx, cancel := context.WithTimeout(t.Context(), 2*Patience)
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

// Tail returns the end of a text.
func Tail(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return "…" + s[len(s)-most:]
}

// WaitFor waits until the process has said something, and returns what matched.
func (p *Process) WaitFor(t testing.TB, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	var found []string
	Eventually(t, p.name+" says "+pattern, func() bool {
		ended := p.HasEnded() // before the output is read, so that nothing of it is missed
		found = re.FindStringSubmatch(p.Out.String())
		if found == nil && ended {
			t.Fatalf("%s has ended before it said %s: %v", p.name, pattern, p.Err)
		}
		return found != nil
	})
	return found
}

// FreePort returns a port on which no process listens, and which no other test gets.
func FreePort(t testing.TB) int {
	t.Helper()
	port, err := freeport.Take()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

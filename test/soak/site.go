// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// site is a gateway, its agent, and those who attack, each as a process of its own, and a receiver of webhooks in this
// one.
type site struct {
	*fixture
	agent     *part
	attackers *part // nil without attacks
	hooks     *receiver
	gateway   *exec.Cmd
	ended     chan struct{} // closed when the gateway's process has ended
	log       tail
	reloads   atomic.Int64 // makes each configuration another one
}

// newSite starts a site, which the caller must close. Its gateway has so many MiB of memory; 0 for all that there is.
func newSite(ctx context.Context, caddy string, memory int, attack bool) (_ *site, err error) {
	s := &site{fixture: new(fixture), ended: make(chan struct{})}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if err := s.make(); err != nil {
		return nil, err
	}
	if s.agent, err = newPart("agent", s.fixture); err != nil {
		return nil, err
	}
	if attack {
		if s.attackers, err = newPart("attackers", s.fixture); err != nil {
			return nil, err
		}
	}
	if s.hooks, err = newReceiver(); err != nil {
		return nil, err
	}
	if caddy, err = filepath.Abs(caddy); err != nil {
		return nil, err
	}
	path := filepath.Join(s.Dir, "Caddyfile")
	if err := os.WriteFile(path, s.config(), 0o600); err != nil {
		return nil, err
	}
	s.gateway = exec.CommandContext(ctx, caddy, "run", "--config", path, "--adapter", "caddyfile")
	s.gateway.Env = append(os.Environ(), "XDG_DATA_HOME="+s.Dir, "XDG_CONFIG_HOME="+s.Dir)
	if few := runtime.NumCPU(); few < 4 { // as docs/production.md has it
		s.gateway.Env = append(s.gateway.Env, fmt.Sprintf("GOMAXPROCS=%d", min(2*few, 4)))
	}
	if memory > 0 { // Caddy sets as much in a container
		s.gateway.Env = append(s.gateway.Env, fmt.Sprintf("GOMEMLIMIT=%dMiB", memory*9/10))
	}
	// A file would be too large, too, while the disk is full. exec copies from a pipe.
	s.gateway.Stdout, s.gateway.Stderr = &s.log, &s.log
	if err := s.gateway.Start(); err != nil {
		s.gateway = nil
		return nil, err
	}
	go func() {
		_ = s.gateway.Wait() // how it ended is in its log
		close(s.ended)
	}()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", s.Front)
		if err == nil {
			return s, conn.Close()
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("the gateway does not listen: %w; it said: %s", err, s.log.String())
		}
	}
}

// config returns a Caddyfile that differs from those before.
func (s *site) config() []byte {
	return fmt.Appendf(nil, `{
	admin %s
	auto_https off
	log {
		level ERROR
	}
	aip {
		store pebble %s
		notify {
			allow_networks 127.0.0.0/8
		}
		aun {
			aid %s
			cert %s
			roots %s
			issuer %s
		}
	}
}
https://:%s {
	tls %s %s
	aip_aun
}
https://%s {
	tls %s %s {
		client_auth {
			mode verify_if_given
			trust_pool file %s
		}
	}
	handle_path /hostile/* {
		aip_gateway {
			agent a2a/legacy https://%s {
				timeout 20s
				tls {
					ca %s
				}
			}
			identity optional
		}
	}
	handle {
		aip_gateway a2a/legacy http://%s {
			agent {
				resend always
			}
			aic %s
			aid %s
			callers aip aip/2 a2a/1.0 aun
			identity optional
			group {
				allow_brokers localhost
			}
			limits {
				tasks_per_leader %d
			}
		}
	}
}
`, s.Admin, filepath.Join(s.Dir, "store"), aunGateway, filepath.Join(s.Dir, "aun.pem"),
		filepath.Join(s.Dir, "roots.pem"), aunIssuer, s.AUN[strings.LastIndexByte(s.AUN, ':')+1:],
		s.PKI.Server.Cert, s.PKI.Server.Key, s.Front, s.PKI.Server.Cert, s.PKI.Server.Key, s.PKI.CA.Cert, s.BadAgent,
		s.PKI.CA.Cert, s.Agent, s.AIC, aunAgent, 100_000+s.reloads.Add(1))
}

// reload replaces the configuration.
func (s *site) reload(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.Admin+"/load", bytes.NewReader(s.config()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "text/caddyfile")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(res.Body, 1000))
		return fmt.Errorf("the configuration is refused: %s", body)
	}
	return nil
}

// fillDisk makes the disk full for a process, or has room again. It needs no rights but those of its owner.
func fillDisk(pid int, full bool) error {
	size := "unlimited:"
	if full {
		size = "0:"
	}
	out, err := exec.Command("prlimit", "--pid", fmt.Sprint(pid), "--fsize="+size).CombinedOutput()
	if err != nil {
		return fmt.Errorf("prlimit: %w: %s", err, out)
	}
	return nil
}

// alive reports whether the gateway's process is there.
func (s *site) alive() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

func (s *site) close() {
	if s.gateway != nil {
		_ = s.gateway.Process.Signal(syscall.SIGKILL) // it may have ended
		<-s.ended
	}
	for _, p := range []*part{s.agent, s.attackers} {
		if p != nil {
			p.close()
		}
	}
	if s.hooks != nil {
		s.hooks.close()
	}
	if s.Dir != "" {
		_ = os.RemoveAll(s.Dir)
	}
}

// tail is the end of what a process says.
type tail struct{ b bytes.Buffer }

// Write implements io.Writer. exec calls it from one goroutine.
func (t *tail) Write(p []byte) (int, error) {
	t.b.Write(p)
	if t.b.Len() > 1<<20 {
		t.b.Next(t.b.Len() - 1<<19)
	}
	return len(p), nil
}

// String returns the last lines. The process has ended, or says nothing at the moment.
func (t *tail) String() string {
	lines := strings.Split(strings.TrimSpace(t.b.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

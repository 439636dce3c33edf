// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/devpki"
	"github.com/aip-gateway/aip-gateway/internal/leader"
)

// site is a gateway as a process of its own, a broker as another, and agents and a receiver of webhooks in this one.
type site struct {
	dir    string
	pki    *devpki.PKI
	ca     *x509.Certificate // of its root
	aic    string            // of the Partner
	agent  *agent
	bad    *badAgent
	hooks  *receiver
	broker *broker
	admin  string // addresses
	front  string
	aunSide
	gateway *exec.Cmd
	ended   chan struct{} // closed when the gateway's process has ended
	log     tail
	reloads atomic.Int64 // makes each configuration another one
}

// newSite starts a site, which the caller must close. Its gateway has so many MiB of memory; 0 for all that there is.
func newSite(ctx context.Context, caddy string, memory int) (_ *site, err error) {
	s := &site{ended: make(chan struct{})}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.dir, err = os.MkdirTemp("", "aip-soak-"); err != nil {
		return nil, err
	}
	if s.pki, err = devpki.Make(devpki.Options{Dir: filepath.Join(s.dir, "pki")}); err != nil {
		return nil, err
	}
	ca, err := tls.LoadX509KeyPair(s.pki.CA.Cert, s.pki.CA.Key)
	if err != nil {
		return nil, err
	}
	s.ca = ca.Leaf
	aic, err := identity.MakeV1(identity.FieldsV1{})
	if err != nil {
		return nil, err
	}
	s.aic = string(aic)
	if err := s.newAUN(); err != nil {
		return nil, err
	}
	if s.agent, err = newAgent(); err != nil {
		return nil, err
	}
	server, err := tls.LoadX509KeyPair(s.pki.Server.Cert, s.pki.Server.Key)
	if err != nil {
		return nil, err
	}
	if s.bad, err = newBadAgent(server); err != nil {
		return nil, err
	}
	if s.broker, err = newBroker(); err != nil {
		return nil, err
	}
	if s.hooks, err = newReceiver(); err != nil {
		return nil, err
	}
	addresses, err := freeAddresses(3)
	if err != nil {
		return nil, err
	}
	s.admin, s.front, s.aunAddr = addresses[0], addresses[1], addresses[2]
	s.front = strings.Replace(s.front, "127.0.0.1", "localhost", 1) // as the certificate has it
	if caddy, err = filepath.Abs(caddy); err != nil {
		return nil, err
	}
	path := filepath.Join(s.dir, "Caddyfile")
	if err := os.WriteFile(path, s.config(), 0o600); err != nil {
		return nil, err
	}
	s.gateway = exec.CommandContext(ctx, caddy, "run", "--config", path, "--adapter", "caddyfile")
	s.gateway.Env = append(os.Environ(), "XDG_DATA_HOME="+s.dir, "XDG_CONFIG_HOME="+s.dir)
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
		conn, err := net.Dial("tcp", s.front)
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
`, s.admin, filepath.Join(s.dir, "store"), aunGateway, filepath.Join(s.dir, "aun.pem"),
		filepath.Join(s.dir, "roots.pem"), aunIssuer, s.aunAddr[strings.LastIndexByte(s.aunAddr, ':')+1:],
		s.pki.Server.Cert, s.pki.Server.Key, s.front, s.pki.Server.Cert, s.pki.Server.Key, s.pki.CA.Cert, s.bad.addr,
		s.pki.CA.Cert, s.agent.addr, s.aic, aunAgent, 100_000+s.reloads.Add(1))
}

// freeAddresses returns addresses that no process listens on.
func freeAddresses(n int) (list []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // not before all are known, so that they differ
		list = append(list, l.Addr().String())
	}
	return list, nil
}

// certificates makes certificates of n Leaders, below the same root.
func (s *site) certificates(n int) (files []devpki.File, err error) {
	for i := 0; len(files) < n; i++ {
		dir := filepath.Join(s.dir, fmt.Sprint("leaders-", i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
		for _, path := range []string{s.pki.CA.Cert, s.pki.CA.Key} {
			if err := os.Link(path, filepath.Join(dir, filepath.Base(path))); err != nil {
				return nil, err
			}
		}
		pki, err := devpki.Make(devpki.Options{Dir: dir})
		if err != nil {
			return nil, err
		}
		files = append(files, pki.Leader, pki.LeaderV1)
	}
	return files[:n], nil
}

// client returns a client with a Leader's certificate, or with none where file is nil.
func (s *site) client(file *devpki.File) (*leader.Client, error) { return s.clientOf("", file) }

// clientOf is client for the Partner at a path.
func (s *site) clientOf(path string, file *devpki.File) (*leader.Client, error) {
	config, err := s.tls(file)
	if err != nil {
		return nil, err
	}
	c, err := leader.New("https://"+s.front+path, config)
	if err == nil && file != nil {
		c.Sender = string(file.AIC)
	}
	return c, err
}

func (s *site) tls(file *devpki.File) (*tls.Config, error) {
	pem, err := os.ReadFile(s.pki.CA.Cert)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(pem)
	if file != nil {
		cert, err := tls.LoadX509KeyPair(file.Cert, file.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{cert}
	}
	return config, nil
}

// reload replaces the configuration.
func (s *site) reload(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.admin+"/load", bytes.NewReader(s.config()))
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

// fill makes the disk full for the gateway's process, or has room again. It needs no rights but those of its owner.
func (s *site) fill(full bool) error {
	size := "unlimited:"
	if full {
		size = "0:"
	}
	out, err := exec.Command("prlimit", "--pid", fmt.Sprint(s.gateway.Process.Pid), "--fsize="+size).CombinedOutput()
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
	if s.agent != nil {
		s.agent.close()
	}
	if s.bad != nil {
		s.bad.close()
	}
	if s.broker != nil {
		_ = s.broker.Close()
	}
	if s.hooks != nil {
		s.hooks.close()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}

// serve serves HTTP on a free port of this machine, at its returned address.
func serve(h http.Handler) (*http.Server, string, error) {
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		return nil, "", err
	}
	server := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	return server, fmt.Sprintf("127.0.0.1:%d", l.Addr().(*net.TCPAddr).Port), nil
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

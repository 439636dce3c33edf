// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/internal/freeport"
)

// site is a gateway and an agent, each a process of its own, in a folder of their own.
type site struct {
	dir     string
	ports   []int
	gateway *exec.Cmd
	agent   *exec.Cmd
	pki     *devpki.PKI
	leader  *tls.Config // of a Leader, for mutual TLS
}

// The sites of the gateway's process, as indexes of ports.
const (
	portAgent    = iota
	portGateway  // aip_gateway, plain
	portProxy    // reverse_proxy, plain
	portTLS      // aip_gateway, mutual TLS
	portProxyTLS // reverse_proxy, mutual TLS
	portAdmin    // Caddy's admin endpoint, for profiles
	ports
)

// siteConfig is what a measurement changes of a site. The zero one is the default.
type siteConfig struct {
	store   string                                  // option of a Caddyfile; default: storeState
	fill    func(dir, partner string) error         // called before the start, with the folder of the store
	prepare func(dir string, pki *devpki.PKI) error // called before the start, with the folder of the site
	env     []string                                // of the gateway's process, beside that of this one
	more    string                                  // further sites; AGENT stands for the port of the agent
	beside  *site                                   // whose agent and certificates it has; nil for its own
}

// newSite starts a gateway and an agent. The caller closes the site.
func newSite(ctx context.Context, caddy string, c siteConfig) (_ *site, err error) {
	s := new(site)
	if s.dir, err = os.MkdirTemp("", "aip-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if c.beside != nil {
		s.pki = c.beside.pki
	} else if s.pki, err = devpki.Make(devpki.Options{Dir: filepath.Join(s.dir, "pki")}); err != nil {
		return nil, err
	}
	if s.leader, err = leaderTLS(s.pki); err != nil {
		return nil, err
	}
	for range ports {
		port, err := freeport.Take()
		if err != nil {
			return nil, err
		}
		s.ports = append(s.ports, port)
	}
	if c.beside != nil {
		s.ports[portAgent] = c.beside.ports[portAgent]
	}
	if caddy, err = filepath.Abs(caddy); err != nil {
		return nil, err
	}
	config := fmt.Sprintf(`{
	admin 127.0.0.1:%[1]d
	auto_https off
	log {
		level WARN
	}
	aip {
		store %[10]s
	}
}
(gateway) {
	aip_gateway a2a/legacy http://127.0.0.1:%[2]d {
		{args[:]}
		limits {
			tasks_per_leader   100000000
			streams            1000000
			streams_per_leader 1000000
		}
		{block}
	}
}
(proxy) {
	reverse_proxy http://127.0.0.1:%[2]d {
		transport http {
			keepalive_idle_conns_per_host 1024
		}
	}
}
(mutual) {
	tls %[3]s %[4]s {
		client_auth {
			mode require_and_verify
			trust_pool file %[5]s
		}
	}
}
http://localhost:%[6]d {
	bind 127.0.0.1
	import gateway identity off
}
http://localhost:%[7]d {
	bind 127.0.0.1
	import proxy
}
https://localhost:%[8]d {
	import mutual
	import gateway identity required
}
https://localhost:%[9]d {
	import mutual
	import proxy
}
`, s.ports[portAdmin], s.ports[portAgent], s.pki.Server.Cert, s.pki.Server.Key, s.pki.CA.Cert,
		s.ports[portGateway], s.ports[portProxy], s.ports[portTLS], s.ports[portProxyTLS],
		strings.ReplaceAll(cmp.Or(c.store, storeState), "DIR", filepath.Join(s.dir, "store")))
	config += strings.ReplaceAll(c.more, "AGENT", strconv.Itoa(s.ports[portAgent]))
	path := filepath.Join(s.dir, "Caddyfile")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return nil, err
	}
	if c.prepare != nil {
		if err := c.prepare(s.dir, s.pki); err != nil {
			return nil, err
		}
	}
	if c.fill != nil {
		if err := c.fill(filepath.Join(s.dir, "store"), "http://"+s.addr(portAgent)); err != nil {
			return nil, err
		}
	}
	if c.beside == nil {
		s.agent, err = s.start(ctx, nil, caddy, "aip", "sample-agent", "--listen", s.addr(portAgent))
		if err != nil {
			return nil, err
		}
	}
	if s.gateway, err = s.start(ctx, c.env, caddy, "run", "--config", path, "--adapter", "caddyfile"); err != nil {
		return nil, err
	}
	for port := range ports {
		if err := s.wait(ctx, port); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// leaderTLS is what a Leader of the development PKI uses for mutual TLS.
func leaderTLS(pki *devpki.PKI) (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(pki.Leader.Cert, pki.Leader.Key)
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(pki.CA.Cert)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}, ServerName: "localhost"}, nil
}

func (s *site) addr(port int) string { return "127.0.0.1:" + strconv.Itoa(s.ports[port]) }

func (s *site) start(ctx context.Context, env []string, path string, args ...string) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+s.dir, "XDG_CONFIG_HOME="+s.dir)
	if few := runtime.NumCPU(); few < 4 { // as docs/production.md has it
		cmd.Env = append(cmd.Env, fmt.Sprintf("GOMAXPROCS=%d", min(2*few, 4)))
	}
	cmd.Env = append(cmd.Env, env...)
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	return cmd, cmd.Start()
}

func (s *site) wait(ctx context.Context, port int) error {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline) &&
		ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", s.addr(port)); err == nil {
			return conn.Close()
		}
	}
	log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return fmt.Errorf("nothing listens on port %d of the site: %s", port, log)
}

// stop ends the gateway's process at once, as a crash does. restart begins it again.
func (s *site) stop() {
	s.gateway.Process.Signal(syscall.SIGKILL)
	s.gateway.Wait()
}

// end asks the gateway's process to end, and waits.
func (s *site) end() error {
	if err := s.gateway.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return s.gateway.Wait()
}

// restart begins the gateway's process again, with the same configuration and store.
func (s *site) restart(ctx context.Context) (err error) {
	s.gateway, err = s.start(ctx, nil, s.gateway.Path, s.gateway.Args[1:]...)
	return err
}

func (s *site) close() {
	for _, cmd := range []*exec.Cmd{s.gateway, s.agent} {
		if cmd != nil && cmd.Process != nil {
			cmd.Process.Signal(syscall.SIGKILL)
			cmd.Wait()
		}
	}
	os.RemoveAll(s.dir)
}

// rss returns the memory that the gateway's process holds, in bytes.
func (s *site) rss() (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.gateway.Process.Pid))
	if err != nil {
		return 0, err
	}
	pages, err := strconv.ParseInt(strings.Fields(string(status))[1], 10, 64)
	return float64(pages) * float64(os.Getpagesize()), err
}

// idleRSS returns the gateway's resident memory, in bytes, a while after its garbage was collected.
func (s *site) idleRSS(ctx context.Context) (float64, error) {
	if err := s.collect(ctx); err != nil {
		return 0, err
	}
	select {
	case <-time.After(20 * time.Second):
		return s.rss()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// collect has the gateway's process collect its garbage.
func (s *site) collect(ctx context.Context) error {
	for range 2 { // the second one empties the pools
		url := fmt.Sprintf("http://%s/debug/pprof/heap?gc=1", s.addr(portAdmin))
		if err := fetch(ctx, url, func(io.Reader) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

// profile writes what the gateway's process computes in so many seconds to a file.
func (s *site) profile(ctx context.Context, path string, seconds int) error {
	url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", s.addr(portAdmin), seconds)
	return fetch(ctx, url, func(body io.Reader) error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, body)
		return errors.Join(err, f.Close())
	})
}

// fetch reads what a URL answers.
func fetch(ctx context.Context, url string, read func(body io.Reader) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, res.Status)
	}
	return read(res.Body)
}

// cpu returns the time that the gateway's process has computed.
func (s *site) cpu() (time.Duration, error) { return cpuOf(s.gateway) }

// cpuOf returns the time that a process has computed.
func cpuOf(process *exec.Cmd) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process.Process.Pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil // USER_HZ is 100
}

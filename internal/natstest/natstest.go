// SPDX-License-Identifier: Apache-2.0

// Package natstest runs private NATS servers with JetStream for tests and benchmarks: real processes, built from the
// module in server/, with ports and data of their own. They end with the process of their start, however that ends.
package natstest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/freeport"
)

// startLimit is the time for servers to start or to stop.
const startLimit = time.Minute

// Config has the differences between clusters.
type Config struct {
	// MaxPayload is the greatest size of a message, in bytes; default 1 MiB.
	MaxPayload int
	// SyncInterval is the interval of the servers to sync their writes to their disks; default "always".
	SyncInterval string
	// Hidden has servers not tell clients of one another: a client knows its given addresses only, for example those of
	// proxies.
	Hidden bool
}

// Cluster is one server, or several with common streams. While one of its methods, or of its servers', runs, no other
// may be called.
type Cluster struct {
	Servers []*Server
	dir     string
}

// Server is one process.
type Server struct {
	Name        string
	Port        int // of clients, on 127.0.0.1
	MonitorPort int // of the HTTP monitoring

	routePort int
	binary    string
	dir       string
	cmd       *exec.Cmd
	ended     chan struct{} // closed when the process has ended
	watcher   *exec.Cmd
	end       io.Closer // its input, open as long as this process is there
}

// Start starts a number of servers, and returns when JetStream can be used.
func Start(n int, config Config) (_ *Cluster, err error) {
	binary, err := build()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "aip-nats-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	var routes []string
	for i := range n {
		s := &Server{Name: fmt.Sprintf("n%d", i+1), binary: binary, dir: filepath.Join(dir, fmt.Sprint(i+1))}
		for _, port := range []*int{&s.Port, &s.MonitorPort, &s.routePort} {
			if *port, err = freeport.Take(); err != nil {
				return c, err
			}
		}
		c.Servers = append(c.Servers, s)
		routes = append(routes, fmt.Sprintf("nats-route://127.0.0.1:%d", s.routePort))
	}
	if config.MaxPayload == 0 {
		config.MaxPayload = 1 << 20
	}
	if config.SyncInterval == "" {
		config.SyncInterval = "always"
	}
	for _, s := range c.Servers {
		var text bytes.Buffer
		fmt.Fprintf(&text, "%s: %s\nlisten: 127.0.0.1:%d\nhttp: 127.0.0.1:%d\nmax_payload: %d\n", "server_name", s.Name,
			s.Port, s.MonitorPort, config.MaxPayload)
		fmt.Fprintf(&text, "jetstream {\n  store_dir: %q\n  sync_interval: %s\n}\n", filepath.Join(s.dir, "data"),
			config.SyncInterval)
		if n > 1 {
			fmt.Fprintf(&text, "cluster {\n  name: aip\n  listen: 127.0.0.1:%d\n  routes: [%s]\n  no_advertise: %t\n}\n",
				s.routePort, strings.Join(routes, ", "), config.Hidden)
		}
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return c, err
		}
		if err := os.WriteFile(filepath.Join(s.dir, "nats.conf"), text.Bytes(), 0o600); err != nil {
			return c, err
		}
		if err := s.Run(); err != nil {
			return c, err
		}
	}
	return c, c.Ready()
}

// build builds the server, if it is not built.
func build() (string, error) {
	_, file, _, _ := runtime.Caller(0)
	folder := filepath.Join(filepath.Dir(file), "server")
	binary := filepath.Join(folder, "bin", "nats-server")
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	part := fmt.Sprintf("%s.%d", binary, os.Getpid())
	cmd := exec.Command("go", "build", "-o", part, "github.com/nats-io/nats-server/v2")
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("nats-server cannot be built: %w: %s", err, out)
	}
	return binary, os.Rename(part, binary)
}

// URL returns the addresses of all servers, as nats.Connect takes them.
func (c *Cluster) URL() string {
	var all []string
	for _, s := range c.Servers {
		all = append(all, s.URL())
	}
	return strings.Join(all, ",")
}

// Ready waits until JetStream can be used: every server is up, and knows the leader, and the leader has heard of all.
func (c *Cluster) Ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	for _, s := range c.Servers {
		for {
			err := s.ready(ctx, len(c.Servers))
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s does not become ready: %w\n%s", s.Name, err, s.Log())
			case <-s.ended:
				return fmt.Errorf("%s has ended:\n%s", s.Name, s.Log())
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}

// ready returns nil if the server takes part in JetStream.
func (s *Server) ready(ctx context.Context, servers int) error {
	var health struct {
		Status string `json:"status"`
	}
	if err := s.get(ctx, "/healthz?js-enabled-only=true", &health); err != nil {
		return err
	}
	if servers == 1 {
		return nil
	}
	var jsz struct {
		Meta struct {
			Leader   string `json:"leader"`
			Size     int    `json:"cluster_size"`
			Replicas []struct {
				Name    string `json:"name"`
				Current bool   `json:"current"`
				Offline bool   `json:"offline"`
			} `json:"replicas"` // the leader alone has them
		} `json:"meta_cluster"`
	}
	if err := s.get(ctx, "/jsz", &jsz); err != nil {
		return err
	}
	if jsz.Meta.Leader == "" || jsz.Meta.Size < servers {
		return fmt.Errorf("it has the leader %q among %d servers", jsz.Meta.Leader, jsz.Meta.Size)
	}
	if jsz.Meta.Leader != s.Name {
		return nil
	}
	heard := 1
	for _, r := range jsz.Meta.Replicas {
		if r.Current && !r.Offline {
			heard++
		}
	}
	if heard < servers { // a stream could not be placed
		return fmt.Errorf("the leader has heard of %d servers of %d", heard, servers)
	}
	return nil
}

// get reads a page of the monitoring.
func (s *Server) get(ctx context.Context, page string, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", s.MonitorPort, page),
		nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(v)
}

// Named returns the server with a name; nil for none.
func (c *Cluster) Named(name string) *Server {
	for _, s := range c.Servers {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// Leader returns the server leading JetStream's own group; nil while there is none.
func (c *Cluster) Leader() *Server {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	for _, s := range c.Servers {
		var jsz struct {
			Meta struct {
				Leader string `json:"leader"`
			} `json:"meta_cluster"`
		}
		if s.get(ctx, "/jsz", &jsz) == nil && jsz.Meta.Leader != "" {
			return c.Named(jsz.Meta.Leader)
		}
	}
	return nil
}

// Close ends all servers, and removes their data.
func (c *Cluster) Close() {
	for _, s := range c.Servers {
		s.Kill()
	}
	os.RemoveAll(c.dir)
}

// URL returns the address of the server.
func (s *Server) URL() string { return fmt.Sprintf("nats://127.0.0.1:%d", s.Port) }

// Log returns the last part of the server's log.
func (s *Server) Log() string {
	text, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}

// Run starts the process, with its earlier data if it was killed, and returns at once; see Ready.
func (s *Server) Run() error {
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd = exec.Command(s.binary, "-c", filepath.Join(s.dir, "nats.conf"))
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	ended, cmd := make(chan struct{}), s.cmd
	s.ended = ended
	go func() {
		_ = cmd.Wait() // its end is the test's affair
		close(ended)
	}()
	// The watcher ends the server when its input is closed, because this process has ended.
	watcher := exec.Command("sh", "-c", "read line; kill -9 "+fmt.Sprint(cmd.Process.Pid)+" 2>/dev/null")
	if s.end, err = watcher.StdinPipe(); err != nil {
		return err
	}
	if err := watcher.Start(); err != nil {
		return err
	}
	s.watcher = watcher
	return nil
}

// PID returns the number of the process started last.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Kill ends the process at once, as SIGKILL does, and returns when it has ended.
func (s *Server) Kill() { s.endBy(os.Kill) }

// Stop asks the process to end, as SIGTERM does, and returns when it has ended.
func (s *Server) Stop() { s.endBy(syscall.SIGTERM) }

func (s *Server) endBy(signal os.Signal) {
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	_ = s.cmd.Process.Signal(signal) // it may have ended
	<-s.ended
	if s.watcher != nil {
		_ = s.watcher.Process.Kill() // before it ends a process with the same number
		_ = s.watcher.Wait()
		s.watcher = nil
	}
}

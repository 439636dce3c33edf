// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/natstest"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// node is a gateway of the cluster, as a process, with a proxy of its own in front of each NATS server.
type node struct {
	name         string
	front, admin string // addresses
	proxies      []*natstest.Proxy
	command      []string
	other        string // the binary that an upgrade has it run, or go back to
	env          []string
	log          string // the file that the process logs to

	process *exec.Cmd
	ended   chan struct{} // closed when the process has ended

	mu       sync.Mutex
	troubles []trouble // in order; the last one may last
}

// trouble is a disturbance of a gateway, or of anything until all is well again, while it lasts.
type trouble struct {
	name     string
	from, to time.Time // to is zero while it lasts
	gone     bool      // the process is not there at times
	killed   bool      // it ends without a word
}

// begin notes that a trouble begins; end, that it is over.
func (n *node) begin(t trouble) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t.from = time.Now()
	n.troubles = append(n.troubles, t)
}

func (n *node) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.troubles[len(n.troubles)-1].to = time.Now()
}

// aftermath is how long the end of a trouble may be felt: leases lapse, streams elect their leaders, clients connect.
const aftermath = 10 * time.Second

// trouble returns what troubled the gateway between two times, or a moment before.
func (n *node) trouble(from, to time.Time) trouble {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := len(n.troubles) - 1; i >= 0; i-- {
		t := n.troubles[i]
		if t.from.Before(to) && (t.to.IsZero() || t.to.Add(aftermath).After(from)) {
			return t
		}
	}
	return trouble{}
}

// start starts the process, and returns when it listens.
func (n *node) start(ctx context.Context) error {
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	n.process = exec.Command(n.command[0], n.command[1:]...)
	n.process.Env, n.process.Stdout, n.process.Stderr = n.env, log, log
	n.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt of the terminal is for the run
	if err := n.process.Start(); err != nil {
		n.process = nil
		return err
	}
	ended, process := make(chan struct{}), n.process
	n.ended = ended
	go func() {
		_ = process.Wait() // how it ended is in its log
		close(ended)
	}()
	return await(ctx, time.Minute, func() error {
		select {
		case <-ended:
			return fmt.Errorf("%s has ended; see %s", n.name, n.log)
		default:
		}
		_, err := n.report(ctx)
		return err
	})
}

// swap has the process run the other binary from its next start on.
func (n *node) swap() { n.command[0], n.other = n.other, n.command[0] }

// signal sends a signal to the process.
func (n *node) signal(s os.Signal) { _ = n.process.Process.Signal(s) } // it may have ended

// kill ends the process at once.
func (n *node) kill() {
	if n.process != nil {
		n.signal(syscall.SIGKILL)
		<-n.ended
	}
}

// stop asks the process to end, and waits for it.
func (n *node) stop() error {
	const limit = time.Minute
	n.signal(syscall.SIGTERM)
	select {
	case <-n.ended:
		return nil
	case <-time.After(limit):
		n.kill()
		return fmt.Errorf("%s has not stopped within %v after a SIGTERM", n.name, limit)
	}
}

// report returns what the gateway knows of all.
func (n *node) report(ctx context.Context) (r adminapi.ClusterReport, err error) {
	err = n.get(ctx, adminapi.Cluster, &r)
	return r, err
}

// ready returns nil if the gateway says that it is ready.
func (n *node) ready(ctx context.Context) error {
	var h adminapi.Health
	return n.get(ctx, adminapi.HealthReady, &h)
}

// owned returns how many shards the gateway says that it owns; 0 where it does not answer. Its metrics ask no server,
// as its report of the cluster does.
func (n *node) owned(ctx context.Context) int {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return int(counters(ctx, n.admin)["aip_cluster_shards_owned"])
}

// get reads what the admin API answers.
func (n *node) get(ctx context.Context, path string, v any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	content, err := get(ctx, n.admin, path)
	if err != nil {
		return fmt.Errorf("%s: %w", n.name, err)
	}
	return json.Unmarshal(content, v)
}

// await calls f until it returns nil, for a time.
func await(ctx context.Context, limit time.Duration, f func() error) error {
	for deadline := time.Now().Add(limit); ; {
		err := f()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Now().After(deadline):
			return fmt.Errorf("after %v: %w", limit, err)
		}
		wait(ctx, 100*time.Millisecond)
	}
}

// newNode prepares a gateway, which is not started.
func (c *cluster) newNode(i int, caddy, other string) (*node, error) {
	n := &node{name: fmt.Sprintf("gateway-%d", i+1), other: other}
	free, err := freeAddresses(2)
	if err != nil {
		return nil, err
	}
	n.admin = free[0]
	n.front = strings.Replace(free[1], "127.0.0.1", "localhost", 1) // as the certificate has it
	var urls []string
	for _, s := range c.servers.Servers {
		p, err := natstest.NewProxy(s)
		if err != nil {
			return n, err
		}
		n.proxies = append(n.proxies, p)
		urls = append(urls, p.URL())
	}
	dir := filepath.Join(c.Dir, n.name)
	path := filepath.Join(dir, "Caddyfile")
	err = errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(path, c.config(n, urls), 0o600))
	n.command = []string{caddy, "run", "--config", path, "--adapter", "caddyfile"}
	n.env = append(os.Environ(), "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	n.log = filepath.Join(c.out, n.name+".log")
	return n, err
}

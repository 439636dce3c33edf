// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
	"github.com/aip-gateway/aip-gateway/internal/freeport"
)

// aunSite is a gateway with an agent for AUN clients, and a client with a token.
type aunSite struct {
	*site
	pki     *aunpeer.PKI
	address string
	client  *aunpeer.Client
	token   string
}

// agentAID is the AID of the agent.
const agentAID = "agent.aid.test"

// newAUNSite starts a gateway for AUN clients. The caller closes it.
func newAUNSite(ctx context.Context, caddy string) (_ *aunSite, err error) {
	dir, err := os.MkdirTemp("", "aip-bench-aun-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // the gateway reads its files when it starts
	pki, err := aunpeer.NewPKI("aid.test")
	if err != nil {
		return nil, err
	}
	own, err := pki.Issue("gateway.aid.test")
	if err != nil {
		return nil, err
	}
	text, err := own.PEM()
	if err != nil {
		return nil, err
	}
	cert, roots := filepath.Join(dir, "gateway.pem"), filepath.Join(dir, "roots.pem")
	for path, text := range map[string]string{cert: text, roots: pki.Issuer.ChainPEM()} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	port, err := freeport.Take()
	if err != nil {
		return nil, err
	}
	s := &aunSite{pki: pki, address: fmt.Sprintf("127.0.0.1:%d", port)}
	s.site, err = newSite(ctx, caddy, siteConfig{
		store: storeState + fmt.Sprintf("\n\t\taun {\n\t\t\tcert %s\n\t\t\troots %s\n\t\t}", cert, roots),
		more: fmt.Sprintf("http://127.0.0.1:%d {\n\tbind 127.0.0.1\n\taip_aun\n\taip_gateway a2a/legacy "+
			"http://127.0.0.1:AGENT {\n\t\taid %s\n\t\tcallers aip aun\n\t\tidentity off\n\t\tlimits {\n"+
			"\t\t\ttasks_per_leader 100000000\n\t\t}\n\t}\n}\n", port, agentAID),
	})
	if err != nil {
		return nil, err
	}
	if err := s.login(ctx, "alice.aid.test"); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// login has the connections from now on be those of an AID.
func (s *aunSite) login(ctx context.Context, aid string) error {
	id, err := s.pki.Issue(aid)
	if err != nil {
		return err
	}
	s.client = &aunpeer.Client{ID: id, PKI: s.pki, HTTP: aunpeer.To(s.address), URL: "ws://" + s.address + "/aun"}
	token, err := s.client.Login(ctx)
	s.token = token.Access
	return err
}

// connect opens a connection of a device.
func (s *aunSite) connect(ctx context.Context, device string) (*aunpeer.Conn, error) {
	conn, _, err := s.client.Connect(ctx, s.token, map[string]any{"device": map[string]any{"id": device}})
	return conn, err
}

// aunClients measures AUN clients: calls over one connection, and the memory of connections that wait.
func aunClients(ctx context.Context, o settings) error {
	s, err := newAUNSite(ctx, o.caddy)
	if err != nil {
		return err
	}
	defer s.close()
	conn, err := s.connect(ctx, "calls")
	if err != nil {
		return err
	}
	made, err := conn.Create(ctx, agentAID, "hello")
	if err != nil {
		return err
	}
	calls := o.table("calls of an AUN client over one connection, 16 at a time", "calls a second", "µs of CPU each")
	for _, c := range []struct {
		method string
		params any
	}{
		{"meta.ping", nil},
		{"task.get", map[string]any{"task_id": made.TaskID}},
		{"task.create", map[string]any{"to": agentAID, "input": aunpeer.Text("hello")}},
	} {
		rate, cpu, err := s.callsPerSecond(ctx, conn, o.round, c.method, c.params)
		if err != nil {
			return err
		}
		calls.row(c.method, rate, cpu)
	}
	conn.Cut()

	var at [2]float64
	var open []*aunpeer.Conn
	defer func() {
		for _, c := range open {
			c.Cut()
		}
	}()
	for i, n := range []int{idleFew, idleMany} {
		for len(open) < n {
			if len(open)%64 == 0 { // one AID may have so many
				if err := s.login(ctx, fmt.Sprintf("c%d.aid.test", len(open))); err != nil {
					return err
				}
			}
			c, err := s.connect(ctx, fmt.Sprint("d", len(open)))
			if err != nil {
				return err
			}
			open = append(open, c)
		}
		if at[i], err = s.idleRSS(ctx); err != nil {
			return err
		}
	}
	o.table("memory of an AUN connection that waits, gateway's side", "KiB each").
		row("WebSocket", (at[1]-at[0])/(idleMany-idleFew)/1024)
	return nil
}

// callsPerSecond calls a method for a time, 16 calls at once.
func (s *aunSite) callsPerSecond(
	ctx context.Context, conn *aunpeer.Conn, length time.Duration, method string, params any,
) (rate, cpu float64, err error) {
	before, err := s.cpu()
	if err != nil {
		return 0, 0, err
	}
	var n atomic.Int64
	var group sync.WaitGroup
	var failed atomic.Pointer[error]
	began := time.Now()
	for range 16 {
		group.Go(func() {
			for time.Since(began) < length && failed.Load() == nil {
				if _, err := conn.Call(ctx, method, params); err != nil {
					failed.Store(&err)
					return
				}
				n.Add(1)
			}
		})
	}
	group.Wait()
	took := time.Since(began).Seconds()
	if err := failed.Load(); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", method, *err)
	}
	after, err := s.cpu()
	return float64(n.Load()) / took, float64((after - before).Microseconds()) / float64(n.Load()), err
}

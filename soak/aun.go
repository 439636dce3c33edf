// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
)

// The names of AUN.
const (
	aunIssuer  = "aid.test"
	aunGateway = "gateway." + aunIssuer
	aunAgent   = "agent." + aunIssuer
)

// Who connects from where. Logins are limited for an address, too.
const (
	honestAddress   = "127.0.0.2"
	strangerAddress = "127.0.0.3"
	hostileAddress  = "127.0.0.4"
)

// aunSide is what the AUN side of a site and its callers need.
type aunSide struct {
	aunPKI                *aunpeer.PKI
	honestAID, hostileAID *aunpeer.Identity
	aunAddr               string

	tokens sync.Mutex // guards token
	token  string     // of the hostile AID
}

// newAUN makes the identities, and the files that the configuration names.
func (s *site) newAUN() error {
	var err error
	if s.aunPKI, err = aunpeer.NewPKI(aunIssuer); err != nil {
		return err
	}
	own, err := s.aunPKI.Issue(aunGateway)
	if err != nil {
		return err
	}
	if s.honestAID, err = s.aunPKI.Issue("honest." + aunIssuer); err != nil {
		return err
	}
	if s.hostileAID, err = s.aunPKI.Issue("hostile." + aunIssuer); err != nil {
		return err
	}
	pem, err := own.PEM()
	if err != nil {
		return err
	}
	chain, issuer := s.aunPKI.Issuer.ChainPEM(), s.aunPKI.Issuer.CertPEM()
	return errors.Join(
		os.WriteFile(filepath.Join(s.dir, "aun.pem"), []byte(pem), 0o600),
		os.WriteFile(filepath.Join(s.dir, "roots.pem"), []byte(chain[len(issuer):]+issuer), 0o600),
	)
}

// aun returns a client of an AID that connects from an address.
func (s *site) aun(id *aunpeer.Identity, from string) *aunpeer.Client {
	return &aunpeer.Client{ID: id, PKI: s.aunPKI, HTTP: s.aunHTTP(from, func(c net.Conn) net.Conn { return c }),
		Device: "device", URL: "wss://" + aunGateway + "/aun"}
}

// aunHTTP returns an HTTP client that takes the AUN side for every host. wrap sees its connections before TLS.
func (s *site) aunHTTP(from string, wrap func(net.Conn) net.Conn) *http.Client {
	c := aunpeer.To(s.aunAddr, s.ca)
	t := c.Transport.(*http.Transport)
	t.TLSClientConfig.ServerName = "localhost"
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	t.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, s.aunAddr)
		if err != nil {
			return nil, err
		}
		return wrap(conn), nil
	}
	return c
}

// hostileToken returns a token of the hostile AID, which logs in once.
func (s *site) hostileToken(ctx context.Context) (string, error) {
	s.tokens.Lock()
	defer s.tokens.Unlock()
	if s.token == "" {
		token, err := s.aun(s.hostileAID, hostileAddress).Login(ctx)
		if err != nil {
			return "", err
		}
		s.token = token.Access
	}
	return s.token, nil
}

// honestEvery is how often the honest AID logs in and has a task.
const honestEvery = 5 * time.Second

// runHonestAID logs in again and again, creates a task and reads its result. Each must succeed.
func (l *leaders) runHonestAID(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		if err := l.site.honestTask(ctx, fmt.Sprint("hello ", n)); err != nil && ctx.Err() == nil && !l.full.Load() {
			l.complain("the honest AID: %v", err)
		}
		l.aidTasks.Add(1)
		wait(ctx, honestEvery)
	}
}

func (s *site) honestTask(ctx context.Context, text string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := s.aun(s.honestAID, honestAddress)
	defer c.HTTP.CloseIdleConnections()
	conn, err := c.Online(ctx)
	for again := 0; isReset(err) && again < 3; again++ { // by a reload, before the connection was accepted
		wait(ctx, 100*time.Millisecond)
		conn, err = c.Online(ctx)
	}
	if err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	defer conn.Cut()
	t, err := conn.Create(ctx, aunAgent, text)
	if err != nil {
		return fmt.Errorf("task.create: %w", err)
	}
	for t.Status != "completed" {
		if aunpeer.Ended(t.Status) {
			return fmt.Errorf("the task is %s: %s", t.Status, t.Reason)
		}
		wait(ctx, 50*time.Millisecond)
		if t, err = conn.Do(ctx, "task.get", map[string]any{"task_id": t.TaskID}); err != nil {
			return fmt.Errorf("task.get: %w", err)
		}
	}
	if len(t.Artifacts) != 1 {
		return fmt.Errorf("the task has %d artifacts", len(t.Artifacts))
	}
	return nil
}

// isReset reports whether a connection was closed before anything was answered on it.
func isReset(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) }

// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/gateway"
)

// AUN are those of an agent of the dialect aun only.
type AUN struct {
	// For AUN, its AID.
	AID string `json:"aid,omitempty"`

	// For aun: the file with the gateway's AID, from `caddy aip aun-id`, with mode 0600. Default: cert of aun.
	Identity string `json:"identity,omitempty"`

	// For aun: PEM files with the roots of its certificates. Default: roots of aun.
	Roots []string `json:"roots,omitempty"`

	// For aun: silence after a message before the turn is over, of an agent with messages and no tasks. Default: 10s.
	IdleWindow caddy.Duration `json:"idle_window,omitempty"`
}

func (s *AUN) only() (dialect, names string, set bool) {
	return gateway.AUN, "aid, identity, roots and idle_window",
		s.AID != "" || s.Identity != "" || len(s.Roots) > 0 || s.IdleWindow != 0
}

func (s *AUN) check(a *Config) error {
	if _, err := aun.ParseAID(s.AID); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	switch {
	case len(a.HeaderUp) > 0:
		return errors.New("agent: header_up is not for an agent of aun")
	case s.IdleWindow < 0:
		return fmt.Errorf("%w; 0 means its default", conf.NotNegative("agent: idle_window", s.IdleWindow))
	}
	return nil
}

func (s *AUN) options(p *conf.Parser) conf.Options {
	return conf.Options{
		"identity": p.Word(&s.Identity), "roots": p.Words(&s.Roots), "idle_window": p.Duration(&s.IdleWindow),
	}
}

// readAUNArgs parses the arguments of an agent of AUN: its AID, and the URL if there is one.
func readAUNArgs(p *conf.Parser, a *Config) {
	if !p.NextArg() {
		p.Fail("agent aun needs the AID of the agent, such as agent.aid.pub")
		return
	}
	a.AID = p.Val()
	if p.NextArg() {
		a.URL = p.Val()
	}
	if p.NextArg() {
		p.Fail("agent aun takes an AID and a URL, but there is also " + strconv.Quote(p.Val()))
	}
}

// config returns the configuration of the connection of an agent of AUN. It reads files. own has the defaults.
func (s *AUN) config(
	repl *caddy.Replacer, a *Config, tls *tls.Config, own aun.ClientConfig,
) (c aun.ClientConfig, err error) {
	if a.Dialect != gateway.AUN {
		return c, nil
	}
	switch {
	case s.Identity != "":
		c.Identity, err = ReadIdentity(repl, s.Identity)
	case own.Identity != nil:
		c.Identity = own.Identity
	default:
		err = errors.New("it is missing; caddy aip aun-id makes the file that it needs")
	}
	if err != nil {
		return c, fmt.Errorf("identity: %w", err)
	}
	if len(c.Identity.Chain) == 0 {
		return c, fmt.Errorf("identity: %s has no certificate yet; caddy aip aun-id adds it", s.Identity)
	}
	switch {
	case len(s.Roots) > 0:
		c.Roots, err = ReadRoots(repl, s.Roots)
	case own.Roots != nil:
		c.Roots = own.Roots
	default:
		err = errors.New("roots: none are given; they need a PEM file with the roots of AUN's certificates")
	}
	if err != nil {
		return c, err
	}
	c.Peer, _ = aun.ParseAID(s.AID) // check has parsed it
	c.URL, c.Device = a.URL, device()
	// Only HTTP/1.1 has WebSocket here. The proxy settings of the environment are not used.
	c.HTTP = &http.Client{Transport: &http.Transport{TLSClientConfig: tls, DisableKeepAlives: true}}
	return c, nil
}

// ReadIdentity reads an identity from a file, in whose name it replaces placeholders.
func ReadIdentity(repl *caddy.Replacer, file string) (*aun.Identity, error) {
	file, err := conf.FileName(repl, file)
	if err != nil {
		return nil, err
	}
	return aun.LoadIdentity(file)
}

// ReadRoots reads roots from PEM files, in whose names it replaces placeholders.
func ReadRoots(repl *caddy.Replacer, files []string) (*aun.Roots, error) {
	names := make([]string, len(files))
	for i, file := range files {
		var err error
		if names[i], err = conf.FileName(repl, file); err != nil {
			return nil, fmt.Errorf("roots: %w", err)
		}
	}
	roots, err := aun.LoadRoots(names)
	if err != nil {
		return nil, fmt.Errorf("roots: %w", err)
	}
	return roots, nil
}

// WarnOfOrphans warns of certificates among the roots whose issuers are not there.
func WarnOfOrphans(log *slog.Logger, roots *aun.Roots) {
	if roots == nil {
		return
	}
	for _, c := range roots.Orphans() {
		log.Warn("a certificate in roots leads to no root: add the certificate of its issuer to roots",
			"subject", c.Subject.String(), "issuer", c.Issuer.String())
	}
}

// device names this machine to gateways of AUN, which keep one connection of an AID for each device. It does
// not contain the machine's name.
func device() string {
	name, _ := os.Hostname()
	sum := sha256.Sum256([]byte("aip-gateway " + name))
	return hex.EncodeToString(sum[:8])
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/aip-gateway/aip-gateway/cli/devpki"
	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/aunpeer"
)

// fixture is what all processes of a run have to know of it. It crosses to them as JSON.
type fixture struct {
	Dir string
	PKI *devpki.PKI
	AIC string // of the Partner

	Admin, Front, AUN, Agent, BadAgent string // addresses

	// What follows is read from Dir.
	ca                    *x509.Certificate // of its root
	aunPKI                *aunpeer.PKI
	honestAID, hostileAID *aunpeer.Identity
	awayAID               *aunpeer.Identity // logs in once, and leaves
}

// make makes a new directory, the certificates in it, and addresses that are free.
func (s *fixture) make() (err error) {
	if s.Dir, err = os.MkdirTemp("", "aip-soak-"); err != nil {
		return err
	}
	if s.PKI, err = devpki.Make(devpki.Options{Dir: filepath.Join(s.Dir, "pki")}); err != nil {
		return err
	}
	aic, err := identity.MakeV1(identity.FieldsV1{})
	if err != nil {
		return err
	}
	s.AIC = string(aic)
	if err := s.makeAIDs(); err != nil {
		return err
	}
	free, err := freeAddresses(5)
	if err != nil {
		return err
	}
	s.Admin, s.Front, s.AUN, s.Agent, s.BadAgent = free[0], free[1], free[2], free[3], free[4]
	for _, name := range []*string{&s.Front, &s.BadAgent} { // as the certificate has it
		*name = strings.Replace(*name, "127.0.0.1", "localhost", 1)
	}
	return s.read()
}

// makeAIDs makes the identities of AUN, and the roots that the configuration names.
func (s *fixture) makeAIDs() error {
	pki, err := aunpeer.NewPKI(aunIssuer)
	if err != nil {
		return err
	}
	for aid, file := range map[string]string{
		aunGateway: "aun.pem", "honest." + aunIssuer: "honest.pem", "hostile." + aunIssuer: "hostile.pem",
		"away." + aunIssuer: "away.pem",
	} {
		id, err := pki.Issue(aid)
		if err != nil {
			return err
		}
		pem, err := id.PEM()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(s.Dir, file), []byte(pem), 0o600); err != nil {
			return err
		}
	}
	roots := pki.Root.CertPEM() + pki.Issuer.CertPEM()
	return os.WriteFile(filepath.Join(s.Dir, "roots.pem"), []byte(roots), 0o600)
}

// read reads what there is in the directory.
func (s *fixture) read() error {
	ca, err := tls.LoadX509KeyPair(s.PKI.CA.Cert, s.PKI.CA.Key)
	if err != nil {
		return err
	}
	s.ca = ca.Leaf
	for file, id := range map[string]**aunpeer.Identity{
		"honest.pem": &s.honestAID, "hostile.pem": &s.hostileAID, "away.pem": &s.awayAID,
	} {
		if *id, err = readIdentity(filepath.Join(s.Dir, file)); err != nil {
			return err
		}
	}
	above := s.honestAID.Chain[1:]
	s.aunPKI = &aunpeer.PKI{Name: aunIssuer, Issuer: &aunpeer.Identity{Chain: above},
		Root: &aunpeer.Identity{Chain: above[len(above)-1:]}}
	return nil
}

// readIdentity reads a key with its chain.
func readIdentity(file string) (*aunpeer.Identity, error) {
	pair, err := tls.LoadX509KeyPair(file, file)
	if err != nil {
		return nil, err
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New(file + " has no key of ECDSA")
	}
	id := &aunpeer.Identity{AID: pair.Leaf.Subject.CommonName, Key: key}
	for _, der := range pair.Certificate {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		id.Chain = append(id.Chain, cert)
	}
	return id, nil
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

// certificates makes certificates of n Leaders of a kind, below the same root.
func (s *fixture) certificates(kind string, n int) (files []devpki.File, err error) {
	for i := 0; len(files) < n; i++ {
		dir := filepath.Join(s.Dir, fmt.Sprint(kind, "-", i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
		for _, path := range []string{s.PKI.CA.Cert, s.PKI.CA.Key} {
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
func (s *fixture) client(file *devpki.File) (*leader.Client, error) { return s.clientOf("", file) }

// clientOf is client for the Partner at a path.
func (s *fixture) clientOf(path string, file *devpki.File) (*leader.Client, error) {
	config, err := s.tls(file)
	if err != nil {
		return nil, err
	}
	c, err := leader.New("https://"+s.Front+path, config)
	if err == nil && file != nil {
		c.Sender = string(file.AIC)
	}
	return c, err
}

func (s *fixture) tls(file *devpki.File) (*tls.Config, error) {
	pem, err := os.ReadFile(s.PKI.CA.Cert)
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

// aun returns a client of an AID that connects from an address.
func (s *fixture) aun(id *aunpeer.Identity, from string) *aunpeer.Client {
	return &aunpeer.Client{ID: id, PKI: s.aunPKI, HTTP: s.aunHTTP(from, func(c net.Conn) net.Conn { return c }),
		Device: "device", URL: "wss://" + aunGateway + "/aun"}
}

// aunHTTP returns an HTTP client that takes the AUN side for every host. wrap sees its connections before TLS.
func (s *fixture) aunHTTP(from string, wrap func(net.Conn) net.Conn) *http.Client {
	c := aunpeer.To(s.AUN, s.ca)
	t := c.Transport.(*http.Transport)
	t.TLSClientConfig.ServerName = "localhost"
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	t.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, s.AUN)
		if err != nil {
			return nil, err
		}
		return wrap(conn), nil
	}
	return c
}

// SPDX-License-Identifier: Apache-2.0

package acps

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/acps/adp"
	"github.com/aip-gateway/aip-gateway/caddymodule/certfile"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
)

// Discovery names the discovery servers at which the Partners are to be found, and how they are asked.
type Discovery struct {
	// Their base URLs, such as https://discovery.example.com/acps-adp-v2. Default: none.
	Servers []string `json:"servers,omitempty"`

	// PEM files with their roots. Default: the system's.
	CA []string `json:"ca,omitempty"`

	// PEM files with the client certificate for them, and its key, read at each connection.
	Cert string `json:"cert,omitempty"`

	// Default: none.
	Key string `json:"key,omitempty"`

	client *http.Client
}

// DiscoveryOption returns what reads the option. Syntax:
//
//	discovery <url>... {
//		ca          <file>...
//		client_cert <cert> <key>
//	}
func DiscoveryOption(p *conf.Parser, into **Discovery) func() {
	return func() {
		d := new(Discovery)
		*into = d
		p.Words(&d.Servers)()
		p.Block("discovery", conf.Options{
			"ca":          p.Words(&d.CA),
			"client_cert": p.CertAndKey(&d.Cert, &d.Key),
		})
	}
}

// Provision makes the client, which connects to nothing yet.
func (d *Discovery) Provision() error {
	if d == nil {
		return nil
	}
	if len(d.Servers) == 0 {
		return errors.New("discovery: write the URL of a discovery server behind it")
	}
	for _, s := range d.Servers {
		if err := conf.PublicURL("discovery", s); err != nil {
			return err
		}
	}
	var err error
	if d.client, err = discoveryClient(d.CA, d.Cert, d.Key); err != nil {
		return fmt.Errorf("discovery: %w", err)
	}
	return nil
}

// discoveryClient returns what asks discovery servers with certificates below roots in files, which are shown a client
// certificate.
func discoveryClient(ca []string, cert, key string) (*http.Client, error) {
	repl := caddy.NewReplacer()
	roots, err := certfile.ReadPool(repl, ca)
	if err != nil {
		return nil, err
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	if err := certfile.Present(secure, repl, cert, key); err != nil {
		return nil, err
	}
	return &http.Client{
		Timeout:   askPatience,
		Transport: &http.Transport{TLSClientConfig: secure, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10},
		// A server that sends on is not the one that is asked what it knows.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// askPatience is how long one answer of a discovery server may take.
const askPatience = 5 * time.Second

// Clients return what asks the servers.
func (d *Discovery) Clients() (all []adp.Client) {
	if d == nil {
		return nil
	}
	for _, server := range d.Servers {
		all = append(all, adp.Client{URL: server, HTTP: d.client})
	}
	return all
}

// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/acps/adp"
	"github.com/aip-gateway/aip-gateway/caddymodule/certfile"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// Discovery names the discovery servers at which the Partners are to be found, and how they are asked.
type Discovery struct {
	// The base URLs of the servers, such as https://discovery.example.com/acps-adp-v2. Required.
	Servers []string `json:"servers,omitempty"`

	// PEM files with the trusted roots of their certificates. Default: the system's.
	CA []string `json:"ca,omitempty"`

	// The PEM file with the client certificate that is shown to them. Default: none.
	Cert string `json:"cert,omitempty"`

	// The PEM file with the key of cert. Required with it.
	Key string `json:"key,omitempty"`

	client *http.Client
}

// discoveryOption returns what reads the option. Syntax:
//
//	discovery <url>... {
//		ca          <file>...
//		client_cert <cert> <key>
//	}
func discoveryOption(p *conf.Parser, into **Discovery) func() {
	return func() {
		d := new(Discovery)
		*into = d
		p.Words(&d.Servers)()
		p.Block("discovery", conf.Options{
			"ca": p.Words(&d.CA),
			"client_cert": p.Pair("a certificate and a key, both PEM files", func(cert, key string) {
				d.Cert, d.Key = cert, key
			}),
		})
	}
}

// provision makes the client, which connects to nothing yet.
func (d *Discovery) provision() error {
	if d == nil {
		return nil
	}
	if len(d.Servers) == 0 {
		return errors.New("discovery: write the URL of a discovery server behind it")
	}
	for _, s := range d.Servers {
		if err := checkPublicURL("discovery", s); err != nil {
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

const (
	askPatience = 5 * time.Second // for one answer of a discovery server
	askOnce     = 4               // questions to one discovery server at the same time
)

// checkDiscovery asks each discovery server for each Partner with an AIC.
func checkDiscovery(o *openStore, r *http.Request) (any, error) {
	app := o.newest()
	if app == nil || app.Discovery == nil {
		return nil, task.Errorf(task.UnsupportedOperation,
			"no discovery server is configured; write discovery <url> in the global option aip")
	}
	var aics []string
	for _, p := range app.configuration.Partners() {
		if p.AIC != "" && !slices.Contains(aics, p.AIC) {
			aics = append(aics, p.AIC)
		}
	}
	slices.Sort(aics)
	list := make([]adminapi.Discovered, len(aics)*len(app.Discovery.Servers))
	var all sync.WaitGroup
	for i, server := range app.Discovery.Servers {
		client := adp.Client{URL: server, HTTP: app.Discovery.client}
		slots := make(chan struct{}, askOnce)
		for j, aic := range aics {
			all.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				list[i*len(aics)+j] = discovered(r.Context(), client, aic)
			})
		}
	}
	all.Wait()
	return adminapi.DiscoveredList{Agents: list}, nil
}

// discovered asks a discovery server for a Partner.
func discovered(ctx context.Context, of adp.Client, aic string) adminapi.Discovered {
	d := adminapi.Discovered{Server: of.URL, Partner: aic}
	a, err := of.Ask(ctx, aic)
	if err != nil {
		d.State, d.Reason = adminapi.NotAsked, unaskedBecause(err)
		return d
	}
	d.State, d.Seen = string(a.State), a.Seen
	return d
}

// unaskedBecause says why a server could not be asked, without its URL, which stands beside it.
func unaskedBecause(err error) string {
	if e, ok := errors.AsType[*url.Error](err); ok {
		if e.Timeout() {
			return fmt.Sprintf("it has not answered within %s", askPatience)
		}
		err = e.Err
	}
	return strings.TrimSpace(err.Error())
}

// SPDX-License-Identifier: Apache-2.0

package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
)

// Options say where the agent is, and as who it is called.
type Options struct {
	URL      string // where the card lives
	Endpoint string // where calls go, without asking for a card; empty means as the card says

	CA string // a PEM file with whom to trust; empty for the system's roots

	cert, key, apiKey string
}

func (o *Options) register(flags *flag.FlagSet) {
	flags.StringVar(&o.URL, "url", "", "the `URL` under which the card lives")
	flags.StringVar(&o.Endpoint, "endpoint", "", "call this `URL`, without asking for a card")
	flags.StringVar(&o.cert, "cert", "", "the client's certificate, a PEM `file`")
	flags.StringVar(&o.key, "key", "", "its private key, a PEM `file`")
	flags.StringVar(&o.CA, "ca", "", "whom to trust instead of the system's roots, a PEM `file`")
	flags.StringVar(&o.apiKey, "api-key", "", "the `key` to send as X-API-Key")
}

// HTTP returns the client for cards and calls. It has no time limit of its own: the context has.
func (o Options) HTTP() (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	var err error
	if transport.TLSClientConfig, err = o.TLS(); err != nil {
		return nil, err
	}
	return &http.Client{Transport: keyed{o.apiKey, transport}}, nil
}

// TLS returns whom to trust, and the certificate to show.
func (o Options) TLS() (*tls.Config, error) {
	config := new(tls.Config)
	if o.CA != "" {
		b, err := os.ReadFile(o.CA)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("%s holds no certificate", o.CA)
		}
	}
	if (o.cert == "") != (o.key == "") {
		return nil, errors.New("-cert and -key go together")
	}
	if o.cert != "" {
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// keyed sends an API key along, if it is not empty.
type keyed struct {
	key  string
	next http.RoundTripper
}

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	if k.key != "" {
		r = r.Clone(r.Context()) // a RoundTripper may not change a request
		r.Header.Set("X-API-Key", k.key)
	}
	return k.next.RoundTrip(r)
}

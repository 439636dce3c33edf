// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
)

// WellKnown is the path of a host's list of its gateways.
const WellKnown = "/.well-known/aun-gateway"

// IssuersPath is the path of a gateway's issuers' certificates, up to the root, in PEM.
const IssuersPath = "/pki/chain"

const (
	maxDiscovery    = 64 << 10 // bytes of an answer
	maxGateways     = 8
	defaultPriority = 999 // of a gateway without one
)

// Discover returns the URLs of the gateways of an AID, in the order for trying them. It asks gateway.{issuer}, and if
// this names none the AID's own host.
func Discover(ctx context.Context, client *http.Client, aid AID) ([]string, error) {
	var failed error
	for _, host := range []string{"gateway." + aid.Issuer(), string(aid)} {
		urls, err := gatewaysOf(ctx, client, host)
		if err == nil {
			return urls, nil
		}
		failed = errors.Join(failed, fmt.Errorf("%s: %w", host, err))
	}
	return nil, failed
}

func gatewaysOf(ctx context.Context, client *http.Client, host string) ([]string, error) {
	body, err := get(ctx, client, "https://"+host+WellKnown, maxDiscovery)
	if err != nil {
		return nil, err
	}
	return readGateways(body)
}

// get fetches a document. Of a document larger than most bytes, it returns one byte more than most.
func get(ctx context.Context, client *http.Client, address string, most int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers with the status %d", res.StatusCode)
	}
	return io.ReadAll(io.LimitReader(res.Body, most+1))
}

// issuersOf fetches the certificates of the issuers from a gateway, given by the URL of its WebSocket.
func issuersOf(ctx context.Context, client *http.Client, gateway *url.URL) ([]*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	at := url.URL{Scheme: "https", Host: gateway.Host, Path: IssuersPath}
	if gateway.Scheme == "ws" {
		at.Scheme = "http"
	}
	text, err := get(ctx, client, at.String(), maxPEM)
	if err != nil {
		return nil, err
	}
	return ParseChain(string(text))
}

// readGateways reads a host's answer with its gateways.
func readGateways(body []byte) ([]string, error) {
	answer, bad := jsonrpc.ParseValue(body, jsonrpc.Limits{Bytes: maxDiscovery})
	if bad != nil {
		return nil, errors.New("its answer is not JSON")
	}
	type gateway struct {
		url      string
		priority int64
	}
	var list []gateway
	for _, g := range answer.Get("gateways").Array() {
		address := g.Get("url").String()
		if CheckURL(address) != nil || len(list) == maxGateways {
			continue
		}
		priority := g.Get("priority").Int()
		if priority <= 0 {
			priority = defaultPriority
		}
		list = append(list, gateway{address, priority})
	}
	if len(list) == 0 {
		return nil, errors.New("it names no gateway with a wss:// URL")
	}
	slices.SortStableFunc(list, func(a, b gateway) int { return int(a.priority - b.priority) })
	var urls []string
	for _, g := range list {
		urls = append(urls, g.url)
	}
	return urls, nil
}

// CheckURL returns an error if a text is not the URL of a WebSocket.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "wss" && u.Scheme != "ws":
		return errors.New("it is no wss:// or ws:// URL")
	case u.User != nil:
		return errors.New("it must not hold credentials")
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"log/slog"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/agentca"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/registry"
)

// feeds are those of all configurations, by the registry and the roots that it is trusted by: whatever follows a
// registry follows it once, and over reloads.
var feeds = caddy.NewUsagePool()

// sharedFeed is the feed of one registry, in use until leave is called.
type sharedFeed struct {
	*registry.Feed
	key string
}

// Destruct implements caddy.Destructor.
func (f *sharedFeed) Destruct() error {
	f.Close()
	return nil
}

// useFeed returns the feed of a registry. It is not started.
func useFeed(url string, roots []*x509.Certificate) (*sharedFeed, error) {
	key := sha256.New()
	fmt.Fprintf(key, "%q", url)
	for _, cert := range roots {
		key.Write(cert.Raw)
	}
	name := string(key.Sum(nil))
	feed, _, err := feeds.LoadOrNew(name, func() (caddy.Destructor, error) {
		client, err := registry.New(registry.Config{URL: url, Roots: poolOf(roots)})
		if err != nil {
			return nil, err
		}
		return &sharedFeed{registry.NewFeed(client, slog.New(processLog{name: "aip"})), name}, nil
	})
	if err != nil {
		return nil, err
	}
	return feed.(*sharedFeed), nil
}

// leave ends the use of the feed; the last one closes it.
func (f *sharedFeed) leave() { _, _ = feeds.Delete(f.key) } // which has no error

// poolOf returns a pool of roots; nil, for those of the system, without any.
func poolOf(roots []*x509.Certificate) *x509.CertPool {
	if len(roots) == 0 {
		return nil
	}
	pool := x509.NewCertPool()
	for _, cert := range roots {
		pool.AddCert(cert)
	}
	return pool
}

// readRootFiles reads the roots in PEM files.
func readRootFiles(files []string) (all []*x509.Certificate, err error) {
	for _, file := range files {
		found, err := doctor.ReadCertificates(file)
		if err != nil {
			return nil, fmt.Errorf("ca: %s: %w", file, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// followRegistry has the certificates of an agent looked after at once when the registry has disabled it, which revokes
// them, and when it has enabled it again.
func (c *Certificates) followRegistry(ctx context.Context, keepers map[string]*agentca.Keeper) {
	active := make(map[string]bool)
	for {
		changed := c.feed.Changed()
		for aic, k := range keepers {
			now := c.feed.Agent(aic)
			if was, is := active[aic]; now.Known && is && was != now.Active {
				k.Wake()
			}
			if now.Known {
				active[aic] = now.Active
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

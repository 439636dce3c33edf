// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/aip-gateway/aip-gateway/acps/adp"
	"github.com/aip-gateway/aip-gateway/acps/locate"
	"github.com/aip-gateway/aip-gateway/acps/registry"
	"github.com/aip-gateway/aip-gateway/identity"
)

// The environment variables with the defaults of --registry and --discovery.
const (
	registryEnv  = "AIP_REGISTRY"
	discoveryEnv = "AIP_DISCOVERY"
)

// findTimeout is the time to find an agent.
const findTimeout = 30 * time.Second

// findFlags are the servers to ask for the address of a Partner.
type findFlags struct{ registries, discovery []string }

func (f *findFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.registries, "registry", nil,
		"the URL of a registry that knows where the AIC is; may be repeated (default: $"+registryEnv+")")
	flags.StringArrayVar(&f.discovery, "discovery", nil,
		"the base URL of a discovery server, asked after the registries; may be repeated (default: $"+discoveryEnv+")")
}

// findAIC finds a Partner by its AIC; the Partner's certificate must then have it. It returns nil if the name is no
// AIC, or if there is no server to ask.
func (f *connectionFlags) findAIC(ctx context.Context, name string) (*locate.Agent, error) {
	aic, err := identity.ParseAIC(name)
	if err != nil {
		return nil, nil
	}
	sources, err := f.sources()
	if err != nil || len(sources) == 0 {
		return nil, err
	}
	if f.partner == "" {
		f.partner = string(aic)
	}
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	agent, err := locate.New(sources, nil).Find(ctx, string(aic))
	switch {
	case registry.Is(err, registry.Inactive):
		return nil, fmt.Errorf("%w; its owner, or the registry, has disabled it", err)
	case registry.Is(err, registry.NotFound), registry.Is(err, registry.Refused):
		return nil, fmt.Errorf("%w; check the AIC, and which registry has assigned it", err)
	case err != nil:
		return nil, f.explain(err)
	}
	return &agent, nil
}

// locate sets the URL of the Partner named by an argument. If a Partner was found by its AIC, its dialect and AIC are
// then in the flags, and so in the command to continue.
func (c *leaderCall) locate(name string) error {
	found, err := c.connection.findAIC(c.cmd.Context(), name)
	if found == nil {
		if err == nil {
			c.url, err = c.admin.partnerURL(name)
		}
		return err
	}
	c.url = found.URL
	flags := c.cmd.Flags()
	if !flags.Changed("dialect") {
		err = flags.Set("dialect", found.Dialect)
	}
	return errors.Join(err, flags.Set("partner", c.connection.partner))
}

// sources returns the registries and discovery servers to be asked.
func (f *connectionFlags) sources() (sources []locate.Source, err error) {
	roots, err := f.roots()
	if err != nil {
		return nil, err
	}
	cert, err := f.certificate()
	if err != nil {
		return nil, err
	}
	show := f.shows(cert)
	of := func(urls []string, env string) []string {
		if len(urls) == 0 {
			return strings.Fields(os.Getenv(env))
		}
		return urls
	}
	for _, u := range of(f.find.registries, registryEnv) {
		client, err := registry.New(registry.Config{URL: u, Roots: roots, Certificate: show})
		if err != nil {
			return nil, fmt.Errorf("--registry: %w", err)
		}
		sources = append(sources, locate.Registry(client, nil))
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, GetClientCertificate: show}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, DisableKeepAlives: true}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	for _, u := range of(f.find.discovery, discoveryEnv) {
		if u, err = registry.CheckURL(u); err != nil {
			return nil, fmt.Errorf("--discovery: %w", err)
		}
		sources = append(sources, locate.Discovery(&adp.Client{URL: u, HTTP: client}))
	}
	return sources, nil
}

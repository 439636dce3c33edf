// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/aip-gateway/aip-gateway/find"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/registry"
)

// The environment that has the defaults of --registry and --discovery.
const (
	registryEnv  = "AIP_REGISTRY"
	discoveryEnv = "AIP_DISCOVERY"
)

// findTimeout is how long it may take to find an agent.
const findTimeout = 30 * time.Second

// findFlags are the servers that know where a Partner is.
type findFlags struct{ registries, discovery []string }

func (f *findFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.registries, "registry", nil,
		"the URL of a registry that knows where the AIC is; may be repeated (default: $"+registryEnv+")")
	flags.StringArrayVar(&f.discovery, "discovery", nil,
		"the base URL of a discovery server, asked after the registries; may be repeated (default: $"+discoveryEnv+")")
}

// findAIC finds a Partner that is given by its AIC, which its certificate must then have. It returns nil where that is
// no AIC, or where there is no server to ask.
func (f *connectionFlags) findAIC(ctx context.Context, name string) (*find.Agent, error) {
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
	agent, err := find.New(sources, nil).Find(ctx, string(aic))
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

// locate sets the URL of the Partner that an argument names. How a Partner is called that was found by its AIC is then
// in the flags, which a command that continues gets.
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

// sources returns the registries and discovery servers that are to be asked.
func (f *connectionFlags) sources() (sources []find.Source, err error) {
	roots, err := f.roots()
	if err != nil {
		return nil, err
	}
	cert, err := f.certificate()
	if err != nil {
		return nil, err
	}
	open := func(flag string, urls []string, env string, use func(*registry.Client)) error {
		if len(urls) == 0 {
			urls = strings.Fields(os.Getenv(env))
		}
		for _, u := range urls {
			client, err := registry.New(registry.Config{URL: u, Roots: roots, Certificate: cert})
			if err != nil {
				return fmt.Errorf("--%s: %w", flag, err)
			}
			use(client)
		}
		return nil
	}
	err = errors.Join(
		open("registry", f.find.registries, registryEnv, func(c *registry.Client) {
			sources = append(sources, find.Source{Name: "registry " + c.URL(), ACS: c.ACS})
		}),
		open("discovery", f.find.discovery, discoveryEnv, func(c *registry.Client) {
			sources = append(sources, find.Source{Name: "discovery " + c.URL(), ACS: c.Discover})
		}))
	return sources, err
}

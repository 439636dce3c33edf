// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/egress"
)

// OrDefault sets a value that is not set.
func OrDefault[T comparable](value *T, otherwise T) {
	var unset T
	if *value == unset {
		*value = otherwise
	}
}

// NotNegative checks a duration.
func NotNegative(setting string, d caddy.Duration) error {
	if d < 0 {
		return fmt.Errorf("%s is %s, but must not be negative", setting, time.Duration(d))
	}
	return nil
}

// NotNegativeNumber is NotNegative for a number.
func NotNegativeNumber[N int | int64](setting string, n N) error {
	if n < 0 {
		return fmt.Errorf("%s is %d, but must not be negative", setting, n)
	}
	return nil
}

// AIC reads an AIC in a setting. It returns its canonical form.
func AIC(setting, s string) (identity.AIC, error) {
	if err := Literal(setting, s); err != nil {
		return "", err
	}
	aic, err := identity.ParseAIC(s)
	if err != nil {
		return "", fmt.Errorf("%s: %q: %w", setting, s, err)
	}
	return aic, nil
}

// BasePath checks the path under which a Partner is mounted, if it is set.
func BasePath(path string) error {
	if err := Literal("base_path", path); err != nil {
		return err
	}
	if path != "" && !strings.HasPrefix(path, "/") {
		return fmt.Errorf("base_path: %q does not begin with a slash", path)
	}
	return nil
}

// PublicURL checks an option that URLs for others begin with, if it is set.
func PublicURL(option, s string) error {
	if s == "" {
		return nil
	}
	if err := Literal(option, s); err != nil {
		return err
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%s: %q is no http or https URL", option, s)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%s must be a URL without credentials, query and fragment", option)
	}
	return nil
}

// Networks returns the policy that allows networks beside public ones.
func Networks(allow []string) (p egress.Policy, err error) {
	for _, s := range allow {
		prefix, err := netip.ParsePrefix(s)
		if err != nil {
			return p, fmt.Errorf("allow_networks: %q is no network, such as 10.0.0.0/8", s)
		}
		p.Allow = append(p.Allow, prefix.Masked())
	}
	return p, nil
}

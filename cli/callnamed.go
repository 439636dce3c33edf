// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// partnerURL returns the URL of the Partner named by an argument: by its URL, or by its name at the gateway of this
// machine. The gateway is asked for it.
func (f *adminFlags) partnerURL(named string) (string, error) {
	if strings.Contains(named, ":") {
		return named, nil
	}
	var health adminapi.Health
	if _, err := f.ask(http.MethodGet, adminapi.HealthReady, nil, nil, &health); err != nil {
		return "", fmt.Errorf("%q is no URL, and the gateway cannot be asked for a Partner of this name: %w", named, err)
	}
	var names []string
	for _, a := range health.Agents {
		switch {
		case a.Name != named && a.Partner != named:
			names = append(names, a.Name)
		case a.URL == "":
			return "", fmt.Errorf("the configuration does not say at which URL %s is; use its URL, or set public_url", named)
		default:
			return a.URL, nil
		}
	}
	return "", fmt.Errorf("there is no Partner %q at the gateway; it has %s", named, clean(strings.Join(names, ", ")))
}

// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/aip-gateway/aip-gateway/acps/adp"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// askOnce is how many questions one discovery server is asked at the same time.
const askOnce = 4

// checkDiscovery asks each discovery server for each Partner with an AIC.
func checkDiscovery(a *Admin, r *http.Request) (any, error) {
	servers := a.current().Servers
	if len(servers) == 0 {
		return nil, task.Errorf(task.UnsupportedOperation,
			"no discovery server is configured; write discovery <url> in the global option aip")
	}
	var aics []string
	for _, p := range a.Partners() {
		if p.AIC != "" && !slices.Contains(aics, p.AIC) {
			aics = append(aics, p.AIC)
		}
	}
	slices.Sort(aics)
	list := make([]adminapi.Discovered, len(aics)*len(servers))
	var all sync.WaitGroup
	for i, client := range servers {
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
		d.State, d.Reason = adminapi.NotAsked, unaskedBecause(err, of.HTTP)
		return d
	}
	d.State, d.Seen = string(a.State), a.Seen
	return d
}

// unaskedBecause says why a server could not be asked, without its URL, which stands beside it.
func unaskedBecause(err error, by *http.Client) string {
	if e, ok := errors.AsType[*url.Error](err); ok {
		if e.Timeout() {
			return fmt.Sprintf("it has not answered within %s", by.Timeout)
		}
		err = e.Err
	}
	return strings.TrimSpace(err.Error())
}

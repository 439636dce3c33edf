// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
)

// gets measures get of tasks that wait for their Leader, against a call through reverse_proxy.
func gets(ctx context.Context, o settings) error {
	s, err := newSite(ctx, o.caddy, siteConfig{fill: filling(ctx, few)})
	if err != nil {
		return err
	}
	defer s.close()
	p, err := s.alternate(ctx, o, getOne(s, few), a2aSend(s, plain, "reverse_proxy", portProxy), o.conns)
	if err != nil {
		return err
	}
	p.name = plural(o.conns, "connection")
	o.compared("get of one of 1000 tasks that wait", []pairs{p})
	return nil
}

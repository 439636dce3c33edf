// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/egress"
)

// TestClosedPlaces: what is closed to webhooks and groups is what a configuration says of the gateway itself: its
// sites, by their names where others may share their address, its agents, and what decides for it. Other sites stay
// open.
func TestClosedPlaces(t *testing.T) {
	s := newSite(t)
	_, text, err := net.SplitHostPort(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(n)
	s.loadLogged("", "http://"+s.addr+` {
		bind 127.0.0.1
		aip_gateway aip https://agent.example.com/a {
			aic 10001000011K912345E789ABCDEF2353
			public_url https://partner.example.com
			policy {
				decide http://127.0.0.1:8181/v1/data/aip
			}
		}
	}
	http://second.example.com:`+text+` {
		bind 127.0.0.1
		aip_gateway a2a/legacy https://localhost:8443 {
			identity off
		}
	}
	http://Console.example.com:`+text+` {
		bind 127.0.0.1
		aip_console
	}
	http://*.health.example.com:`+text+` {
		bind 127.0.0.1
		aip_health
	}
	http://push.example.com:`+text+` {
		bind 127.0.0.1
		aip_callback
	}
	http://hooks.example.com:`+text+` {
		bind 127.0.0.1
		respond "a receiver"
	}`)
	want := []egress.Place{
		{Host: "127.0.0.1", Port: 8181},
		{Host: "127.0.0.1", Port: port}, // of any name below health.example.com
		{Host: "127.0.0.1", Port: port, Names: []string{"127.0.0.1"}},
		{Host: "127.0.0.1", Port: port, Names: []string{"console.example.com"}},
		{Host: "127.0.0.1", Port: port, Names: []string{"second.example.com"}},
		{Host: "localhost", Port: 8443}, // whatever name leads there
		{Host: "agent.example.com", Port: 443, Names: []string{"agent.example.com"}},
		{Host: "partner.example.com", Port: 443, Names: []string{"partner.example.com"}},
	}
	got := running().newest().Notify.Guard().Closed
	for _, all := range [][]egress.Place{got, want} {
		slices.SortFunc(all, func(a, b egress.Place) int {
			return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Port, b.Port), slices.Compare(a.Names, b.Names))
		})
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

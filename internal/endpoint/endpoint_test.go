// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMount(t *testing.T) {
	for address, want := range map[string]string{
		"https://a.example":           "https://a.example",
		"https://a.example/":          "https://a.example",
		"https://a.example/rpc":       "https://a.example",
		"https://a.example/one":       "https://a.example/one",
		"https://a.example/one/":      "https://a.example/one",
		"https://a.example/one/rpc":   "https://a.example/one",
		"https://a.example/rpc/":      "https://a.example/rpc", // a mount point of this name
		"https://a.example/rpc/rpc":   "https://a.example/rpc",
		"https://rpc":                 "https://rpc",
		"https://rpc/rpc":             "https://rpc",
		"https://a.example/grpc":      "https://a.example/grpc",
		"https://a.example/{AIC}/rpc": "https://a.example/{AIC}",
		"https://a.example/one?x=/a":  "https://a.example/one?x=/a",
	} {
		got := Mount(address)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", address, diff)
		}
		if got != want || Mount(Of(got)) != got {
			t.Errorf("%s: the mount point of %s is %s", address, Of(got), Mount(Of(got)))
		}
	}
}

func TestSame(t *testing.T) {
	const endpoint = "https://a.example/one/rpc"
	for registered, want := range map[string]bool{
		endpoint:                       true,
		"https://a.example/one":        true,
		"https://a.example/one/":       true,
		"https://a.example/one/stream": false,
		"https://a.example":            false,
		"https://a.example/two/rpc":    false,
		"":                             false,
	} {
		if got := Same(registered, endpoint); got != want {
			t.Errorf("%s: %v", registered, got)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package node

import (
	"crypto/x509"
	"log/slog"
	"testing"
)

// TestFeeds: a registry with the same roots is followed once, until the last one leaves.
func TestFeeds(t *testing.T) {
	var feeds Feeds
	use := func(url string, roots ...*x509.Certificate) *Feed {
		t.Helper()
		f, err := feeds.Use(url, roots, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	const url = "https://registry.example"
	one, again := use(url), use(url)
	if one != again {
		t.Error("a registry is followed twice")
	}
	other, trusted := use(url+"/other"), use(url, &x509.Certificate{Raw: []byte("root")})
	if other == one || trusted == one || other == trusted {
		t.Error("two registries have one feed")
	}
	other.Leave()
	trusted.Leave()
	if one.Leave(); use(url) != one {
		t.Error("the feed has ended although it is in use")
	}
	one.Leave()
	again.Leave()
	if len(feeds.open) > 0 {
		t.Errorf("%d feeds are open still", len(feeds.open))
	}
	last := use(url)
	defer last.Leave()
	if last == one {
		t.Error("a feed that was closed is used again")
	}
	if _, err := feeds.Use(":", nil, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("what is no URL has a feed")
	}
}

// SPDX-License-Identifier: Apache-2.0

package site

import (
	"sync"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/rabbittest"
)

// ConnectionsOf returns the number of a client's open connections to a broker.
func ConnectionsOf(t testing.TB, b *rabbittest.Broker, name string) (n int) {
	t.Helper()
	names, err := b.Connections()
	NoError(t, err)
	for _, it := range names {
		if it == name {
			n++
		}
	}
	return n
}

// rabbit is the broker that tests share if they do not stop it.
var rabbit struct {
	once   sync.Once
	broker *rabbittest.Broker
	err    error
}

// SharedBroker returns the broker of all tests that do not stop it.
func SharedBroker(t testing.TB) *rabbittest.Broker {
	t.Helper()
	rabbit.once.Do(func() { rabbit.broker, rabbit.err = NewBroker(t) })
	if rabbit.err != nil {
		t.Fatal(rabbit.err)
	}
	return rabbit.broker
}

// NewBroker starts a broker with the certificates of all tests.
func NewBroker(t testing.TB) (*rabbittest.Broker, error) {
	p := Certificates(t)
	return rabbittest.Start(rabbittest.Config{
		CA: p.CA.Cert, Cert: p.Server.Cert, Key: p.Server.Key,
	})
}

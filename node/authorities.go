// SPDX-License-Identifier: Apache-2.0

package node

import (
	"sync"

	"github.com/aip-gateway/aip-gateway/aun"
)

// Authorities keeps the authority of the last configuration: a login whose first step was before a reload may have its
// second one after it. The zero value is ready for use.
type Authorities struct {
	mu   sync.Mutex
	key  [32]byte
	last *aun.Authority
}

// Get returns the authority of a configuration with a key.
func (c *Authorities) Get(key [32]byte, config aun.AuthorityConfig) (*aun.Authority, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil && c.key == key {
		return c.last, nil
	}
	made, err := aun.NewAuthority(config)
	if err == nil {
		c.key, c.last = key, made
	}
	return made, err
}

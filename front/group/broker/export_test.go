// SPDX-License-Identifier: Apache-2.0

package broker

// UserID is the user-id of messages published with this login. It is empty if they have none.
func (l Login) UserID() string { return l.userID }

// Connections is the number of connections.
func (p *Pool) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, shared := range p.connections {
		n += len(shared)
	}
	return n
}

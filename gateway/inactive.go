// SPDX-License-Identifier: Apache-2.0

package gateway

// CutInactive ends the open streams of all Partners not taking calls now, with the reason as their last frame. It is
// called when a Partner has become inactive; a stream opened meanwhile ends by itself.
func (p *Process) CutInactive() {
	for _, s := range p.open.all() {
		s.cutInactive()
	}
}

func (s *Stream) cutInactive() {
	if err := s.g.config.Inactive(); err != nil {
		s.Cut(err)
	}
}

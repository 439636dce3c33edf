// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"time"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/codes"
)

// A session lasts as long as its proof. A token is prolonged by a refresh, on whichever connection; a certificate is
// not. When a configuration has been replaced, the sessions not accepted by the new one end at once.

// prove sets the proof of a session at its login.
func (s *Session) prove(p aun.Proof) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proof = p
	s.ends = time.AfterFunc(time.Until(p.Expires), func() { _ = s.checkProof() })
}

// stopProof stops the wait for the end of the proof.
func (s *Session) stopProof() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ends != nil {
		s.ends.Stop()
	}
}

// prolong takes over the proof from a refresh, if it is one of the session's login.
func (s *Session) prolong(p aun.Proof) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil && p.Prolongs(s.proof) {
		s.proof = p
		s.ends.Reset(time.Until(p.Expires))
	}
}

// checkProof returns an error, and ends the session, if its proof is not one any more.
func (s *Session) checkProof() error {
	s.mu.Lock()
	proof, err := s.proof, s.refused
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if s.front.draining() {
		err = s.front.config.Connections.authority.Load().Check(proof)
	} else if !time.Now().Before(proof.Expires) {
		err = s.front.config.Authority.Check(proof)
	}
	if err != nil {
		s.refuse(err)
	}
	return err
}

// refuse ends a session whose proof has become invalid: it is sent no more, its calls are refused, and its connection
// is closed. After the end of a token, the client may log in again by itself.
func (s *Session) refuse(why error) {
	s.mu.Lock()
	again := s.refused != nil
	s.ready, s.refused = false, why
	s.mu.Unlock()
	s.dropPending()
	if again {
		return
	}
	s.front.config.Connections.drop(s)
	s.front.config.Log.Debug("a login has ended", "aid", s.AID, "address", s.address, "error", why)
	end := func() { s.disconnect(aun.CloseAuthFailed, "the certificate is not accepted any more", nil) }
	if e, ok := why.(*aun.Error); ok && e.Code == codes.TokenExpired { // no event: SDKs would not log in again after it
		end = func() { s.conn.Close(aun.ClosePolicy, "the token has expired, and was not refreshed") }
	}
	s.front.work.Go(func() {
		s.cutSubscriptions()
		s.stopAcks()
		end()
	})
}

// refresh is auth.refresh_token: the connections of the login last as long as the new token.
func (s *Session) refresh(r *request) ([]byte, error) {
	authority := s.front.config.Authority
	if s.front.draining() {
		authority = s.front.config.Connections.authority.Load()
	}
	result, proof, err := authority.Refresh(r.Params)
	if err == nil && proof.AID != "" {
		if !s.loggedIn() { // else it was not counted
			s.front.config.Connections.proven(s.origin, 1)
		}
		for _, other := range s.front.config.Connections.Of(string(proof.AID)) {
			other.prolong(proof)
		}
	}
	return result, err
}

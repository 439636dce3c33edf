// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"crypto/x509"
	"net/http"
	"strings"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/translate"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// An AID is shown if it is the gateway's, a fronted agent's, or a client's while it is logged in. Of others there is
// nothing, and nothing is kept of questions for them.

const certificates = "/pki/cert/" // and an AID

// certificate sends the certificate of an AID, with those between it and the roots. A client may choose one by its
// fingerprint.
func (s *Site) certificate(w http.ResponseWriter, r *http.Request) {
	aid, err := aun.ParseAID(strings.TrimPrefix(r.URL.Path, certificates))
	if err != nil {
		missing(w, "what follows "+certificates+" must be an AID, such as alice.aid.pub")
		return
	}
	chain, err := s.chainOf(r.Context(), aid)
	switch want := strings.TrimPrefix(strings.ToLower(r.URL.Query().Get("cert_fingerprint")), "sha256:"); {
	case err != nil:
		notNow(w)
	case len(chain) == 0:
		missing(w, "the gateway has no certificate of "+string(aid)+
			": that is none of its agents, and no client that has logged in by one")
	case want != "" && want != fingerprintOf(chain[0]):
		missing(w, "the certificate of "+string(aid)+" has another fingerprint")
	default:
		w.Header().Set("Cache-Control", "no-cache") // the client may leave
		send(w, r, pemType, aun.EncodeCerts(chain...), noTime)
	}
}

// chainOf returns the certificate of an AID, and those between it and the roots; none of a hidden AID.
func (s *Site) chainOf(ctx context.Context, aid aun.AID) ([]*x509.Certificate, error) {
	if aid == s.Identity.AID {
		return s.Identity.Chain, nil
	}
	chain, err := s.clientOf(ctx, aid)
	if len(chain) > 0 || !s.Directory.Has(aid) || len(s.Identity.Chain) == 0 {
		return chain, err
	}
	if chain = s.Agents[aid]; len(chain) > 0 {
		return chain, nil
	}
	made, err := s.Identity.CertificateFor(aid)
	if err != nil {
		return nil, err
	}
	return []*x509.Certificate{made}, nil
}

// clientOf returns the certificates of a logged-in client; none if there is none.
func (s *Site) clientOf(ctx context.Context, aid aun.AID) ([]*x509.Certificate, error) {
	if s.Client == nil {
		return nil, nil
	}
	return s.Client(ctx, aid)
}

// agentMD sends the agent.md of the host's AID. A client's has nothing but its name.
func (s *Site) agentMD(w http.ResponseWriter, r *http.Request) {
	aid, _ := aun.ParseAID(hostOf(r)) // Find has parsed it
	if e := s.Directory.get(r.Context(), aid); e != nil {
		send(w, r, markdownType, e.agentMD, e.updatedAt)
		return
	}
	switch chain, err := s.clientOf(r.Context(), aid); {
	case err != nil:
		notNow(w)
	case len(chain) == 0:
		missing(w, "no agent of this gateway has the AID "+string(aid)+", and no client that has logged in by a certificate")
	default:
		w.Header().Set("Cache-Control", "no-cache")
		send(w, r, markdownType, codec.AppendAgentMD(nil, string(aid), &translate.Card{}), noTime)
	}
}

// notNow answers a request while the logins are not known: a 404 would deny the AID.
func notNow(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, "it is not known now who is logged in; ask again", http.StatusServiceUnavailable)
}

// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
)

// readAgentCerts reads the certificates of agents' AIDs, which lead to the roots. What else the files hold, such as a
// private key, is not read. A certificate that has ended is left out.
func (a *AUN) readAgentCerts(repl *caddy.Replacer) (map[aun.AID][]*x509.Certificate, error) {
	all := make(map[aun.AID][]*x509.Certificate)
	for _, file := range a.AgentCerts {
		aid, chain, err := a.readAgentCert(repl, file)
		switch {
		case errors.Is(err, errEnded):
			continue // it is logged with all that have ended
		case err != nil:
		case aid == a.identity.AID:
			err = fmt.Errorf("it is that of %s, the gateway's own AID; leave it out, since cert has it", aid)
		case all[aid] != nil:
			err = fmt.Errorf("another file has a certificate of %s, too; leave one of them out", aid)
		}
		if err != nil {
			return nil, fmt.Errorf("agent_cert: %s: %w", file, err)
		}
		all[aid] = chain
	}
	return all, nil
}

// errEnded says that a certificate has ended.
var errEnded = errors.New("the certificate has ended")

func (a *AUN) readAgentCert(repl *caddy.Replacer, file string) (aun.AID, []*x509.Certificate, error) {
	text, err := conf.ReadFile(repl, file)
	if err != nil {
		return "", nil, err
	}
	chain, err := aun.ParseChain(string(text))
	if err == nil && len(chain) > 0 && time.Now().After(chain[0].NotAfter) {
		return "", nil, errEnded
	}
	if err == nil {
		var cert *aun.Certificate
		if cert, err = a.roots.Verify("", chain); err == nil {
			return cert.AID, chain, nil
		}
	}
	if e, ok := errors.AsType[*aun.Error](err); ok {
		err = errors.New(e.Message)
	}
	return "", nil, err
}

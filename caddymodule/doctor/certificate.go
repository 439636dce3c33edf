// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/aip-gateway/aip-gateway/caddymodule/certfile"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/pemtext"
	"github.com/aip-gateway/aip-gateway/task"
)

// examineCertificates examines the certificates of the sites, those that Partners show to agents and brokers, those of
// AUN, and the roots that the certificates of Leaders, agents and brokers are checked against.
func (c *configuration) examineCertificates(partners []mounted, now time.Time) (findings []Finding) {
	for _, file := range c.Apps.TLS.Certificates.Files {
		findings = append(findings, examinePair(file.Certificate, file.Key, x509.ExtKeyUsageServerAuth, now)...)
		findings = append(findings, examineAIC(file.Certificate, partners)...)
	}
	var pools, trusted []string
	aun := c.aun()
	if aun.Cert != "" {
		trusted = append(aun.Roots, aun.Cert)
	}
	for i := range partners {
		if agent := &partners[i].settings.Agent; agent.Identity != "" {
			trusted = append(trusted, agent.Identity)
		}
		trusted = append(trusted, partners[i].settings.Agent.Roots...)
		for _, pair := range []keyedPair{partners[i].settings.Agent.TLS, partners[i].settings.Group.TLS} {
			trusted = append(trusted, pair.CA...)
			if pair.Cert != "" && pair.Key != "" {
				findings = append(findings, examinePair(pair.Cert, pair.Key, x509.ExtKeyUsageClientAuth, now)...)
			}
		}
		pools = append(pools, TrustFiles(partners[i].Policies...)...)
	}
	slices.Sort(pools)
	for _, file := range slices.Compact(pools) {
		findings = append(findings, examinePool(file, now)...)
	}
	slices.Sort(trusted)
	for _, file := range slices.Compact(trusted) {
		findings = append(findings, examineEnds(file, now)...)
	}
	for _, file := range aun.CRL {
		findings = append(findings, examineCRL(file, now)...)
	}
	return findings
}

// TrustFiles returns the files that clients' certificates are checked against, each once. Caddy forgets their names
// when it has provisioned the policies of a server, after the server's handlers.
func TrustFiles(policies ...*caddytls.ConnectionPolicy) (files []string) {
	for _, p := range policies {
		if p == nil || p.ClientAuthentication == nil {
			continue
		}
		var pool struct {
			Provider string   `json:"provider"`
			Files    []string `json:"pem_files"`
		}
		if json.Unmarshal(p.ClientAuthentication.CARaw, &pool) == nil &&
			(pool.Provider == "file" || pool.Provider == "aip_file") {
			files = append(files, pool.Files...)
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// examinePair examines a certificate with its chain and its key, for the one use.
func examinePair(cert, key string, use x509.ExtKeyUsage, now time.Time) []Finding {
	say := func(s Status, format string, args ...any) []Finding {
		return []Finding{{CheckCertificate, s, cert, fmt.Sprintf(format, args...)}}
	}
	chain, err := certfile.Read(cert)
	if err != nil {
		return say(Broken, "%v", err)
	}
	repl := caddy.NewReplacer()
	if _, err := tls.LoadX509KeyPair(repl.ReplaceAll(cert, ""), repl.ReplaceAll(key, "")); err != nil {
		return say(Broken, "its key %s cannot be used (%s); name the key that it was issued for", key,
			strings.TrimPrefix(err.Error(), "tls: "))
	}
	leaf := chain[0]
	for i, c := range chain {
		if status, text := validity(c, now); status == Broken || status == Warning && i == 0 {
			return say(status, "%s", text)
		}
		if i+1 < len(chain) && c.CheckSignatureFrom(chain[i+1]) != nil {
			return say(Broken, "the certificate of %s is not signed by the one that follows it in the file; "+
				"put the site's own first, and behind each the one of its issuer", pemtext.SubjectOf(c))
		}
	}
	need, who := "serverAuth", "Leaders"
	if use == x509.ExtKeyUsageClientAuth {
		need, who = "clientAuth", "agents and brokers"
	}
	_, unverified := leaf.Verify(x509.VerifyOptions{CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{use}})
	var unknown x509.UnknownAuthorityError
	switch usages := leaf.ExtKeyUsage; {
	case leaf.IsCA:
		return say(Broken, "it is the certificate of a CA; name one that the CA has issued")
	case len(usages)+len(leaf.UnknownExtKeyUsage) > 0 && !slices.Contains(usages, use) &&
		!slices.Contains(usages, x509.ExtKeyUsageAny):
		return say(Broken, "its extended key usage lacks %s, so that %s refuse it; have it issued with %s", need, who, need)
	case use == x509.ExtKeyUsageServerAuth && len(leaf.DNSNames)+len(leaf.IPAddresses) == 0:
		return say(Broken, "it has no DNS name and no IP address, so that Leaders refuse it; have it issued with the "+
			"name of the site")
	case len(chain) == 1 && len(leaf.IssuingCertificateURL) > 0 && errors.As(unverified, &unknown):
		return say(Warning, "the file has only the certificate itself, and its issuer is no root of the system; "+
			"add the certificate of its issuer behind it")
	}
	return say(OK, "it is valid until %s", stamp(leaf.NotAfter))
}

// examineCRL examines until when the lists of revoked certificates in a file are the newest. What else is wrong with
// them is an error of the configuration.
func examineCRL(file string, now time.Time) (findings []Finding) {
	lists, _ := certfile.ReadLists(file)
	for _, list := range lists {
		if !list.NextUpdate.IsZero() && certfile.EndsSoon(list.ThisUpdate, list.NextUpdate, now) {
			findings = append(findings, Finding{CheckCertificate, Warning, file, fmt.Sprintf("the next list of revoked "+
				"certificates of %s is there on %s; get it, and run caddy reload --force", list.Issuer,
				stamp(list.NextUpdate))})
		}
	}
	return findings
}

// validity says whether a certificate is valid now, and for how long.
func validity(c *x509.Certificate, now time.Time) (Status, string) {
	switch {
	case now.Before(c.NotBefore):
		return Broken, fmt.Sprintf("the certificate of %s is valid only from %s; correct the clock of this machine, or wait",
			pemtext.SubjectOf(c), stamp(c.NotBefore))
	case now.After(c.NotAfter):
		return Broken, fmt.Sprintf("the certificate of %s has expired on %s; renew it, and run caddy reload --force",
			pemtext.SubjectOf(c), stamp(c.NotAfter))
	case certfile.EndsSoon(c.NotBefore, c.NotAfter, now):
		return Warning, fmt.Sprintf("the certificate of %s expires on %s; renew it, and run caddy reload --force",
			pemtext.SubjectOf(c), stamp(c.NotAfter))
	}
	return OK, ""
}

// examineAIC examines the AIC of a site's certificate, if it has one.
func examineAIC(file string, partners []mounted) []Finding {
	chain, err := certfile.Read(file)
	if err != nil {
		return nil // examinePair says so
	}
	leaf := chain[0]
	profiled := strings.HasSuffix(strings.ToLower(leaf.Subject.CommonName), ".acps.pub")
	for _, u := range leaf.URIs {
		profiled = profiled || u.Scheme == "agent" || u.Scheme == "acps"
	}
	aic, err := identity.FromCertificate(leaf)
	if err != nil && profiled {
		return []Finding{{CheckCertificate, Warning, file, fmt.Sprintf(
			"it is in no profile of ACPs (%s); have it issued again", strings.TrimSuffix(sentence(err), "."))}}
	}
	var set []string
	for i := range partners {
		if s := partners[i].settings.AIC; s != "" {
			set = append(set, strings.ToUpper(s))
		}
	}
	if err == nil && len(set) > 0 && !slices.Contains(set, strings.ToUpper(string(aic))) {
		return []Finding{{CheckCertificate, Warning, file, fmt.Sprintf(
			"it names the AIC %s, which is the aic of no aip_gateway; set aic, or use the Partner's certificate", aic)}}
	}
	return nil
}

// examinePool examines the roots that Leaders' certificates are checked against.
func examinePool(file string, now time.Time) []Finding {
	chain, err := certfile.Read(file)
	if err != nil {
		return []Finding{{CheckClientAuth, Broken, file, err.Error()}}
	}
	for _, c := range chain {
		if !c.IsCA {
			return []Finding{{CheckClientAuth, Broken, file, fmt.Sprintf("the certificate of %s is not that of a CA, so that "+
				"no Leader is trusted; put the CAs of Leaders into trust_pool", pemtext.SubjectOf(c))}}
		}
		if status, text := validity(c, now); status != OK {
			return []Finding{{CheckClientAuth, status, file, text}}
		}
	}
	return nil
}

// examineEnds examines until when the certificates of a file are valid. What else is wrong with them is an error of the
// configuration.
func examineEnds(file string, now time.Time) []Finding {
	chain, _ := certfile.Read(file)
	for _, c := range chain {
		if status, text := validity(c, now); status != OK {
			return []Finding{{CheckCertificate, status, file, text}}
		}
	}
	return nil
}

// stamp returns a time as findings name it.
func stamp(t time.Time) string { return t.Local().Truncate(time.Millisecond).Format(time.RFC3339Nano) }

// sentence returns the sentence of a *task.Error, and the text of any other error.
func sentence(err error) string {
	if e, ok := errors.AsType[*task.Error](err); ok {
		return e.Detail
	}
	return err.Error()
}

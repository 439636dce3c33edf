// SPDX-License-Identifier: Apache-2.0

// Package devpki makes the certificates that a first try of the gateway needs: a root, one for the server and
// two for Leaders, with AICs in them. It is for development: keys lie in plain files.
package devpki

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/identity"
)

// Salt is what the check digits of made v2 AICs are computed with. A registrar's salt is secret; this one is
// the example of the specification, so that anyone can verify the digits.
var Salt = []byte{0x12, 0x34}

// Validity and notice of the certificates.
const (
	rootValidity = 10 * 365 * 24 * time.Hour
	leafValidity = 365 * 24 * time.Hour
	backdate     = time.Hour           // for clocks that lag behind
	soon         = 30 * 24 * time.Hour // certificates that end within it are reported
)

// Options say what to make.
type Options struct {
	Dir    string       // made where it is missing
	Hosts  []string     // names and addresses of the server beside localhost, 127.0.0.1 and ::1
	Leader identity.AIC // for both Leader certificates. Empty: each gets one of its own, in the form of its profile
	Force  bool         // make everything anew
	Now    time.Time    // zero: the present
}

// File is one certificate of the folder, and its key.
type File struct {
	Cert string // path of the certificate, PEM
	Key  string // path of its private key, PEM, readable by its owner only
	Role string // what it is, in a few words

	AIC      identity.AIC // empty for the root
	NotAfter time.Time

	Made    bool   // it was made just now; otherwise it was there and is still good
	Because string // why one that was there was made anew
	Expires bool   // it ends within 30 days
}

// PKI is the folder as Make leaves it.
type PKI struct {
	CA, Server, Leader, LeaderV1 File
}

// Files returns the certificates in the order in which they are made.
func (p *PKI) Files() []File { return []File{p.CA, p.Server, p.Leader, p.LeaderV1} }

// Make makes what is missing in a folder. A certificate that is there and serves is kept; one that has ended or
// lacks what is asked for is made anew. What cannot be read, or has another root, is an error and stays as it
// is, unless forced: it may be somebody else's.
func Make(o Options) (*PKI, error) {
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	if err := checkHosts(o.Hosts); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	p := &PKI{
		CA:       o.file("ca", "the root; trust this one"),
		Server:   o.file("server", "for the gateway"),
		Leader:   o.file("leader", "for a Leader, profile of ACPs v02.00 and later"),
		LeaderV1: o.file("leader-v1", "for a Leader, profile of ACPs v01.00"),
	}
	ca, err := o.root(&p.CA)
	if err != nil {
		return nil, err
	}
	for _, leaf := range []struct {
		file    *File
		profile profile
	}{
		{&p.Server, serverProfile(o.Hosts)},
		{&p.Leader, leaderProfile(o.Leader)},
		{&p.LeaderV1, leaderV1Profile(o.Leader)},
	} {
		if err := o.leaf(leaf.file, leaf.profile, ca, p.CA.Made); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (o *Options) file(name, role string) File {
	return File{
		Cert: filepath.Join(o.Dir, name+".pem"),
		Key:  filepath.Join(o.Dir, name+"-key.pem"),
		Role: role,
	}
}

// pair is a certificate and its key.
type pair struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// root reads the root, or makes it.
func (o *Options) root(f *File) (*pair, error) {
	old, err := o.read(f)
	if err != nil {
		return nil, err
	}
	if old != nil {
		if !old.cert.IsCA {
			return nil, inTheWay(fmt.Errorf("%s is not the certificate of a CA", f.Cert))
		}
		if f.Because = expired(old.cert, o.Now); f.Because == "" {
			f.keep(old.cert, o.Now)
			return old, nil
		}
	}
	return o.make(f, rootTemplate(o.Now), nil)
}

// leaf makes a certificate by its profile, unless there is one that serves. Certificates of another root are
// replaced only where the root was made just now.
func (o *Options) leaf(f *File, p profile, ca *pair, newRoot bool) error {
	old, err := o.read(f)
	if err != nil {
		return err
	}
	if old != nil {
		switch signed := old.cert.CheckSignatureFrom(ca.cert) == nil; {
		case !signed && !newRoot:
			return inTheWay(fmt.Errorf("%s is not signed by the root of its folder", f.Cert))
		case !signed:
			f.Because = "the root is new"
		default:
			f.Because = cmp.Or(expired(old.cert, o.Now), p.lacks(old.cert))
		}
		if f.Because == "" {
			f.AIC, _ = identity.FromCertificate(old.cert) // p.lacks has seen that there is one
			f.keep(old.cert, o.Now)
			return nil
		}
	}
	aic, err := p.aicFor(old)
	if err != nil {
		return err
	}
	if _, err := o.make(f, p.template(aic, o.Now), ca); err != nil {
		return err
	}
	f.AIC = aic
	return nil
}

func expired(cert *x509.Certificate, now time.Time) string {
	if now.After(cert.NotAfter) {
		return "it ended on " + cert.NotAfter.UTC().Format(time.DateOnly)
	}
	return ""
}

func (f *File) keep(cert *x509.Certificate, now time.Time) {
	f.NotAfter = cert.NotAfter
	f.Expires = cert.NotAfter.Sub(now) < soon
}

// make signs a template with a fresh key and writes both files. Without a CA the certificate signs itself.
func (o *Options) make(f *File, template *x509.Certificate, ca *pair) (*pair, error) {
	made, err := sign(template, ca)
	if err != nil {
		return nil, fmt.Errorf("making %s: %w", f.Cert, err)
	}
	if err := writePair(f, made); err != nil {
		return nil, err
	}
	f.Made, f.NotAfter = true, made.cert.NotAfter
	return made, nil
}

// read returns the pair that the files hold, or nil where there is none or all is made anew.
func (o *Options) read(f *File) (*pair, error) {
	if o.Force {
		return nil, nil
	}
	p, err := readPair(f)
	switch {
	case err == nil:
		return p, nil
	case errors.Is(err, errNoPair):
		return nil, nil
	}
	return nil, inTheWay(err)
}

func inTheWay(err error) error {
	return fmt.Errorf("%w; move it away, choose another folder or use --force", err)
}

func checkHosts(hosts []string) error {
	for _, h := range hosts {
		if net.ParseIP(h) != nil {
			continue
		}
		ok := h != "" && len(h) <= 253 && !slices.ContainsFunc(strings.Split(strings.TrimPrefix(h, "*."), "."), func(label string) bool {
			return label == "" || len(label) > 63 || strings.ContainsFunc(label, func(r rune) bool {
				return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
			})
		})
		if !ok {
			return fmt.Errorf("the host %q is neither a name nor an IP address; give it without scheme and port", h)
		}
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

// Package devpki makes certificates with AICs for development: a root, one for the server and two for Leaders. Their
// keys are stored in plain files.
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

// Salt is the salt of the check digits of this package's AICs of form v2. A registrar's salt is secret; this one is the
// example of the specification, so every program can verify the digits.
var Salt = []byte{0x12, 0x34}

// The validity of certificates.
const (
	rootValidity = 10 * 365 * 24 * time.Hour
	leafValidity = 365 * 24 * time.Hour
	backdate     = time.Hour           // for slow clocks
	soon         = 30 * 24 * time.Hour // File.Expires
)

// Options are the settings of Make.
type Options struct {
	Dir    string       // created if it is missing
	Hosts  []string     // more names and addresses of the server than localhost, 127.0.0.1 and ::1
	Leader identity.AIC // of both Leader certificates. Default: a new one for each, in the form of its profile
	Force  bool         // replace all certificates
	Now    time.Time    // default: the current time
}

// File is a certificate and its key.
type File struct {
	Cert string // path of the certificate, PEM
	Key  string // path of its private key, PEM, readable by its owner only
	Role string // its purpose, in a few words

	AIC      identity.AIC // empty for the root
	NotAfter time.Time

	Made    bool   // by this call of Make; otherwise an earlier one was kept
	Because string // the reason for replacing an earlier one
	Expires bool   // within 30 days
}

// PKI is the content of the folder after Make.
type PKI struct {
	CA, Server, Leader, LeaderV1 File
}

// Files returns the certificates in the order of Make.
func (p *PKI) Files() []File { return []File{p.CA, p.Server, p.Leader, p.LeaderV1} }

// Make makes the missing certificates in a folder. It keeps valid ones, and replaces expired certificates, and those
// lacking a host or AIC of the options. An unreadable file, or a certificate of another root, is an error and stays
// unchanged unless Force is set, because it may have another owner.
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

// root reads or makes the root.
func (o *Options) root(f *File) (*pair, error) {
	old, err := o.read(f)
	if err != nil {
		return nil, err
	}
	if old != nil {
		if !old.cert.IsCA {
			return nil, withHint(fmt.Errorf("%s is not the certificate of a CA", f.Cert))
		}
		if f.Because = expired(old.cert, o.Now); f.Because == "" {
			f.keep(old.cert, o.Now)
			return old, nil
		}
	}
	return o.make(f, rootTemplate(o.Now), nil)
}

// leaf makes a certificate by its profile, unless there is a valid one. It replaces certificates of another root only
// if the root is new.
func (o *Options) leaf(f *File, p profile, ca *pair, newRoot bool) error {
	old, err := o.read(f)
	if err != nil {
		return err
	}
	if old != nil {
		switch signed := old.cert.CheckSignatureFrom(ca.cert) == nil; {
		case !signed && !newRoot:
			return withHint(fmt.Errorf("%s is not signed by the root in its folder", f.Cert))
		case !signed:
			f.Because = "the root is new"
		default:
			f.Because = cmp.Or(expired(old.cert, o.Now), p.lacks(old.cert))
		}
		if f.Because == "" {
			f.AIC, _ = identity.FromCertificate(old.cert) // p.lacks has checked it
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
		return "it expired on " + cert.NotAfter.UTC().Format(time.DateOnly)
	}
	return ""
}

func (f *File) keep(cert *x509.Certificate, now time.Time) {
	f.NotAfter = cert.NotAfter
	f.Expires = cert.NotAfter.Sub(now) < soon
}

// make signs a template with a new key and writes both files. Without a CA, the certificate is self-signed.
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

// read returns the pair in the files, or nil if there is none or Force is set.
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
	return nil, withHint(err)
}

// withHint adds the user's options to an error of an existing file.
func withHint(err error) error {
	return fmt.Errorf("%w; move it away, choose another folder or use --force", err)
}

func checkHosts(hosts []string) error {
	for _, h := range hosts {
		if net.ParseIP(h) != nil {
			continue
		}
		labels := strings.Split(strings.TrimPrefix(h, "*."), ".")
		if h == "" || len(h) > 253 || slices.ContainsFunc(labels, notALabel) {
			return fmt.Errorf("the host %q is neither a name nor an IP address; give it without scheme and port", h)
		}
	}
	return nil
}

// notALabel reports whether a string is no label of a host name.
func notALabel(s string) bool {
	return s == "" || len(s) > 63 || strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	})
}

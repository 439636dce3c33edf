// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/acps/amp"
	"github.com/aip-gateway/aip-gateway/caddymodule/certfile"
	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/caddymodule/doctor"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/node"
)

// AMP says what is reported of each Partner with an AIC to a monitor, by the Agent Monitoring Protocol: records in
// files that a forwarder follows.
type AMP struct {
	// The directory, made if missing. Default: the environment variable AMP_LOG_DIR.
	Dir string `json:"dir,omitempty"`

	// Types of records: heartbeat, metrics, access and audit. Default: heartbeat.
	Records []string `json:"records,omitempty"`

	// Names of members: as in the specification (logType), or as in the software of ACPs 2.2 (log_type). Default: camel.
	Names string `json:"names,omitempty"`

	// Signatures of records. Default: none.
	Sign []KeyPair `json:"sign,omitempty"`

	// aip: the certificates from the option certificates sign for all other Partners. Default: false.
	SignObtained bool `json:"sign_obtained,omitempty"`

	signers ampSigners
}

// KeyPair is a certificate with its key, which are read again when they are needed.
type KeyPair struct {
	// PEM files with a Partner's certificate and its key (Ed25519, P-256 or RSA), to sign its records of audit; read each
	// minute. May be repeated.
	Cert string `json:"cert"`

	// Default: none.
	Key string `json:"key"`
}

// ampOption returns what reads the option. Syntax:
//
//	amp [<directory>] {
//		records <type>...
//		names   camel|snake
//		sign    <cert> <key> | aip
//	}
func ampOption(p *conf.Parser, into **AMP) func() {
	return func() {
		a := new(AMP)
		*into = a
		if p.NextArg() {
			a.Dir = p.Val()
		}
		if p.NextArg() {
			p.Fail("amp takes one directory")
		}
		p.Block("amp", conf.Options{
			"records": p.Words(&a.Records),
			"names":   p.Word(&a.Names),
			"sign": func() {
				switch args := p.RemainingArgs(); {
				case len(args) == 1 && args[0] == "aip":
					a.SignObtained = true
				case len(args) == 2:
					a.Sign = append(a.Sign, KeyPair{args[0], args[1]})
				default:
					p.Fail("sign needs a certificate and a key, both PEM files, or aip for those that are obtained")
				}
			},
		})
	}
}

const (
	ampName    = "aip-gateway"    // what the names of the files end with
	heartbeats = 15 * time.Second // between two of an agent that is alive
	ampSize    = 16 << 20         // of a file, from which on it is renamed, in bytes
	ampKept    = 3                // renamed files of each type
)

// fillDefaults sets what is not set.
func (a *AMP) fillDefaults() {
	conf.OrDefault(&a.Names, string(amp.Camel))
	if len(a.Records) == 0 {
		a.Records = []string{string(amp.Heartbeat)}
	}
}

// checkWritten checks what stands in a configuration, which may be nothing, and changes nothing.
func (a *AMP) checkWritten() error {
	if a == nil {
		return nil
	}
	c := *a
	a = &c
	a.fillDefaults()
	if a.Names != string(amp.Camel) && a.Names != string(amp.Snake) {
		return fmt.Errorf("amp: names is %q, but must be camel or snake", a.Names)
	}
	for _, r := range a.Records {
		if !slices.Contains(amp.Types(), amp.Type(r)) {
			return fmt.Errorf("amp: records names %q, but there are heartbeat, metrics, access and audit", r)
		}
	}
	return nil
}

// provision fills in defaults, and checks the settings.
func (a *AMP) provision() error {
	if a == nil {
		return nil
	}
	a.fillDefaults()
	if err := a.checkWritten(); err != nil {
		return err
	}
	dir, err := conf.FileName(caddy.NewReplacer(), cmp.Or(a.Dir, os.Getenv("AMP_LOG_DIR")))
	switch {
	case err != nil:
		return fmt.Errorf("amp: %w", err)
	case dir == "":
		return errors.New("amp: write the directory of the files behind it, or set the environment variable AMP_LOG_DIR")
	}
	a.Dir = dir
	return a.signers.read(a.Sign)
}

// check refuses a Partner whose records cannot be written as the settings ask for it. obtains is set if its certificate
// is obtained.
func (a *AMP) check(aic string, obtains bool) error {
	if a == nil || aic == "" || !slices.Contains(a.Records, string(amp.Audit)) || a.signers.pairs[aic].Cert != "" ||
		a.SignObtained && obtains {
		return nil
	}
	return fmt.Errorf("amp: records has audit, which is signed, but no certificate of sign has the AIC %s", aic)
}

// ampSigners are what signs records, by AIC.
type ampSigners struct {
	pairs map[string]KeyPair

	mu   *sync.Mutex
	kept map[string]*keptSigner
}

// keptSigner is a signer that was read at a time.
type keptSigner struct {
	*amp.Signer
	read time.Time
}

// signerAge is how long a certificate that was read is used.
const signerAge = time.Minute

// read reads the certificates, each of which must be of an AIC.
func (s *ampSigners) read(pairs []KeyPair) error {
	s.pairs, s.mu, s.kept = make(map[string]KeyPair), new(sync.Mutex), make(map[string]*keptSigner)
	for _, p := range pairs {
		pair, err := certfile.ReadPair(caddy.NewReplacer(), p.Cert, p.Key)
		if err != nil {
			return fmt.Errorf("amp: sign: %w", err)
		}
		aic, err := identity.FromCertificate(pair.Leaf)
		if err != nil {
			return fmt.Errorf("amp: sign: %s: %s", p.Cert, doctor.Explained(err))
		}
		if _, err := amp.NewSigner(pair); err != nil {
			return fmt.Errorf("amp: sign: %s: %w", p.Key, err)
		}
		s.pairs[string(aic)] = p
	}
	return nil
}

// signer returns what signs the records of a Partner, by its certificate as it is now: one that is configured, or else
// the one that is obtained.
func (a *AMP) signer(aic string, obtained func(aic string) (*tls.Certificate, error)) (*amp.Signer, error) {
	if a.signers.pairs[aic].Cert != "" {
		return a.signers.of(aic)
	}
	pair, err := obtained(aic)
	if err != nil {
		return nil, err
	}
	return amp.NewSigner(pair)
}

// of returns what signs the records of a Partner by a certificate that is configured.
func (s *ampSigners) of(aic string) (*amp.Signer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kept := s.kept[aic]; kept != nil && time.Since(kept.read) < signerAge {
		return kept.Signer, nil
	}
	p := s.pairs[aic]
	pair, err := certfile.ReadPair(caddy.NewReplacer(), p.Cert, p.Key)
	if err != nil {
		return nil, err
	}
	signer, err := amp.NewSigner(pair)
	if err != nil {
		return nil, err
	}
	s.kept[aic] = &keptSigner{signer, time.Now()}
	return signer, nil
}

// config returns what the settings are for the node; nil if there are none.
func (a *AMP) config(obtained func(aic string) (*tls.Certificate, error)) *node.Monitoring {
	if a == nil {
		return nil
	}
	host, _ := os.Hostname()
	c := amp.Config{Dir: a.Dir, Name: ampName, Names: amp.Names(a.Names), MaxSize: ampSize, Keep: ampKept,
		Resource: amp.Object{"service.name": ampName, "host.name": host},
		Signer:   func(aic string) (*amp.Signer, error) { return a.signer(aic, obtained) }}
	for _, r := range a.Records {
		c.Types = append(c.Types, amp.Type(r))
	}
	return &node.Monitoring{Config: c, Heartbeats: heartbeats}
}

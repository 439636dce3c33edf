// SPDX-License-Identifier: Apache-2.0

// Package certfile reads certificates, keys and lists of revoked certificates from PEM files. Names of files may have
// Caddy's placeholders.
package certfile

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
	"github.com/aip-gateway/aip-gateway/internal/pemtext"
)

// maxCertificates is how many certificates a file may have. The roots of a whole system are 150.
const maxCertificates = 1000

// Read reads the certificates of a file. Its errors are sentences for an operator, and do not name the file.
func Read(file string) ([]*x509.Certificate, error) {
	text, err := read(file)
	if err != nil {
		return nil, err
	}
	chain, err := pemtext.Certificates(text, maxCertificates)
	switch {
	case errors.Is(err, pemtext.ErrNone):
		return nil, errors.New("it holds no certificate in PEM; name the right file")
	case err != nil:
		return nil, fmt.Errorf("it holds a damaged certificate (%w); replace it", err)
	}
	return chain, nil
}

// ReadLists reads the lists of revoked certificates of a file, as Read does.
func ReadLists(file string) ([]*x509.RevocationList, error) {
	text, err := read(file)
	if err != nil {
		return nil, err
	}
	lists, err := pemtext.Lists(text)
	if err != nil {
		return nil, fmt.Errorf("it holds no list of revoked certificates (%w); name the right file", err)
	}
	return lists, nil
}

func read(file string) ([]byte, error) {
	text, err := os.ReadFile(caddy.NewReplacer().ReplaceAll(file, ""))
	if err != nil {
		return nil, fmt.Errorf("it cannot be read (%w); correct its path or its permissions", err)
	}
	return text, nil
}

// ReadRoots reads the roots in the files of an option ca.
func ReadRoots(files []string) (all []*x509.Certificate, err error) {
	for _, file := range files {
		found, err := Read(file)
		if err != nil {
			return nil, fmt.Errorf("ca: %s: %w", file, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// ReadAll reads certificates from files, each of which has one at least. Each placeholder must have a value.
func ReadAll(repl *caddy.Replacer, files []string) (all []*x509.Certificate, err error) {
	for _, file := range files {
		content, err := conf.ReadFile(repl, file)
		if err != nil {
			return nil, err
		}
		certs, err := pemtext.Certificates(content, maxCertificates)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, certs...)
	}
	return all, nil
}

// ReadPool reads the roots in the files of an option ca of tls. It returns nil, the system's, if there is no file.
func ReadPool(repl *caddy.Replacer, files []string) (pool *x509.CertPool, err error) {
	if len(files) == 0 {
		return nil, nil
	}
	all, err := ReadAll(repl, files)
	if err != nil {
		return nil, fmt.Errorf("tls ca: %w", err)
	}
	pool = x509.NewCertPool()
	for _, c := range all {
		pool.AddCert(c)
	}
	return pool, nil
}

// Present has connections present a client certificate. It is read for each of them, so that it can be renewed, and
// presented whatever CAs the server names: a server that does not trust it says so, and not that there is none. Without
// a certificate and a key, connections present none.
func Present(c *tls.Config, repl *caddy.Replacer, cert, key string) error {
	switch {
	case cert == "" && key == "":
		return nil
	case cert == "" || key == "":
		return ErrNoPair
	}
	read := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return ReadPair(repl, cert, key) }
	if _, err := read(nil); err != nil {
		return err
	}
	c.GetClientCertificate = read
	return nil
}

// ErrNoPair refuses a certificate without its key, or the other way round.
var ErrNoPair = errors.New("tls client_cert needs a certificate and its key")

// ReadPair reads the files of an option client_cert: a certificate and its key.
func ReadPair(repl *caddy.Replacer, cert, key string) (*tls.Certificate, error) {
	cert, err := conf.FileName(repl, cert)
	if err != nil {
		return nil, fmt.Errorf("tls client_cert: %w", err)
	}
	if key, err = conf.FileName(repl, key); err != nil {
		return nil, fmt.Errorf("tls client_cert: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("tls client_cert: %s", strings.TrimPrefix(err.Error(), "tls: "))
	}
	return &pair, nil
}

// EndsSoon reports whether a certificate, or a list, should be renewed now: 14 days before its end, or after five
// sixths of its lifetime if that is later. What renews certificates by itself does so after two thirds.
func EndsSoon(from, until, now time.Time) bool {
	return !now.Before(until.Add(-min(14*24*time.Hour, until.Sub(from)/6)))
}

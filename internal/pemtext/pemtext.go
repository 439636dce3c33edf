// SPDX-License-Identifier: Apache-2.0

// Package pemtext reads text with PEM blocks (RFC 7468). Text before, between and behind the blocks is skipped, and a
// file may be several ones put together, with or without a line end between them. For a damaged block there is an
// error, but pem.Decode skips it in silence: an operator might rely on the missing block.
package pemtext

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// The labels of certificates and of revocation lists (RFC 7468 §5.1, §6).
var (
	Certificate = []string{"CERTIFICATE", "X509 CERTIFICATE", "X.509 CERTIFICATE"}
	List        = []string{"X509 CRL", "CRL"}
)

// ErrNone is the error of a text without a certificate.
var ErrNone = errors.New(`there is no PEM block "CERTIFICATE"`)

const (
	begin = "-----BEGIN "
	mark  = "\ufeff" // some editors put it before a text
)

// Blocks returns the blocks with one of these labels, in their order. An error is about one of them, and the last.
func Blocks(text []byte, labels ...string) iter.Seq2[*pem.Block, error] {
	return func(yield func(*pem.Block, error) bool) {
		text := bytes.ReplaceAll(text, []byte(mark+begin), []byte("\n"+begin))
		text = bytes.ReplaceAll(text, []byte("-----"+begin), []byte("-----\n"+begin))
		parts := bytes.Split(append([]byte("\n"), text...), []byte("\n"+begin))
		for i, part := range parts[1:] {
			label, _, _ := bytes.Cut(part, []byte("-----"))
			if !slices.Contains(labels, string(label)) {
				continue
			}
			block, _ := pem.Decode(slices.Concat([]byte(begin), part, []byte("\n")))
			if block == nil {
				yield(nil, fmt.Errorf("PEM block %d, %q, is damaged", i+1, label))
				return
			}
			if !yield(block, nil) {
				return
			}
		}
	}
}

// Certificates returns the certificates in a text: at least one, and at most a number of them.
func Certificates(text []byte, most int) (all []*x509.Certificate, err error) {
	for block, err := range Blocks(text, Certificate...) {
		if err != nil {
			return nil, err
		}
		if len(all) == most {
			return nil, fmt.Errorf("there are more than %d certificates", most)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, cert)
	}
	if len(all) == 0 {
		return nil, ErrNone
	}
	return all, nil
}

// Lists returns the revocation lists in a text, or the one in DER: at least one.
func Lists(text []byte) (all []*x509.RevocationList, err error) {
	if !bytes.Contains(text, []byte(begin)) {
		list, err := x509.ParseRevocationList(text)
		if err != nil {
			return nil, err
		}
		return []*x509.RevocationList{list}, nil
	}
	for block, err := range Blocks(text, List...) {
		if err != nil {
			return nil, err
		}
		list, err := x509.ParseRevocationList(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, list)
	}
	if len(all) == 0 {
		return nil, errors.New(`there is no PEM block "X509 CRL"`)
	}
	return all, nil
}

// SubjectOf returns the name of a certificate's subject, for people.
func SubjectOf(c *x509.Certificate) string {
	return cmp.Or(c.Subject.CommonName, strings.Join(c.DNSNames, " "), "an unnamed subject")
}

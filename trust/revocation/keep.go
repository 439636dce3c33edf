// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// An OCSP response about a certificate is kept in a file of Config.Dir as it came. The name of the file is made of the
// certificate and of its expiry; the time of the file is the time the response came. It is verified again when it is
// read, as it was verified then, by the issuer in the chain shown with the certificate.

const answerFile = ".ocsp"

func (c *Checker) answerName(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return filepath.Join(c.config.Dir, fmt.Sprintf("%x-%d%s", sum[:16], cert.NotAfter.Unix(), answerFile))
}

// keepAnswer keeps a response on disk, with the time it came.
func (c *Checker) keepAnswer(cert *x509.Certificate, signed []byte, got time.Time) {
	if c.config.Dir == "" {
		return
	}
	name := c.answerName(cert)
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
		if c.keptAnswers.Load() >= maxAsked {
			return
		}
		c.keptAnswers.Add(1)
	}
	if err := errors.Join(replace(name, signed), os.Chtimes(name, got, got)); err != nil {
		c.log.Warn("an answer of OCSP cannot be kept on disk, so that it is asked for again after a start", "error", err)
	}
}

// recallAnswer returns the answer about a certificate from disk; nil if nothing can be there.
func (c *Checker) recallAnswer(cert, issuer *x509.Certificate) *asked {
	if c.config.Dir == "" || c.responder == nil {
		return nil
	}
	a := &asked{}
	file, got, err := openKept(c.answerName(cert))
	if err != nil {
		return a
	}
	defer func() { _ = file.Close() }()
	raw, err := io.ReadAll(io.LimitReader(file, maxAnswer))
	if err != nil {
		return a
	}
	said, err := readOCSP(raw, cert, issuer, got)
	if err != nil || said.outcome == unknown {
		return a
	}
	said.signed = nil
	said.source, said.place = c.responder.name(), c.responder.place
	a.answer, a.after = said, c.due(said)
	return a
}

// forgetAnswers removes the kept answers about expired certificates, and the leftovers of a killed process.
func (c *Checker) forgetAnswers() {
	if c.config.Dir == "" {
		return
	}
	files, _ := os.ReadDir(c.config.Dir) // there may be none yet
	kept := int64(0)
	for _, file := range files {
		if strings.HasPrefix(file.Name(), newFiles) {
			if info, err := file.Info(); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
				_ = os.Remove(filepath.Join(c.config.Dir, file.Name()))
			}
		}
		name, is := strings.CutSuffix(file.Name(), answerFile)
		if !is {
			continue
		}
		_, expires, _ := strings.Cut(name, "-")
		if at, err := strconv.ParseInt(expires, 10, 64); err != nil || time.Now().After(time.Unix(at, 0)) {
			_ = os.Remove(filepath.Join(c.config.Dir, file.Name()))
			continue
		}
		kept++
	}
	c.keptAnswers.Store(kept)
}

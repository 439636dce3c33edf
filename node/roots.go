// SPDX-License-Identifier: Apache-2.0

package node

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/aip-gateway/aip-gateway/internal/pemtext"
	"github.com/aip-gateway/aip-gateway/trust/kept"
)

// Roots are the roots of Leaders in all pools of files, a set for each list of files. They outlive configurations, as
// connections do: a root has one certificate, as a value in memory, for as long as the process runs. So the root of a
// verified chain says by which files the connection was verified. The zero value is ready for use.
type Roots struct {
	refused *Refusals // of handshakes; set by NewProcess

	certs sync.Map     // *x509.Certificate to *root
	used  atomic.Int64 // pools in configurations that are loaded

	changes atomic.Uint64 // of roots that were taken out, or put back

	mu      sync.Mutex
	sets    map[string]*rootSet // by the names of the files; they are few and are kept
	inForce uint64              // the number of the configuration in force
}

// rootSet are the roots that some files have had since the process began.
type rootSet struct {
	files []string
	read  func(file string) ([]*x509.Certificate, error)

	// Under the mutex of Roots.
	roots map[string]*root // by the certificate in DER
	pools []*Pool          // of loaded configurations
	added []string         // subjects of the roots that are in a file, and not in each pool
	bad   string           // why the files cannot be read; empty if they can
}

// root is one root of some files.
type root struct {
	of      *Roots
	cert    *x509.Certificate
	removed atomic.Bool // from its file
}

// ErrRootRemoved says that the root of a chain was taken out of its file.
var ErrRootRemoved = errors.New("the root of the certificate was taken out of its file")

// judge returns why chains below the root count no more; nil if they do.
func (r *root) judge() error {
	if r.removed.Load() {
		return ErrRootRemoved
	}
	return nil
}

// constrain is the constraint under which a pool trusts the root in a handshake.
func (r *root) constrain(chain []*x509.Certificate) error {
	err := r.judge()
	if err != nil {
		r.of.refused.Note(chain, err)
	}
	return err
}

// check returns why a chain counts no more, by its root. A chain that no pool of aip_file has verified counts.
func (s *Roots) check(chain []*x509.Certificate) error {
	if r, ok := s.certs.Load(chain[len(chain)-1]); ok {
		return r.(*root).judge()
	}
	return nil
}

// rootPool is the Pool of a kept.Proof that a pool of aip_file has verified.
const rootPool = "aip_file"

// proof returns a chain that counts as what is kept of it.
func (s *Roots) proof(chain []*x509.Certificate) kept.Proof {
	p := kept.Proof{Chain: chain}
	if _, ok := s.certs.Load(chain[len(chain)-1]); ok {
		p.Pool = rootPool
	}
	return p
}

// comeInForce has the pools that are new count for what is kept, in place of those of the configuration before.
func (s *Roots) comeInForce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inForce++
	for _, set := range s.sets {
		for _, p := range set.pools {
			if p.inForce == 0 {
				p.inForce = s.inForce
			}
		}
	}
}

// checkKept is check for a chain that was kept: it counts if a pool of the configuration in force has its root, which
// is in its file now.
func (s *Roots) checkKept(p *kept.Proof) error {
	if p.Pool != rootPool {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, set := range s.sets {
		r := set.roots[string(p.Chain[len(p.Chain)-1].Raw)]
		if r != nil && !r.removed.Load() && slices.ContainsFunc(set.pools, func(p *Pool) bool {
			return p.inForce == s.inForce && slices.Contains(p.roots, r)
		}) {
			return nil
		}
	}
	return ErrRootRemoved
}

// Pool are the roots of some files in a configuration, in use until Leave is called.
type Pool struct {
	of    *Roots
	set   *rootSet
	roots []*root
	certs *x509.CertPool

	inForce uint64 // the number of its configuration, under the mutex of Roots; 0 before that is in force
}

// Use returns the present roots of some files. read reads the certificates of a file, now and when the files are looked
// at again.
func (s *Roots) Use(files []string, read func(file string) ([]*x509.Certificate, error)) (*Pool, error) {
	found, file, err := rootsIn(files, read)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := strings.Join(files, "\x00")
	set := s.sets[name]
	if set == nil {
		if s.sets == nil {
			s.sets = make(map[string]*rootSet)
		}
		set = &rootSet{files: files, read: read, roots: make(map[string]*root)}
		s.sets[name] = set
	}
	p := &Pool{of: s, set: set, certs: x509.NewCertPool()}
	for _, cert := range found {
		r := set.roots[string(cert.Raw)]
		if r == nil {
			r = &root{of: s, cert: cert}
			set.roots[string(cert.Raw)] = r
			s.certs.Store(cert, r)
		}
		if r.removed.Swap(false) {
			s.changes.Add(1)
		}
		if !slices.Contains(p.roots, r) {
			p.roots = append(p.roots, r)
			p.certs.AddCertWithConstraint(r.cert, r.constrain)
		}
	}
	set.pools = append(set.pools, p)
	s.used.Add(1)
	return p, nil
}

// Leave ends the use of the pool. Connections that were verified by it may be open for longer.
func (p *Pool) Leave() {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.used.Add(-1)
	p.set.pools = slices.DeleteFunc(p.set.pools, func(o *Pool) bool { return o == p })
}

// Certificates returns the roots.
func (p *Pool) Certificates() (all []*x509.Certificate) {
	for _, r := range p.roots {
		all = append(all, r.cert)
	}
	return all
}

// CertPool returns the roots for handshakes. They refuse chains below a root without its file.
func (p *Pool) CertPool() *x509.CertPool { return p.certs }

// rootsIn reads the roots of some files. file is the one with the error.
func rootsIn(files []string, read func(file string) ([]*x509.Certificate, error)) (
	all []*x509.Certificate, file string, err error,
) {
	for _, file := range files {
		found, err := read(file)
		if err != nil {
			return nil, file, err
		}
		all = append(all, found...)
	}
	return all, "", nil
}

// RootsHealth is the state of some files of roots.
type RootsHealth struct {
	Files    string
	Removed  []string // subjects of the roots without a file
	NotInUse []string // subjects of the roots for a reload to put in use
	Reason   string   // the error of the last reading; empty for none
}

// Health returns the state of the files of the pools in configurations.
func (s *Roots) Health() (all []RootsHealth) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, set := range s.sets {
		if len(set.pools) == 0 {
			continue
		}
		h := RootsHealth{Files: strings.Join(set.files, " "), NotInUse: set.added, Reason: set.bad}
		for _, r := range set.roots {
			if r.removed.Load() {
				h.Removed = append(h.Removed, pemtext.SubjectOf(r.cert))
			}
		}
		slices.Sort(h.Removed)
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b RootsHealth) int { return strings.Compare(a.Files, b.Files) })
	return all
}

// inUse reports whether there is a pool in a configuration.
func (s *Roots) inUse() bool { return s.used.Load() > 0 }

// read reads all files again. A file that cannot be read, or has no certificate, changes nothing: it may be about to be
// written.
func (s *Roots) read(log *slog.Logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, set := range s.sets {
		if set.readAgain(log) {
			s.changes.Add(1)
		}
	}
}

// readAgain reports whether a root was taken out, or put back.
func (t *rootSet) readAgain(log *slog.Logger) (changed bool) {
	found, file, err := rootsIn(t.files, t.read)
	if err != nil {
		if bad := file + ": " + err.Error(); bad != t.bad && len(t.pools) > 0 {
			log.Warn("the roots of Leaders cannot be read again; those that were read count", "file", file, "error", err)
			t.bad = bad
		}
		return false
	}
	t.bad = ""
	has := make(map[string]bool, len(found))
	for _, cert := range found {
		has[string(cert.Raw)] = true
	}
	for raw, r := range t.roots {
		was := r.removed.Swap(!has[raw])
		changed = changed || was == has[raw]
		switch {
		case was && has[raw]:
			log.Warn("a root that was taken out of its file is there again, and certificates under it count",
				"files", t.files, "subject", pemtext.SubjectOf(r.cert))
		case !was && !has[raw]:
			log.Warn("a root was taken out of its file, and certificates under it count no more",
				"files", t.files, "subject", pemtext.SubjectOf(r.cert))
		}
	}
	before := t.added
	t.added = nil
	for _, cert := range found {
		r, subject := t.roots[string(cert.Raw)], pemtext.SubjectOf(cert)
		if slices.Contains(t.added, subject) ||
			!slices.ContainsFunc(t.pools, func(p *Pool) bool { return !slices.Contains(p.roots, r) }) {
			continue
		}
		t.added = append(t.added, subject)
		if !slices.Contains(before, subject) {
			log.Warn("a file of roots has one that is not in use yet; run caddy reload --force", "files", t.files,
				"subject", subject)
		}
	}
	return changed
}

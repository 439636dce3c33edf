// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/aip-gateway/aip-gateway/caddymodule/certfile"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/trust/kept"
)

// roots are the roots of all pools of aip_file. They outlive configurations, as connections do: a root has one
// certificate, as a value in memory, for as long as the process runs. So the root of a verified chain says by which
// files the connection was verified.
var roots rootSets

// rootSets are the sets of roots, one for each list of files. The zero value is ready for use.
type rootSets struct {
	certs sync.Map     // *x509.Certificate to *root
	used  atomic.Int64 // pools in configurations that are loaded

	changes atomic.Uint64 // of roots that were taken out, or put back

	mu   sync.Mutex
	sets map[string]*rootSet // by the names of the files; they are few and are kept
}

// rootSet are the roots that some files have had since the process began.
type rootSet struct {
	files []string

	// Under the mutex of rootSets.
	roots map[string]*root // by the certificate in DER
	pools []*RootPool      // of the configurations that are loaded
	added []string         // subjects of the roots that are in a file, and not in each pool
	bad   string           // why the files cannot be read; empty if they can
}

// root is one root of some files.
type root struct {
	cert    *x509.Certificate
	removed atomic.Bool // from its file
}

// errRootRemoved says that the root of a chain was taken out of its file.
var errRootRemoved = errors.New("the root of the certificate was taken out of its file")

// judge returns why chains below the root count no more; nil if they do.
func (r *root) judge() error {
	if r.removed.Load() {
		return errRootRemoved
	}
	return nil
}

// constrain is the constraint under which a pool trusts the root in a handshake.
func (r *root) constrain(chain []*x509.Certificate) error {
	err := r.judge()
	if err != nil {
		refusedHandshakes.note(chain, err)
	}
	return err
}

// check returns why a chain counts no more, by its root. A chain that no pool of aip_file has verified counts.
func (s *rootSets) check(chain []*x509.Certificate) error {
	if r, ok := s.certs.Load(chain[len(chain)-1]); ok {
		return r.(*root).judge()
	}
	return nil
}

// rootPool is the Pool of a kept.Proof that a pool of aip_file has verified.
const rootPool = "aip_file"

// proof returns a chain that counts as what is kept of it.
func (s *rootSets) proof(chain []*x509.Certificate) kept.Proof {
	p := kept.Proof{Chain: chain}
	if _, ok := s.certs.Load(chain[len(chain)-1]); ok {
		p.Pool = rootPool
	}
	return p
}

// checkKept is check for a chain that was kept: it counts if its root is in any file now.
func (s *rootSets) checkKept(p *kept.Proof) error {
	if p.Pool != rootPool {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, set := range s.sets {
		if r := set.roots[string(p.Chain[len(p.Chain)-1].Raw)]; r != nil && !r.removed.Load() {
			return nil
		}
	}
	return errRootRemoved
}

// use returns the roots that the files of a pool have now. They are in use until leave is called.
func (s *rootSets) use(p *RootPool) (*rootSet, []*root, error) {
	found, file, err := rootsIn(p.Files)
	if err != nil {
		return nil, nil, fmt.Errorf("aip_file: %s: %w", file, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name := strings.Join(p.Files, "\x00")
	set := s.sets[name]
	if set == nil {
		if s.sets == nil {
			s.sets = make(map[string]*rootSet)
		}
		set = &rootSet{files: p.Files, roots: make(map[string]*root)}
		s.sets[name] = set
	}
	var all []*root
	for _, cert := range found {
		r := set.roots[string(cert.Raw)]
		if r == nil {
			r = &root{cert: cert}
			set.roots[string(cert.Raw)] = r
			s.certs.Store(cert, r)
		}
		r.removed.Store(false)
		if !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	set.pools = append(set.pools, p)
	s.used.Add(1)
	return set, all, nil
}

// leave ends the use of a pool.
func (s *rootSets) leave(p *RootPool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.set != nil {
		s.used.Add(-1)
		p.set.pools = slices.DeleteFunc(p.set.pools, func(o *RootPool) bool { return o == p })
	}
}

// health returns what is known of the files of the pools in configurations.
func (s *rootSets) health() (all []adminapi.RootsHealth) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, set := range s.sets {
		if len(set.pools) == 0 {
			continue
		}
		h := adminapi.RootsHealth{Files: strings.Join(set.files, " "), NotInUse: set.added, Reason: set.bad}
		for _, r := range set.roots {
			if r.removed.Load() {
				h.Removed = append(h.Removed, certfile.SubjectOf(r.cert))
			}
		}
		slices.Sort(h.Removed)
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b adminapi.RootsHealth) int { return strings.Compare(a.Files, b.Files) })
	return all
}

// inUse reports whether there is a pool in a configuration.
func (s *rootSets) inUse() bool { return s.used.Load() > 0 }

// read reads all files again. A file that cannot be read, or has no certificate, changes nothing: it may be about to be
// written.
func (s *rootSets) read(log *slog.Logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, set := range s.sets {
		if set.read(log) {
			s.changes.Add(1)
		}
	}
}

// read reports whether a root was taken out, or put back.
func (t *rootSet) read(log *slog.Logger) (changed bool) {
	found, file, err := rootsIn(t.files)
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
				"files", t.files, "subject", certfile.SubjectOf(r.cert))
		case !was && !has[raw]:
			log.Warn("a root was taken out of its file, and certificates under it count no more",
				"files", t.files, "subject", certfile.SubjectOf(r.cert))
		}
	}
	before := t.added
	t.added = nil
	for _, cert := range found {
		r, subject := t.roots[string(cert.Raw)], certfile.SubjectOf(cert)
		if slices.Contains(t.added, subject) ||
			!slices.ContainsFunc(t.pools, func(p *RootPool) bool { return !slices.Contains(p.roots, r) }) {
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

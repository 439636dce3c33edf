// SPDX-License-Identifier: Apache-2.0

// Package directory shows AUN clients the agents fronted by this process: each agent's agent.md, the methods search.*,
// and the public documents of AUN on the hosts of a gateway and of its agents, such as the certificates of present
// AIDs.
package directory

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/acps/catalog"
	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/translate"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

const maxChanges = 4096 // kept for search.changes

// Directory shows the agents of a catalogue that have an AID. Its methods may be called by any number of goroutines at
// once.
type Directory struct {
	catalog *catalog.Catalog
	epoch   string // a part of each cursor: the cursors of another process are of no use

	mu       sync.Mutex
	own      *aun.Identity    // of the gateway; nil for none
	known    []*catalog.Entry // the last entries taken over from the catalogue
	agents   map[aun.AID]*catalog.Entry
	entries  []*entry // by AID; each is replaced when its agent changes
	changes  []change // the oldest first
	sequence int      // of the last change
	changed  time.Time
}

// entry is the directory's knowledge of an agent. It is not changed.
type entry struct {
	aid       aun.AID
	card      *translate.Card
	agentMD   []byte            // with its signature, if it has one
	signer    *x509.Certificate // nil if it has none
	unsigned  [32]byte
	sum       [32]byte // SHA-256 of agentMD
	updatedAt time.Time
}

// change is an added, changed or removed agent.
type change struct {
	sequence int
	aid      aun.AID
	deleted  bool
	at       time.Time
}

// New returns the directory of a catalogue.
func New(of *catalog.Catalog) *Directory {
	var random [4]byte
	_, _ = rand.Read(random[:]) // never fails
	return &Directory{catalog: of, epoch: hex.EncodeToString(random[:])}
}

// Set sets the identity of the gateway, possibly nil, after the agents of the catalogue were replaced. An agent.md is
// signed if its agent has the AID of the gateway: clients accept no other key for it.
func (d *Directory) Set(own *aun.Identity) {
	d.mu.Lock()
	d.own = own
	d.mu.Unlock()
	d.take() // until their cards have been read
}

// take takes over the present entries of the catalogue. It is asked under d.mu, so no older state follows a newer one.
func (d *Directory) take() {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.catalog.Known()
	if catalog.Same(known, d.known) {
		return
	}
	before := d.agents
	d.known = known
	d.agents = make(map[aun.AID]*catalog.Entry)
	for _, e := range known {
		if e.AID != "" {
			d.agents[aun.AID(e.AID)] = e
		}
	}
	kept := d.entries[:0:0]
	for _, e := range d.entries {
		if d.agents[e.aid] != nil {
			kept = append(kept, e)
			continue
		}
		d.record(e.aid, true)
	}
	d.entries = kept
	for _, e := range known {
		if aid := aun.AID(e.AID); aid != "" && before[aid] != e {
			d.put(aid, e.Card, e.Changed)
		}
	}
}

// Has reports whether an agent is fronted under an AID.
func (d *Directory) Has(aid aun.AID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.agents[aid]
	return ok
}

// list returns the entries of all agents, by AID, after their cards have been read if this is due. The result is not to
// be changed.
func (d *Directory) list(ctx context.Context) []*entry {
	d.refresh(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.entries
}

// get returns the entry of an agent; nil for none.
func (d *Directory) get(ctx context.Context, aid aun.AID) *entry {
	if !d.Has(aid) {
		return nil
	}
	d.refresh(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.find(aid)
}

// refresh has the catalogue read the agents if this is due, and takes over the changes.
func (d *Directory) refresh(ctx context.Context) {
	d.catalog.Entries(ctx)
	d.take()
}

// find returns the entry of an agent; nil for none. d.mu is held.
func (d *Directory) find(aid aun.AID) *entry {
	if i, ok := d.search(aid); ok {
		return d.entries[i]
	}
	return nil
}

func (d *Directory) search(aid aun.AID) (int, bool) {
	return slices.BinarySearchFunc(d.entries, aid, func(e *entry, aid aun.AID) int {
		switch {
		case e.aid < aid:
			return -1
		case e.aid > aid:
			return 1
		}
		return 0
	})
}

// put sets the entry of an agent, if its agent.md has changed, or another certificate signs it. d.mu is held.
func (d *Directory) put(aid aun.AID, card *translate.Card, changed time.Time) {
	text := codec.AppendAgentMD(nil, string(aid), card)
	e := &entry{aid: aid, card: card, unsigned: sha256.Sum256(text), signer: d.signer(aid)}
	i, ok := d.search(aid)
	if ok && d.entries[i].unsigned == e.unsigned {
		if d.entries[i].signer.Equal(e.signer) {
			return
		}
		changed = time.Now()
	}
	e.updatedAt = changed.UTC().Truncate(time.Second)
	e.agentMD = d.sign(text, e.signer, changed)
	e.sum = sha256.Sum256(e.agentMD)
	entries := slices.Clone(d.entries) // readers hold the slice
	if ok {
		entries[i] = e
	} else {
		entries = slices.Insert(entries, i, e)
	}
	d.entries = entries
	d.record(aid, false)
}

// signer returns the certificate of the key for signing the agent.md of an agent: the gateway's, if it has the key of
// the agent; otherwise nil.
func (d *Directory) signer(aid aun.AID) *x509.Certificate {
	if d.own == nil || d.own.AID != aid || len(d.own.Chain) == 0 {
		return nil
	}
	return d.own.Chain[0]
}

// sign returns an agent.md with the signature of a signer. The signer may be nil.
func (d *Directory) sign(text []byte, signer *x509.Certificate, at time.Time) []byte {
	if signer == nil {
		return text
	}
	sum := sha256.Sum256(text) // whatever the curve of the key is
	signature, err := ecdsa.SignASN1(rand.Reader, d.own.Key, sum[:])
	if err != nil {
		return text
	}
	return codec.AppendSignature(text, sha256.Sum256(signer.Raw), at.Unix(), signature)
}

// record adds a change. d.mu is held.
func (d *Directory) record(aid aun.AID, deleted bool) {
	d.sequence++
	at := time.Now().UTC()
	if !at.After(d.changed) { // the time of the last change is the version of the snapshot
		at = d.changed.Add(time.Microsecond)
	}
	d.changed = at
	d.changes = append(d.changes, change{d.sequence, aid, deleted, at})
	if len(d.changes) > maxChanges {
		d.changes = slices.Clone(d.changes[maxChanges/2:])
	}
}

// cursor returns the cursor after the change with a number.
func (d *Directory) cursor(sequence int) string {
	return "chg_" + d.epoch + "_" + strconv.Itoa(sequence)
}

// SPDX-License-Identifier: Apache-2.0

package callerinfo

import (
	"hash/maphash"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// The header fields of an introduction. Characters not allowed in a field are percent-encoded in their values.
const (
	LeaderField  = "Aip-Leader"
	ProofField   = "Aip-Proof"   // left out if nothing is proven
	SubjectField = "Aip-Subject" // left out if the Leader acts for itself
	TaskField    = "Aip-Task"
	SessionField = "Aip-Session"
	// TokenField is the default field of the token.
	TokenField = "Aip-Token"
)

const (
	// Validity is the time a token is valid.
	Validity = time.Minute
	// reuse is the time a token is sent again with other requests about the same task.
	reuse = Validity / 2
)

// Config is the configuration of an Introducer.
type Config struct {
	Fields bool    // by the fields of Leader, proof, task and session
	Issuer *Issuer // by a token signed by it; nil for none

	Audience string // aud of the token
	// Actor is the party acting for the Leader: the Partner, as AAC names it. Default: the issuer.
	Actor string
	// TokenField is the field of the token. In Authorization it is a bearer token. Default: TokenField.
	TokenField string

	Logger *slog.Logger // default: slog.Default
}

// Introducer names to an agent the caller it is asked for. It implements upstream.Introducer.
type Introducer struct {
	config Config
	bearer string // before a token
	seed   maphash.Seed
	// recent are introductions to be used again, since many requests are about one task. A slot holds one: after a
	// collision a token is signed again.
	recent [256]atomic.Pointer[introduction]
	failed atomic.Bool // an error of a signature is logged
}

var _ upstream.Introducer = (*Introducer)(nil)

// subject is the subject of an introduction.
type subject struct {
	caller agent.Caller
	ref    agent.Ref
}

// introduction has the header fields about a subject.
type introduction struct {
	of          subject
	from, until time.Time // when it is used, by the clock on the wall, as its token has it; zero for always
	fields      []translate.Field
}

// holds reports whether it is used at a time.
func (i *introduction) holds(now time.Time) bool {
	return i.until.IsZero() || !now.Before(i.from) && now.Before(i.until)
}

// New returns an Introducer.
func New(config Config) *Introducer {
	if config.Actor == "" && config.Issuer != nil {
		config.Actor = config.Issuer.name
	}
	i := &Introducer{config: config, seed: maphash.MakeSeed()}
	if i.config.TokenField == "" {
		i.config.TokenField = TokenField
	}
	if strings.EqualFold(i.config.TokenField, "Authorization") {
		i.bearer = "Bearer "
	}
	if i.config.Logger == nil {
		i.config.Logger = slog.Default()
	}
	return i
}

// Introduce implements upstream.Introducer.
func (i *Introducer) Introduce(r *upstream.Request) []translate.Field {
	if r.Caller == (agent.Caller{}) {
		return nil
	}
	of := subject{r.Caller, r.Ref}
	slot := &i.recent[maphash.Comparable(i.seed, of)%uint64(len(i.recent))]
	now := time.Now().Round(0)
	if known := slot.Load(); known != nil && known.of == of && known.holds(now) {
		return known.fields
	}
	made := &introduction{of: of}
	if i.config.Issuer != nil {
		made.from, made.until = now, now.Add(reuse)
	}
	made.fields = i.fields(of, now)
	slot.Store(made)
	return made.fields
}

// fields returns the header fields about a subject.
func (i *Introducer) fields(of subject, now time.Time) (fields []translate.Field) {
	add := func(name, value string) {
		if value != "" {
			fields = append(fields, translate.Field{Name: name, Value: escape(value)})
		}
	}
	if i.config.Fields {
		add(LeaderField, named(&of.caller))
		add(ProofField, of.caller.Proof)
		add(SubjectField, of.caller.Subject)
		add(TaskField, of.ref.Task)
		add(SessionField, of.ref.Session)
	}
	if i.config.Issuer == nil {
		return fields
	}
	token, err := i.config.Issuer.sign(i.claims(of, now))
	if err != nil { // the agent refuses a request without one
		if !i.failed.Swap(true) {
			i.config.Logger.Error("no token for the agent could be signed", "error", err)
		}
		return fields
	}
	return append(fields, translate.Field{Name: i.config.TokenField, Value: i.bearer + token})
}

// escape percent-encodes the characters not allowed in a header field: all but the visible characters of ASCII, and the
// sign of the encoding itself.
func escape(s string) string {
	const hex = "0123456789ABCDEF"
	bad := func(b byte) bool { return b <= ' ' || b >= 0x7f || b == '%' }
	for n := range len(s) {
		if !bad(s[n]) {
			continue
		}
		out := []byte(s[:n])
		for _, b := range []byte(s[n:]) {
			if bad(b) {
				out = append(out, '%', hex[b>>4], hex[b&15])
			} else {
				out = append(out, b)
			}
		}
		return string(out)
	}
	return s
}

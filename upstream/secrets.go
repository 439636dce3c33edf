// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// Secrets are the values of the header fields of every request to an agent, but for Host, and the words in them: the
// gateway's credentials. The value in a word such as key=value is a secret, too, and so is the password of a login.
// Agents, and proxies in front of them, repeat credentials in their errors, and these stand in logs and are shown to
// Leaders. Nil hides nothing.
type Secrets struct {
	values []string
	hide   *strings.Replacer
}

const (
	shortSecret = 4 // bytes: anything not longer is a word an agent may well say
	redacted    = "REDACTED"
	cutMark     = "…" // at the end of a cut text
	maxCuts     = 8   // in one text: an error is made of few parts, and each may be cut
)

// NewSecrets returns the secrets in a header.
func NewSecrets(header map[string][]string) *Secrets {
	var all []string
	add := func(word string) {
		if len(word) > shortSecret && !strings.EqualFold(word, "bearer") && !strings.EqualFold(word, "basic") {
			all = append(all, word)
		}
	}
	for name, values := range header {
		if strings.EqualFold(name, "Host") {
			continue
		}
		for _, v := range values {
			add(v)
			for _, word := range strings.Fields(v) {
				add(word)
				_, value, _ := strings.Cut(strings.TrimRight(word, ";,"), "=")
				add(strings.Trim(value, `"`))
			}
			if scheme, rest, _ := strings.Cut(v, " "); strings.EqualFold(scheme, "basic") {
				login, _ := base64.StdEncoding.DecodeString(rest)
				_, password, _ := strings.Cut(string(login), ":")
				add(string(login))
				add(password)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) }) // one containing another comes before it
	var pairs []string
	for _, v := range all {
		pairs = append(pairs, v, redacted)
	}
	return &Secrets{all, strings.NewReplacer(pairs...)}
}

// Hide returns a text without the secrets. The beginning of a cut one is hidden, too.
func (s *Secrets) Hide(text string) string {
	if s == nil {
		return text
	}
	text = s.hide.Replace(text)
	end := len(text)
	for range maxCuts {
		if end = strings.LastIndex(text[:end], cutMark); end < 0 {
			break
		}
		if said, ok := s.withoutBegin(text[:end]); ok {
			text, end = said+text[end:], len(said)
		}
	}
	return text
}

// withoutBegin returns a text without the begin of a secret at its end, and whether there is one.
func (s *Secrets) withoutBegin(text string) (_ string, ok bool) {
	for _, v := range s.values {
		for n := min(len(v), len(text)); n > shortSecret; n-- {
			if rest, ok := strings.CutSuffix(text, v[:n]); ok {
				return rest + redacted, true
			}
		}
	}
	return text, false
}

// HideIn returns an error of a codec, or one like it, without the secrets.
func (s *Secrets) HideIn(err error) error {
	e, ok := err.(*task.Error)
	if !ok || s == nil {
		return err
	}
	hidden := *e
	hidden.Detail = s.Hide(e.Detail)
	if e.Err != nil {
		if text := s.Hide(e.Err.Error()); text != e.Err.Error() {
			hidden.Err = hiddenError{e.Err, text}
		}
	}
	return &hidden
}

// hiddenError is an error with another text.
type hiddenError struct {
	error
	text string
}

// Error implements error.
func (e hiddenError) Error() string { return e.text }

// Unwrap returns the error with its own text.
func (e hiddenError) Unwrap() error { return e.error }

// hideInEnd hides the secrets in what an agent says of a task ended by it without success.
func (s *Secrets) hideInEnd(rep *agent.Report) {
	if s == nil || rep.State != task.Failed && rep.State != task.Rejected && rep.State != task.Canceled {
		return
	}
	rep.Extensions = task.ReplaceStrings(rep.Extensions, s.Hide)
	rep.TaskExtensions = task.ReplaceStrings(rep.TaskExtensions, s.Hide)
	rep.Items = slices.Clone(rep.Items)
	for i := range rep.Items {
		it := &rep.Items[i]
		it.Text = s.Hide(it.Text)
		it.Data, it.Metadata = task.ReplaceStrings(it.Data, s.Hide), task.ReplaceStrings(it.Metadata, s.Hide)
	}
}

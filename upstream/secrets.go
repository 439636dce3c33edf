// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"slices"
	"strings"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/task"
)

// Secrets are the values of the header fields of every request to an agent, but for Host, and the words in them: the
// gateway's credentials. Agents, and proxies before them, repeat some in their errors. These stand in logs and are
// shown to Leaders. Nil hides nothing.
type Secrets struct {
	values []string
	hide   *strings.Replacer
}

const (
	shortSecret = 4 // bytes: anything not longer is a word an agent may well say
	redacted    = "REDACTED"
	cutMark     = "…" // at the end of a cut text
)

// NewSecrets returns the secrets in a header.
func NewSecrets(header map[string][]string) *Secrets {
	var all []string
	for name, values := range header {
		if strings.EqualFold(name, "Host") {
			continue
		}
		for _, v := range values {
			for _, word := range append(strings.Fields(v), v) {
				if len(word) > shortSecret && !strings.EqualFold(word, "bearer") && !strings.EqualFold(word, "basic") {
					all = append(all, word)
				}
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

// Hide returns a text without the secrets. The beginning of one cut by the end of the text is hidden, too.
func (s *Secrets) Hide(text string) string {
	if s == nil {
		return text
	}
	text = s.hide.Replace(text)
	said, cut := strings.CutSuffix(text, cutMark)
	if !cut {
		return text
	}
	for _, v := range s.values {
		for n := min(len(v), len(said)); n > shortSecret; n-- {
			if rest, ok := strings.CutSuffix(said, v[:n]); ok {
				return rest + redacted + cutMark
			}
		}
	}
	return text
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

// hideInEnd hides the secrets in the reason of a task ended by its agent without success.
func (s *Secrets) hideInEnd(rep *agent.Report) {
	if s == nil || rep.State != task.Failed && rep.State != task.Rejected {
		return
	}
	rep.Items = slices.Clone(rep.Items)
	for i := range rep.Items {
		if it := &rep.Items[i]; it.Kind == task.TextItem {
			it.Text = s.Hide(it.Text)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
)

// printer prints a Partner's answers for people: lines of a label of at most 8 letters, and a text.
type printer struct {
	w      io.Writer
	err    error  // the first one of the writer
	begun  string // the id of the task, if it was printed before its answer
	remark string // to be added to the next line
}

// begin prints the id of a task before its answer.
func (p *printer) begin(id string) {
	p.line("task", id)
	p.begun = id
}

func (p *printer) line(word, text string) {
	text = clean(text)
	if p.remark != "" {
		first, rest, more := strings.Cut(text, "\n")
		if text = first + "  " + p.remark; more {
			text += "\n" + rest
		}
		p.remark = ""
	}
	text = strings.ReplaceAll(text, "\n", "\n          ")
	if _, err := fmt.Fprintln(p.w, strings.TrimRight(fmt.Sprintf("%-8s  %s", word, text), " ")); p.err == nil {
		p.err = err
	}
}

func (p *printer) raw(body []byte) error {
	return writeJSON(p.w, append(bytes.TrimSpace(body), '\n'))
}

// task prints a task as the answer to a command.
func (p *printer) task(t *task.Task, c task.Command) error {
	p.head(t)
	p.status(&t.Status)
	for i := range t.Products {
		product := &t.Products[i]
		p.line("product", joined(product.ID, product.Name, product.Description))
		p.items("", product.DataItems)
	}
	if c == task.Get {
		for _, s := range t.StatusHistory {
			p.line("was", stamp(s.ChangedAt)+"  "+string(s.State))
			p.items("", s.DataItems)
		}
		for i := range t.MessageHistory {
			m, word := &t.MessageHistory[i], "received"
			if m.SenderRole == task.Partner {
				word = "said"
			}
			p.line(word, joined(stamp(m.SentAt), string(m.Command), m.ID))
			p.items("", m.DataItems)
		}
	}
	p.next(t.Status.State, t.ID)
	return p.err
}

// head prints the ids of the task.
func (p *printer) head(t *task.Task) {
	if t.ID != p.begun {
		p.line("task", t.ID)
	}
	p.line("session", t.SessionID)
}

func (p *printer) status(s *task.Status) {
	p.line("state", string(s.State)+" since "+stamp(s.ChangedAt))
	p.items("says", s.DataItems)
}

// next prints the commands possible for a task in a state.
func (p *printer) next(s task.State, id string) {
	switch s {
	case task.AwaitingInput:
		p.line("next", "continue or cancel, with --task "+id)
	case task.AwaitingCompletion:
		p.line("next", "complete, continue or cancel, with --task "+id)
	case task.Accepted, task.Working:
		p.line("next", "get or cancel, with --task "+id)
	}
}

// message prints a message as the answer to a command.
func (p *printer) message(m *task.Message) error {
	p.line("message", joined(stamp(m.SentAt), m.ID, m.SenderID))
	p.items("says", m.DataItems)
	return p.err
}

func (p *printer) items(word string, items []task.DataItem) {
	for i := range items {
		it := &items[i]
		switch it.Kind {
		case task.TextItem:
			p.line(word, it.Text)
		case task.FileItem:
			where := it.URI
			if where == "" {
				// Base64 may come with or without padding.
				n := base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(it.Bytes, "=")))
				where = humanize.IBytes(uint64(n)) + " inside"
			}
			p.line(word, joined("file "+it.Name, it.MIMEType, where))
		case task.DataKind:
			var compact bytes.Buffer
			if json.Compact(&compact, it.Data) == nil {
				p.line(word, "data "+compact.String())
			}
		default:
			p.line(word, "an item of the unknown type "+string(it.Kind))
		}
		word = ""
	}
}

// describe returns the text of an error in a Partner's answer, with each member of its data on a line.
func describe(e *leader.Error) string {
	var b strings.Builder
	fmt.Fprintf(&b, "the Partner answered %d %s", e.Code, clean(e.Message))
	var members map[string]any
	if json.Unmarshal(e.Data, &members) != nil {
		if len(e.Data) > 0 {
			members = map[string]any{"data": e.Data}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		text, ok := members[key].(string)
		if !ok {
			encoded, err := json.Marshal(members[key])
			if err != nil {
				continue
			}
			text = string(encoded)
		}
		fmt.Fprintf(&b, "\n  %s: %s", clean(key), strings.ReplaceAll(clean(text), "\n", "\n  "))
	}
	return b.String()
}

// stamp returns a time in the local time zone, in milliseconds.
func stamp(t time.Time) string { return t.Local().Truncate(time.Millisecond).Format(time.RFC3339Nano) }

// utc returns a time in UTC, in seconds; - for none.
func utc(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// orDash returns a text; - for an empty one.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// joined joins the parts, without empty ones.
func joined(parts ...string) string {
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return strings.Join(parts, "  ")
}

// writeJSON writes JSON, the same for a program and safe for a terminal: characters removed by clean are escaped, as
// they stand in strings.
func writeJSON(w io.Writer, text []byte) error {
	if clean(string(text)) != string(text) {
		var safe []byte
		for _, r := range string(text) {
			switch {
			case r == '\r': // it stands between tokens
				safe = append(safe, ' ')
			case unsafeRune(r):
				safe = fmt.Appendf(safe, `\u%04x`, r)
			default:
				safe = utf8.AppendRune(safe, r)
			}
		}
		text = safe
	}
	_, err := w.Write(text)
	return err
}

// clean makes foreign text safe for a terminal: the text cannot move the cursor, or change colours or the direction of
// writing.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unsafeRune(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

func unsafeRune(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
}

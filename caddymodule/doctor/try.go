// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
)

const (
	tryTimeout = 2 * time.Minute // how long an agent that is tried may work
	maxListed  = 20              // states, artifacts and items of an artifact that are listed
	maxQuoted  = 200             // bytes of a text that are shown
)

// tried returns the name of the Partner whose agent is to be tried; empty for none. The Partners have their titles.
func (e *examination) tried(mounts []Mount, try Try) string {
	if try.Text == "" {
		return ""
	}
	names, titles := []string{}, []string{}
	for i := range mounts {
		if m := &mounts[i]; m.Err == nil && !slices.Contains(names, m.Partner) {
			names, titles = append(names, m.Partner), append(titles, m.Title)
		}
	}
	for i, name := range names {
		if try.Partner == "" && len(names) == 1 || try.Partner == name || try.Partner == titles[i] {
			return name
		}
	}
	slices.Sort(titles)
	switch all := strings.Join(titles, ", "); {
	case len(titles) == 0:
	case try.Partner != "":
		e.add(CheckTry, Broken, try.Partner, "no agent was tried, because no Partner has this name; "+
			"name one of these with --partner: "+all)
	default:
		e.add(CheckTry, Broken, "aip", "no agent was tried, because there are several, and a try is real "+
			"work; name one of these Partners with --partner: "+all)
	}
	return ""
}

// telling adds what an agent does that is tried. Nothing of it shows what hide replaces.
type telling struct {
	*examination
	name string
	hide *upstream.Secrets
}

func (e *telling) tell(s Status, format string, args ...any) {
	e.add(CheckTry, s, e.name, e.hide.Hide(fmt.Sprintf(format, args...)))
}

// try sends the agent of a Partner a text as a task, and tells what it does. An agent may repeat what the header has.
func (e *examination) try(ctx context.Context, m *Mount, text string) {
	t := telling{e, m.Title, upstream.NewSecrets(m.Agent.Config.HTTP.Header)}
	switch m.Agent.Dialect.Transport {
	case gateway.Connecting:
		t.tell(Warning, "it was not tried: it connects to the gateway that runs; try it there, by caddy aip call")
		return
	case gateway.OverAUN:
		t.tell(Warning, "it was not tried: the gateway that runs may be connected as the same AID, and would lose "+
			"that connection; try it there, by caddy aip call")
		return
	}
	trying, end := context.WithTimeout(ctx, tryTimeout)
	defer end()
	seen := m.Gateway.TryAgent(trying, text)
	t.sent(seen, m.Gateway.Health().Dialect)
	t.said(seen)
	t.products(seen.Products)
	t.end(seen)
	t.afterwards(seen)
}

// sent tells how the message was sent, and when the answer came.
func (e *telling) sent(seen *upstream.Trial, dialect string) {
	if len(seen.Sent) == 0 {
		return
	}
	why := seen.Why
	if why == "" {
		why = "as " + dialect + " has it"
	}
	how := "it was sent a message that asks for no stream"
	if seen.Sent[0] == translate.SendStream {
		how = "it was sent a message that asks for a stream"
	}
	how += ": " + why
	if again := seen.Sent[1:]; len(again) > 0 {
		how += "; it was sent again"
		if seen.Sent[0] == translate.SendStream && again[len(again)-1] == translate.Send {
			how += ", and asked for no stream, because the agent refused that"
		}
	}
	e.tell(OK, "%s", how)
	first := max(seen.First.Round(time.Millisecond), time.Millisecond)
	switch {
	case seen.Events == 0:
	case seen.Streamed:
		e.tell(OK, "it answered by a stream: the first event came after %s, and there were %d", first, seen.Events)
	default:
		e.tell(OK, "it answered by one message, after %s", first)
	}
}

// said tells the states, in the agent's words.
func (e *telling) said(seen *upstream.Trial) {
	var all []string
	for _, s := range seen.States[:min(len(seen.States), maxListed)] {
		line := e.shown(s.Name)
		if text := wordsOf(s.Items); text != "" {
			line += " with the words " + e.shown(text)
		}
		all = append(all, line)
	}
	if more := len(seen.States) - len(all); more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	if len(all) > 0 {
		e.tell(OK, "its states were %s", strings.Join(all, ", "))
	}
}

// products tells the artifacts.
func (e *telling) products(all []task.Product) {
	for i := range all {
		if i == maxListed {
			e.tell(OK, "it delivered %d more artifacts", len(all)-i)
			return
		}
		var kinds []string
		for _, it := range all[i].DataItems[:min(len(all[i].DataItems), maxListed)] {
			kinds = append(kinds, kindOf(&it))
		}
		if more := len(all[i].DataItems) - len(kinds); more > 0 {
			kinds = append(kinds, fmt.Sprintf("and %d more", more))
		}
		line := "an artifact"
		if name := all[i].Name; name != "" {
			line += " " + e.shown(name)
		}
		if line += " with " + strings.Join(kinds, ", "); len(kinds) == 0 {
			line = "an empty artifact"
		}
		if text := wordsOf(all[i].DataItems); text != "" {
			line += ": " + e.shown(text)
		}
		e.tell(OK, "it delivered %s", line)
	}
}

// kindOf says of what kind an item is, and how large.
func kindOf(it *task.DataItem) string {
	switch {
	case it.Kind == task.TextItem:
		return fmt.Sprintf("a text of %d bytes", len(it.Text))
	case it.Kind == task.FileItem && it.Bytes == "":
		return "a file at a URL"
	case it.Kind == task.FileItem:
		return fmt.Sprintf("a file of %d bytes", base64.RawStdEncoding.DecodedLen(len(strings.TrimRight(it.Bytes, "="))))
	}
	return fmt.Sprintf("data of %d bytes", len(it.Data))
}

// end tells how the task has ended.
func (e *telling) end(seen *upstream.Trial) {
	if seen.Cut {
		e.tell(Warning, "its stream ended without a last state, so that it was asked how the task stands")
	}
	last := ""
	if n := len(seen.States); n > 0 {
		if words := wordsOf(seen.States[n-1].Items); words != "" {
			last = ": " + e.shown(words)
		}
	}
	switch {
	case seen.Err != nil:
		e.tell(Broken, "the try failed: %s", Explained(seen.Err))
	case seen.TimedOut:
		e.tell(Warning, "it was still at work after %s, which is as long as a try may take", tryTimeout)
	case seen.State == task.AwaitingInput:
		e.tell(OK, "it asks%s", last)
	case seen.State == task.Failed || seen.State == task.Rejected:
		e.tell(Broken, "the try failed: the agent says that the task is %s%s", seen.State, last)
	case seen.State == task.Canceled:
		e.tell(Broken, "the try failed: the agent has canceled the task%s", last)
	case seen.WithoutTask:
		e.tell(OK, "it has answered by a message, and made no task")
	default:
		e.tell(OK, "it has completed the task")
	}
}

// afterwards tells whether the agent knows the task, and whether that was canceled.
func (e *telling) afterwards(seen *upstream.Trial) {
	switch {
	case seen.Asked && seen.GetErr == nil:
		e.tell(OK, "it knows the task afterwards, as %s", e.shown(seen.Known))
	case seen.Asked:
		e.tell(Warning, "it does not know the task afterwards, so that a turn may be lost whose connection breaks: %s",
			Explained(seen.GetErr))
	}
	switch text := wordsOf(seen.Cancel); {
	case seen.Canceled && seen.CancelErr != nil:
		e.tell(Warning, "the task could not be canceled, so that the agent may go on: %s",
			Explained(seen.CancelErr))
	case seen.Canceled && text != "":
		e.tell(OK, "the task was canceled: %s", e.shown(text))
	case seen.Canceled:
		e.tell(OK, "the task was canceled")
	case seen.TimedOut && len(seen.Sent) > 0:
		e.tell(Warning, "it has named no task that could be canceled, so that it may go on")
	}
}

// wordsOf returns the texts of items.
func wordsOf(items []task.DataItem) string {
	var all []string
	for i := range items {
		if items[i].Kind == task.TextItem && items[i].Text != "" {
			all = append(all, items[i].Text)
		}
	}
	return strings.Join(all, " ")
}

// shown returns the beginning of a text of the agent in quotes, without anything that steers a terminal.
func (e *telling) shown(s string) string {
	if s = e.hide.Hide(s); len(s) > maxQuoted {
		s = strings.ToValidUTF8(s[:maxQuoted], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}

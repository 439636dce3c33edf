// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/codes"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// The bounds of search.
const (
	maxQuery      = 256 // bytes of q
	maxItems      = 100 // of search.query
	defaultItems  = 20
	maxPage       = 500 // items of search.snapshot and search.changes
	maxSuggested  = 20
	maxQueryWords = 16
)

// Search answers the methods search.* with a result in JSON. ok is false if there is no such method. An error is an
// *aun.Error.
func (d *Directory) Search(
	ctx context.Context, method string, params gjson.Result,
) (result []byte, ok bool, err error) {
	method, found := strings.CutPrefix(method, "search.")
	if !found {
		return nil, false, nil
	}
	var answer any
	switch method {
	case "query":
		answer, err = d.query(ctx, params)
	case "get_agent":
		answer, err = d.getAgent(ctx, params)
	case "suggest":
		answer, err = d.suggest(ctx, params)
	case "ap_info":
		answer = d.apInfo(ctx)
	case "snapshot":
		answer, err = d.snapshot(ctx, params)
	case "changes":
		answer, err = d.changesAfter(ctx, params)
	default:
		return nil, false, nil
	}
	if err != nil {
		return nil, true, err
	}
	result, err = json.Marshal(answer)
	return result, true, err
}

func invalid(format string, args ...any) error {
	return aun.Errorf(codes.InvalidQuery, format, args...)
}

// item is an agent in the answer to search.query.
type item struct {
	AID         aun.AID  `json:"aid"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
	AgentMDURL  string   `json:"agent_md_url"`
}

func agentMDURL(aid aun.AID) string { return "https://" + string(aid) + "/agent.md" }

// query finds the agents with all words of q and all tags. An agent with a word in its name or AID comes before the
// others.
func (d *Directory) query(ctx context.Context, params gjson.Result) (any, error) {
	q, err := text(params, "q", maxQuery)
	if err != nil {
		return nil, err
	}
	words := strings.Fields(strings.ToLower(q))
	if len(words) > maxQueryWords {
		return nil, invalid("q has %d words, and at most %d are allowed", len(words), maxQueryWords)
	}
	tags, err := texts(params, "tags")
	if err != nil {
		return nil, err
	}
	limit, err := number(params, "limit", defaultItems, maxItems)
	if err != nil {
		return nil, err
	}
	from, err := d.offset(params, "cur_")
	if err != nil {
		return nil, err
	}
	var first, rest []*entry
	for _, e := range d.list(ctx) {
		switch named, found := e.matches(words, tags); {
		case named:
			first = append(first, e)
		case found:
			rest = append(rest, e)
		}
	}
	found := append(first, rest...)
	from = min(from, len(found))
	to := min(from+limit, len(found))
	answer := struct {
		Items []item  `json:"items"`
		Next  *string `json:"next_cursor"`
	}{Items: []item{}}
	for _, e := range found[from:to] {
		answer.Items = append(answer.Items, item{
			e.aid, e.name(), e.card.Description, append([]string{}, codec.AgentTags(e.card)...), agentMDURL(e.aid),
		})
	}
	if to < len(found) {
		answer.Next = new("cur_" + d.epoch + "_" + strconv.Itoa(to))
	}
	return answer, nil
}

func (e *entry) name() string {
	if e.card.Name == "" {
		return string(e.aid)
	}
	return e.card.Name
}

// matches reports whether an agent has all words and tags, and whether it has one of the words in its name or AID.
func (e *entry) matches(words, tags []string) (named, found bool) {
	has := codec.AgentTags(e.card)
	for _, tag := range tags {
		if !slices.ContainsFunc(has, func(t string) bool { return strings.EqualFold(t, tag) }) {
			return false, false
		}
	}
	name := strings.ToLower(e.name() + "\n" + string(e.aid))
	all := []string{name, strings.ToLower(e.card.Description + "\n" + strings.Join(has, "\n"))}
	for _, s := range e.card.Skills {
		all = append(all, strings.ToLower(s.Name+"\n"+s.Description))
	}
	for _, word := range words {
		contains := func(s string) bool { return strings.Contains(s, word) }
		if !slices.ContainsFunc(all, contains) {
			return false, false
		}
		named = named || contains(name)
	}
	return named, true
}

func (d *Directory) getAgent(ctx context.Context, params gjson.Result) (any, error) {
	s, err := text(params, "aid", 253)
	if err != nil {
		return nil, err
	}
	aid, err := aun.ParseAID(s)
	if err != nil {
		return nil, invalid("aid: %v", err)
	}
	e := d.get(ctx, aid)
	if e == nil {
		return nil, aun.Errorf(codes.AgentNotFound, "there is no public agent.md of %s here", aid)
	}
	return struct {
		AID         aun.AID   `json:"aid"`
		AgentMD     string    `json:"agent_md"`
		ContentType string    `json:"content_type"`
		URL         string    `json:"agent_md_url"`
		UpdatedAt   time.Time `json:"updated_at"`
	}{e.aid, string(e.agentMD), "text/markdown", agentMDURL(e.aid), e.updatedAt}, nil
}

// suggestion is one of the answer to search.suggest.
type suggestion struct {
	Type  string `json:"type"` // aid, tag or query
	Value string `json:"value"`
}

// suggest returns the names, tags and AIDs with a prefix; without one, all tags.
func (d *Directory) suggest(ctx context.Context, params gjson.Result) (any, error) {
	prefix, err := text(params, "prefix", maxQuery)
	if err != nil {
		return nil, err
	}
	prefix = strings.ToLower(prefix)
	list := []suggestion{}
	add := func(kind, value string) {
		s := suggestion{kind, value}
		if strings.HasPrefix(strings.ToLower(value), prefix) && len(list) < maxSuggested && !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	for _, e := range d.list(ctx) {
		for _, tag := range codec.AgentTags(e.card) {
			add("tag", tag)
		}
		if prefix == "" {
			continue
		}
		add("aid", string(e.aid))
		add("query", e.name())
		for _, s := range e.card.Skills {
			add("query", s.Name)
		}
	}
	return map[string]any{"suggestions": list}, nil
}

func (d *Directory) apInfo(ctx context.Context) any {
	d.refresh(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	ap := ""
	if d.own != nil {
		ap = string(d.own.AID)
	}
	return map[string]any{
		"ap_id": ap, "public": true,
		"capabilities":             map[string]bool{"query": true, "suggest": true, "snapshot": true, "changes": true},
		"current_snapshot_version": version(d.changed), "change_cursor_head": d.cursor(d.sequence),
		"updated_at": d.changed.Truncate(time.Second),
	}
}

// version returns the version of the snapshot with everything up to a change.
func version(changed time.Time) string { return changed.UTC().Format("2006-01-02T15:04:05.000000Z") }

// snapshot returns a page of all agents. A cursor belongs to one version: when anything has changed since, the caller
// has to begin again.
func (d *Directory) snapshot(ctx context.Context, params gjson.Result) (any, error) {
	limit, err := number(params, "limit", maxPage, maxPage)
	if err != nil {
		return nil, err
	}
	wanted, err := text(params, "version", 64)
	if err != nil {
		return nil, err
	}
	from, err := d.offset(params, "snap_")
	if err != nil {
		return nil, err
	}
	d.refresh(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	current := version(d.changed)
	if wanted != "" && wanted != current {
		return nil, aun.Errorf(codes.SnapshotStale, "the snapshot is %s now", current)
	}
	type one struct {
		AID       aun.AID   `json:"aid"`
		URL       string    `json:"agent_md_url"`
		SHA256    string    `json:"agent_md_sha256"`
		SourceAP  string    `json:"source_ap"`
		UpdatedAt time.Time `json:"updated_at"`
	}
	ap := ""
	if d.own != nil {
		ap = string(d.own.AID)
	}
	from = min(from, len(d.entries))
	to := min(from+limit, len(d.entries))
	items := []one{}
	for _, e := range d.entries[from:to] {
		items = append(items, one{e.aid, agentMDURL(e.aid), hex.EncodeToString(e.sum[:]), ap, e.updatedAt})
	}
	answer := map[string]any{"snapshot_version": current, "items": items, "has_more": to < len(d.entries),
		"next_cursor": nil}
	if to < len(d.entries) {
		answer["next_cursor"] = "snap_" + d.epoch + "_" + strconv.Itoa(to)
	}
	return answer, nil
}

func (d *Directory) changesAfter(ctx context.Context, params gjson.Result) (any, error) {
	limit, err := number(params, "limit", 200, maxPage)
	if err != nil {
		return nil, err
	}
	after, err := d.offset(params, "chg_")
	if err != nil {
		return nil, err
	}
	d.refresh(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	first := d.sequence - len(d.changes) // the number before the first kept change
	if after < first || after > d.sequence {
		return nil, aun.Errorf(codes.CursorExpired, "the changes after this cursor are not kept; get the snapshot")
	}
	type one struct {
		Sequence  int       `json:"sequence"`
		Op        string    `json:"op"`
		AID       aun.AID   `json:"aid"`
		UpdatedAt time.Time `json:"updated_at"`
	}
	list := []one{}
	next := after
	for _, c := range d.changes[after-first:] {
		if len(list) == limit {
			break
		}
		op := "upsert"
		if c.deleted {
			op = "delete"
		}
		list, next = append(list, one{c.sequence, op, c.aid, c.at.Truncate(time.Second)}), c.sequence
	}
	return map[string]any{"from_cursor": d.cursor(after), "next_cursor": d.cursor(next), "changes": list,
		"has_more": next < d.sequence}, nil
}

// text returns a string parameter; an absent one, and null, is empty.
func text(params gjson.Result, name string, most int) (string, error) {
	v := params.Get(name)
	switch {
	case !v.Exists() || v.Type == gjson.Null:
		return "", nil
	case v.Type != gjson.String:
		return "", invalid("%s must be a string", name)
	case len(v.Str) > most:
		return "", invalid("%s has %d bytes, and at most %d are allowed", name, len(v.Str), most)
	}
	return v.Str, nil
}

// texts returns a parameter with a list of strings.
func texts(params gjson.Result, name string) (list []string, err error) {
	v := params.Get(name)
	switch {
	case !v.Exists() || v.Type == gjson.Null:
		return nil, nil
	case !v.IsArray():
		return nil, invalid("%s must be a list of strings", name)
	}
	v.ForEach(func(_, one gjson.Result) bool {
		if one.Type != gjson.String || len(one.Str) > maxQuery || len(list) == maxQueryWords {
			err = invalid("%s must be a list of at most %d short strings", name, maxQueryWords)
			return false
		}
		list = append(list, one.Str)
		return true
	})
	return list, err
}

// number returns a parameter with a whole number of 1 or more. A larger one than most counts as most.
func number(params gjson.Result, name string, otherwise, most int) (int, error) {
	v := params.Get(name)
	if !v.Exists() || v.Type == gjson.Null {
		return otherwise, nil
	}
	n := v.Num
	if v.Type != gjson.Number || n != float64(int64(n)) || n < 1 {
		return 0, invalid("%s must be a whole number of 1 or more", name)
	}
	return int(min(n, float64(most))), nil
}

// offset returns the number in the parameter cursor, after a prefix; 0 if it is absent. A cursor of another process has
// expired.
func (d *Directory) offset(params gjson.Result, prefix string) (int, error) {
	s, err := text(params, "cursor", 64)
	if err != nil || s == "" {
		return 0, err
	}
	rest, ok := strings.CutPrefix(s, prefix)
	epoch, digits, split := strings.Cut(rest, "_")
	if !ok || !split {
		return 0, invalid("cursor must be one that this method has returned")
	}
	if epoch != d.epoch {
		return 0, aun.Errorf(codes.CursorExpired, "the cursor has expired; begin again without it")
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil {
		return 0, invalid("cursor must be one that this method has returned")
	}
	return int(n), nil
}

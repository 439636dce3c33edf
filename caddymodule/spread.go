// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/replay/shard/ask"
	"github.com/aip-gateway/aip-gateway/task"
)

// An operator asks any of several gateways, and is answered for all: lists have what each of them lists, with its name,
// and what is changed is changed by the owner of the shard, or by all. Each answers for itself by the same functions as
// a gateway that is alone.

// adminQuestion is a request of the admin API, as it is handed to other gateways.
type adminQuestion struct {
	Path, Method, Query string
	Body                []byte

	// Pages of lists are those of one gateway after the other. From is the name of the first one that has something on
	// this page, and After what the query of that one has.
	From, After string
	Paged       bool
}

// adminAnswered is what one gateway answers for itself.
type adminAnswered struct {
	Shards []int // that it owns, for a question to all
	Body   json.RawMessage
}

// openAdmin has the gateway answer others.
func (o *openStore) openAdmin() { o.admin = ask.New(o.Shards, "admin", o.answerAdmin) }

// answerAdmin answers for this gateway.
func (o *openStore) answerAdmin(ctx context.Context, of int, q adminQuestion) (a adminAnswered, err error) {
	answer := adminAnswers[q.Path]
	if answer == nil {
		return a, fmt.Errorf("this gateway does not have the route %s", q.Path)
	}
	query := q.Query
	if q.Paged {
		values, err := url.ParseQuery(q.Query)
		if err != nil {
			return a, err
		}
		name := o.Shards.Peers().Name()
		if values.Del("after"); name < q.From {
			return a, nil
		} else if name == q.From && q.After != "" {
			values.Set("after", q.After)
		}
		query = values.Encode()
	}
	for tries := (ask.Tries{}); ; {
		r, err := http.NewRequestWithContext(ctx, q.Method, q.Path+"?"+query, bytes.NewReader(q.Body))
		if err != nil {
			return a, err
		}
		before := node.Owned(o.Shards)
		out, err := answer(o, r)
		if err == nil {
			if of == shard.AnyShard { // those that were read from the beginning to the end
				a.Shards = slices.DeleteFunc(before, func(i int) bool { return !o.Shards.Owns(i) })
			}
			a.Body, err = json.Marshal(out)
			return a, err
		}
		// A shard has left while it was read: the rest is read again.
		leaves := of == shard.AnyShard && q.Method == http.MethodGet && errors.Is(err, replay.ErrClosed)
		if !leaves || tries.Wait(ctx, node.Patience) != nil {
			return a, err
		}
	}
}

// A sharedAnswer answers a request by what the gateways that share the store answer to its question.
type sharedAnswer func(*openStore, *http.Request, adminQuestion) (any, error)

// either makes an answer of one for a gateway that is alone, and one for several.
func either(alone adminAnswer, several sharedAnswer) adminAnswer {
	return func(o *openStore, r *http.Request) (any, error) {
		if o.Shards.Peers() == nil {
			return alone(o, r)
		}
		body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxAdminBody))
		if err != nil {
			return nil, errBody("at most 1 MiB of JSON")
		}
		return several(o, r, adminQuestion{Path: r.URL.Path, Method: r.Method, Query: r.URL.RawQuery, Body: body})
	}
}

// atOwner answers with what the owner of a Leader's shard does, which alone has it. The Partner and the Leader are in
// the query, or in the body.
func atOwner(o *openStore, r *http.Request, q adminQuestion) (any, error) {
	var of struct{ Partner, Leader string }
	if of.Partner, of.Leader = r.URL.Query().Get("partner"), r.URL.Query().Get("leader"); len(q.Body) > 0 {
		_ = json.Unmarshal(q.Body, &of) // the owner says what is wrong
	}
	a, err := o.admin.Of(r.Context(), o.Tasks.ShardOf(o.partnerOf(of.Partner), of.Leader), q)
	return a.Body, err
}

// ofNode is the answer of one gateway.
type ofNode[P any] struct {
	name string
	page *P
}

// askNodes asks all gateways, and returns their answers in the order of their names. missing says what they do not
// cover: gateways that have not answered, and shards that none of them owns.
func askNodes[P any](o *openStore, r *http.Request, q adminQuestion) (all []ofNode[P], missing []string, err error) {
	ctx, done := context.WithTimeout(r.Context(), node.Patience)
	defer done()
	owned := make([]bool, o.Shards.Count())
	for answer, err := range o.admin.All(ctx, q) {
		switch {
		case err != nil && answer.Node == o.Shards.Peers().Name():
			return nil, nil, err // what is wrong with the request
		case err != nil:
			missing = append(missing, answer.Node)
			continue
		}
		for _, i := range answer.Value.Shards {
			if !node.HasShard(o.Shards, i) {
				return nil, nil, task.Errorf(task.Internal, "the gateway %s says that it owns shard %d, but they are 0 to %d; "+
					"check its version", answer.Node, i, len(owned)-1)
			}
			owned[i] = true
		}
		if answer.Value.Body == nil {
			continue // its part of the list was on a page before
		}
		one := ofNode[P]{answer.Node, new(P)}
		if err := json.Unmarshal(answer.Value.Body, one.page); err != nil {
			return nil, nil, task.Errorf(task.Internal, "the gateway %s answers what cannot be read; check its version",
				answer.Node).WithCause(err)
		}
		all = append(all, one)
	}
	slices.Sort(missing)
	for i := range owned {
		if !owned[i] {
			missing = append(missing, "shard "+strconv.Itoa(i))
		}
	}
	slices.SortFunc(all, func(a, b ofNode[P]) int { return cmp.Compare(a.name, b.name) })
	return all, missing, nil
}

// everywhere makes an answer of what each gateway changes. It fails if it was not changed everywhere: then it is to be
// asked again. add adds an answer to those before it.
func everywhere[P any](add func(into, of *P)) sharedAnswer {
	return func(o *openStore, r *http.Request, q adminQuestion) (any, error) {
		all, missing, err := askNodes[P](o, r, q)
		if err != nil {
			return nil, err
		}
		if len(missing) > 0 {
			return nil, task.Errorf(task.StoreUnavailable, "no answer from %s; ask again", strings.Join(missing, ", "))
		}
		into := new(P)
		for _, one := range all {
			add(into, one.page)
		}
		return into, nil
	}
}

// listFields are the fields of an answer that is a list.
type listFields[T any] struct {
	entries *[]T
	missing *[]string
	next    *string // where the next page begins; nil for a list that is one page
}

// entry is a pointer to an entry of a list, which says which gateway has it.
type entry[T any] interface {
	*T
	SetGateway(name string)
}

// named has the entries of a gateway say its name, and returns them.
func named[T any, E entry[T]](entries []T, gateway string) []T {
	for i := range entries {
		E(&entries[i]).SetGateway(gateway)
	}
	return entries
}

// pageLimit reads how many entries a page of several gateways has.
func pageLimit(q url.Values, standard, most int) (int, error) {
	limit, err := readLimit(q)
	return min(cmp.Or(limit, standard), most), err
}

// merged makes an answer of a list in one page. fields returns those of an answer.
func merged[P, T any, E entry[T]](fields func(*P) listFields[T], order func(a, b T) int) sharedAnswer {
	return func(o *openStore, r *http.Request, q adminQuestion) (any, error) {
		all, missing, err := askNodes[P](o, r, q)
		if err != nil {
			return nil, err
		}
		into := new(P)
		l := fields(into)
		*l.entries, *l.missing = []T{}, missing
		for _, one := range all {
			*l.entries = append(*l.entries, named[T, E](*fields(one.page).entries, one.name)...)
		}
		slices.SortStableFunc(*l.entries, order)
		return into, nil
	}
}

// paged makes an answer of a list in pages, which are those of one gateway after the other. fields returns those of an
// answer.
func paged[P, T any, E entry[T]](fields func(*P) listFields[T]) sharedAnswer {
	return func(o *openStore, r *http.Request, q adminQuestion) (any, error) {
		limit, err := pageLimit(r.URL.Query(), defaultAdminPage, maxAdminPage)
		if err != nil {
			return nil, err
		}
		after, ok := r.URL.Query().Get("after"), false
		if q.From, q.After, ok = strings.Cut(after, nodeMark); !ok && after != "" {
			return nil, task.Errorf(task.InvalidParams, "after must be the value that the page before returned")
		}
		q.Paged = true
		all, missing, err := askNodes[P](o, r, q)
		if err != nil {
			return nil, err
		}
		into := new(P)
		l := fields(into)
		*l.entries, *l.missing = []T{}, missing
		for _, one := range all {
			part := fields(one.page)
			if n := len(*l.entries); n > 0 && n+len(*part.entries) > limit {
				*l.next = one.name + nodeMark
				break
			}
			*l.entries = append(*l.entries, named[T, E](*part.entries, one.name)...)
			if *part.next != "" {
				*l.next = one.name + nodeMark + *part.next
				break
			}
		}
		return into, nil
	}
}

// nodeMark stands between the name of a gateway and its own cursor. Neither has it.
const nodeMark = "!"

// The pages of all lists.
const (
	defaultAdminPage = 100
	maxAdminPage     = 1000
)

var tasksByGateway = paged(func(p *adminapi.TaskPage) listFields[adminapi.Task] {
	return listFields[adminapi.Task]{&p.Tasks, &p.Missing, &p.Next}
})

// spreadAnswers are the answers of several gateways: of all of them, or of the owner of a shard. The other routes of
// adminAnswers are answered by the gateway that is asked.
var spreadAnswers = map[string]sharedAnswer{
	adminapi.Tasks:      allTasks,
	adminapi.TaskCounts: allCounts,
	adminapi.Streams: paged(func(p *adminapi.StreamPage) listFields[adminapi.Stream] {
		return listFields[adminapi.Stream]{&p.Streams, &p.Missing, (*string)(&p.Next)}
	}),
	adminapi.Deliveries: paged(func(p *adminapi.DeliveryPage) listFields[adminapi.Delivery] {
		return listFields[adminapi.Delivery]{&p.Deliveries, &p.Missing, &p.Next}
	}),
	adminapi.QuotaUses: paged(func(p *adminapi.QuotaPage) listFields[adminapi.QuotaUse] {
		return listFields[adminapi.QuotaUse]{&p.Quotas, &p.Missing, &p.Next}
	}),

	adminapi.Groups: merged(func(l *adminapi.GroupList) listFields[adminapi.Group] {
		return listFields[adminapi.Group]{entries: &l.Groups, missing: &l.Missing}
	}, func(a, b adminapi.Group) int {
		return cmp.Or(cmp.Compare(a.Partner, b.Partner), cmp.Compare(a.Leader, b.Leader),
			cmp.Compare(a.GroupName.Group, b.GroupName.Group))
	}),
	adminapi.Endpoints: merged(func(l *adminapi.EndpointList) listFields[adminapi.Endpoint] {
		return listFields[adminapi.Endpoint]{entries: &l.Endpoints, missing: &l.Missing}
	}, func(a, b adminapi.Endpoint) int { return cmp.Compare(a.URL, b.URL) }),
	adminapi.PolicyRules: allRules,
	adminapi.OverviewOf:  allOverviews,

	adminapi.Exchanges: allExchanges,
	adminapi.ReplayDeliveries: everywhere(func(into, of *adminapi.Replayed) {
		into.Replayed, into.Selected = into.Replayed+of.Replayed, into.Selected+of.Selected
	}),
	adminapi.DisableEndpoint: everywhere(func(into, of *adminapi.EndpointName) { *into = *of }),
	adminapi.EnableEndpoint:  everywhere(func(into, of *adminapi.EndpointName) { *into = *of }),

	adminapi.Webhooks:   atOwner,
	adminapi.TaskEvents: atOwner,
	adminapi.ShowTask:   atOwner,
	adminapi.CancelTask: atOwner,
	adminapi.FailTask:   atOwner,
	adminapi.LeaveGroup: atOwner,
}

// allRules answers with what the rules and quotas have decided at all gateways together.
func allRules(o *openStore, r *http.Request, q adminQuestion) (any, error) {
	all, missing, err := askNodes[adminapi.RuleList](o, r, q)
	if err != nil {
		return nil, err
	}
	sum := adminapi.RuleList{Partial: adminapi.Partial{Missing: missing}, Rules: []adminapi.Rule{}}
	for _, one := range all {
		for _, rule := range one.page.Rules {
			i := slices.IndexFunc(sum.Rules, func(o adminapi.Rule) bool {
				return o.Partner == rule.Partner && o.Kind == rule.Kind && o.Name == rule.Name
			})
			if i < 0 {
				sum.Rules = append(sum.Rules, rule)
				continue
			}
			sum.Rules[i].Allowed += rule.Allowed
			sum.Rules[i].Denied += rule.Denied
			sum.Rules[i].DryRun += rule.DryRun
		}
	}
	return sum, nil
}

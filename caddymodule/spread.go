// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/caddymodule/adminapi"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/shard"
	"github.com/aip-gateway/aip-gateway/shard/ask"
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

// adminPatience is how long a list waits for the other gateways.
const adminPatience = 5 * time.Second

// openAdmin has the gateway answer others.
func (o *openStore) openAdmin() { o.admin = ask.New(o.shards, "admin", o.answerAdmin) }

// answerAdmin answers for this gateway.
func (o *openStore) answerAdmin(ctx context.Context, of int, q adminQuestion) (a adminAnswered, err error) {
	answer := adminAnswers[q.Path]
	if answer == nil {
		return a, fmt.Errorf("this gateway does not have the route %s", q.Path)
	}
	if of == shard.AnyShard {
		for i := range o.shards.Count() {
			if o.shards.Owns(i) {
				a.Shards = append(a.Shards, i)
			}
		}
	}
	query := q.Query
	if q.Paged {
		values, err := url.ParseQuery(q.Query)
		if err != nil {
			return a, err
		}
		name := o.shards.Peers().Name()
		if values.Del("after"); name < q.From {
			return a, nil
		} else if name == q.From && q.After != "" {
			values.Set("after", q.After)
		}
		query = values.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, q.Method, q.Path+"?"+query, bytes.NewReader(q.Body))
	if err != nil {
		return a, err
	}
	out, err := answer(o, r)
	if err != nil {
		return a, err
	}
	a.Body, err = json.Marshal(out)
	return a, err
}

// readQuestion reads a request.
func readQuestion(r *http.Request) (q adminQuestion, err error) {
	q = adminQuestion{Path: r.URL.Path, Method: r.Method, Query: r.URL.RawQuery}
	var body bytes.Buffer
	if r.Body != nil {
		if _, err = body.ReadFrom(http.MaxBytesReader(nil, r.Body, maxAdminBody)); err != nil {
			return q, errBody("at most 1 MiB of JSON")
		}
	}
	q.Body = body.Bytes()
	return q, nil
}

// atOwner makes an answer of one that only the owner of a Leader's shard has. The Partner and the Leader are in the
// query, or in the body.
func atOwner(local adminAnswer) adminAnswer {
	return func(o *openStore, r *http.Request) (any, error) {
		if o.shards.Peers() == nil {
			return local(o, r)
		}
		q, err := readQuestion(r)
		if err != nil {
			return nil, err
		}
		var of struct{ Partner, Leader string }
		if of.Partner, of.Leader = r.URL.Query().Get("partner"), r.URL.Query().Get("leader"); len(q.Body) > 0 {
			_ = json.Unmarshal(q.Body, &of) // the owner says what is wrong
		}
		a, err := o.admin.Of(r.Context(), o.tasks.ShardOf(of.Partner, of.Leader), q)
		return a.Body, err
	}
}

// ofNode is the answer of one gateway.
type ofNode[P any] struct {
	name string
	page *P // nil for none
}

// askNodes asks all gateways, and returns their answers in the order of their names. missing says what they do not
// cover: gateways that have not answered, and shards that none of them owns.
func askNodes[P any](o *openStore, r *http.Request, q adminQuestion) (all []ofNode[P], missing []string, err error) {
	ctx, done := context.WithTimeout(r.Context(), adminPatience)
	defer done()
	owned := make([]bool, o.shards.Count())
	for answer, err := range o.admin.All(ctx, q) {
		one := ofNode[P]{name: answer.Node}
		switch {
		case err != nil && answer.Node == o.shards.Peers().Name():
			return nil, nil, err // what is wrong with the request
		case err != nil:
			missing = append(missing, answer.Node)
			continue
		case answer.Value.Body != nil:
			one.page = new(P)
			if err := json.Unmarshal(answer.Value.Body, one.page); err != nil {
				return nil, nil, err
			}
		}
		for _, i := range answer.Value.Shards {
			owned[i] = true
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

// spread makes an answer of one that each gateway has a part of. gather gathers the parts, and told is told what is
// missing.
func spread[P any](
	local adminAnswer, gather func(into, of *P, name string), told func(into *P, missing []string) error,
) adminAnswer {
	return func(o *openStore, r *http.Request) (any, error) {
		if o.shards.Peers() == nil {
			return local(o, r)
		}
		q, err := readQuestion(r)
		if err != nil {
			return nil, err
		}
		all, missing, err := askNodes[P](o, r, q)
		if err != nil {
			return nil, err
		}
		into := new(P)
		for _, one := range all {
			if one.page != nil {
				gather(into, one.page, one.name)
			}
		}
		return into, told(into, missing)
	}
}

// everywhere makes an answer of one that changes something at each gateway. It fails if it was not changed everywhere:
// then it is to be asked again.
func everywhere[P any](local adminAnswer, gather func(into, of *P, name string)) adminAnswer {
	return spread(local, gather, func(_ *P, missing []string) error {
		if len(missing) == 0 {
			return nil
		}
		return task.Errorf(task.StoreUnavailable, "no answer from %s; ask again", strings.Join(missing, ", "))
	})
}

// paged makes an answer of a list in pages. view returns what a page lists, and where the next one begins; cursors
// returns how that is written, and read.
func paged[P, T any](
	local adminAnswer, view func(*P) (list *[]T, missing *[]string), node func(*T, string), c cursors[P],
) adminAnswer {
	return func(o *openStore, r *http.Request) (any, error) {
		if o.shards.Peers() == nil {
			return local(o, r)
		}
		limit, err := readLimit(r.URL.Query())
		if err != nil {
			return nil, err
		}
		limit = min(cmp.Or(limit, defaultAdminPage), maxAdminPage)
		q, err := readQuestion(r)
		if err != nil {
			return nil, err
		}
		q.Paged = true
		if q.From, q.After, err = c.read(r.URL.Query().Get("after")); err != nil {
			return nil, err
		}
		all, missing, err := askNodes[P](o, r, q)
		if err != nil {
			return nil, err
		}
		into := new(P)
		list, told := view(into)
		*list, *told = []T{}, missing
		for _, one := range all {
			if one.page == nil {
				continue
			}
			part, _ := view(one.page)
			if len(*list) > 0 && len(*list)+len(*part) > limit {
				c.write(into, one.name, "")
				break
			}
			for i := range *part {
				node(&(*part)[i], one.name)
			}
			*list = append(*list, *part...)
			if next := c.next(one.page); next != "" {
				c.write(into, one.name, next)
				break
			}
		}
		return into, nil
	}
}

// The pages of all lists.
const (
	defaultAdminPage = 100
	maxAdminPage     = 1000
)

// cursors are how a page says where the next one begins.
type cursors[P any] struct {
	next  func(of *P) string // of one gateway; empty for the last page
	write func(into *P, node, next string)
	read  func(after string) (node, next string, err error)
}

var errAfter = task.Errorf(task.InvalidParams, "after must be the value that the page before returned")

// nodeMark stands between the name of a gateway and its own cursor. Neither has it.
const nodeMark = "!"

// named are cursors that are texts.
func named[P any](next func(*P) *string) cursors[P] {
	return cursors[P]{
		next:  func(of *P) string { return *next(of) },
		write: func(into *P, node, after string) { *next(into) = node + nodeMark + after },
		read: func(after string) (string, string, error) {
			node, own, ok := strings.Cut(after, nodeMark)
			if after != "" && !ok {
				return "", "", errAfter
			}
			return node, own, nil
		},
	}
}

// numbered are named cursors that are numbers where one gateway is alone.
func numbered[P any](next func(*P) *adminapi.Cursor) cursors[P] {
	return named(func(of *P) *string { return (*string)(next(of)) })
}

// spreadAnswers are the routes whose answers are those of all gateways, or of the owner of a shard.
func spreadAnswers() map[string]adminAnswer {
	all := map[string]adminAnswer{
		adminapi.Tasks: paged(listTasks, func(p *adminapi.TaskPage) (*[]adminapi.Task, *[]string) {
			return &p.Tasks, &p.Missing
		}, func(t *adminapi.Task, node string) { t.Gateway = node },
			named(func(p *adminapi.TaskPage) *string { return &p.Next })),
		adminapi.Streams: paged(listStreams, func(p *adminapi.StreamPage) (*[]adminapi.Stream, *[]string) {
			return &p.Streams, &p.Missing
		}, func(s *adminapi.Stream, node string) { s.Gateway = node },
			numbered(func(p *adminapi.StreamPage) *adminapi.Cursor { return &p.Next })),
		adminapi.Deliveries: paged(ofWebhooks(listDeliveries),
			func(p *adminapi.DeliveryPage) (*[]adminapi.Delivery, *[]string) { return &p.Deliveries, &p.Missing },
			func(d *adminapi.Delivery, node string) { d.Gateway = node },
			named(func(p *adminapi.DeliveryPage) *string { return &p.Next })),
		adminapi.QuotaUses: paged(listQuotas, func(p *adminapi.QuotaPage) (*[]adminapi.QuotaUse, *[]string) {
			return &p.Quotas, &p.Missing
		}, func(u *adminapi.QuotaUse, node string) { u.Gateway = node },
			named(func(p *adminapi.QuotaPage) *string { return &p.Next })),

		adminapi.Groups: spread(listGroups, func(into, of *adminapi.GroupList, node string) {
			for i := range of.Groups {
				of.Groups[i].Gateway = node
			}
			into.Groups = append(into.Groups, of.Groups...)
		}, func(l *adminapi.GroupList, missing []string) error {
			slices.SortFunc(l.Groups, func(a, b adminapi.Group) int {
				return cmp.Or(cmp.Compare(a.Partner, b.Partner), cmp.Compare(a.Leader, b.Leader),
					cmp.Compare(a.GroupName.Group, b.GroupName.Group))
			})
			l.Missing = missing
			return nil
		}),
		adminapi.Endpoints: spread(ofWebhooks(listEndpoints), func(into, of *adminapi.EndpointList, node string) {
			for i := range of.Endpoints {
				of.Endpoints[i].Gateway = node
			}
			into.Endpoints = append(into.Endpoints, of.Endpoints...)
		}, func(l *adminapi.EndpointList, missing []string) error {
			slices.SortStableFunc(l.Endpoints, func(a, b adminapi.Endpoint) int { return cmp.Compare(a.URL, b.URL) })
			l.Missing = missing
			return nil
		}),
		adminapi.PolicyRules: spread(listRules, addRules, func(*adminapi.RuleList, []string) error { return nil }),

		adminapi.ReplayDeliveries: everywhere(ofWebhooks(replayDeliveries), func(into, of *adminapi.Replayed, _ string) {
			into.Replayed += of.Replayed
		}),
	}
	for path, to := range map[string]func(notify.Engines, context.Context, string) error{
		adminapi.DisableEndpoint: notify.Engines.Disable, adminapi.EnableEndpoint: notify.Engines.Enable,
	} {
		all[path] = everywhere(ofWebhooks(switchEndpoint(to)),
			func(into, of *adminapi.EndpointName, _ string) { *into = *of })
	}
	for _, path := range []string{adminapi.Webhooks, adminapi.TaskEvents, adminapi.CancelTask, adminapi.FailTask,
		adminapi.LeaveGroup} {
		all[path] = atOwner(adminAnswers[path])
	}
	return all
}

// addRules adds what another gateway has decided.
func addRules(into, of *adminapi.RuleList, _ string) {
	for _, r := range of.Rules {
		i := slices.IndexFunc(into.Rules, func(o adminapi.Rule) bool {
			return o.Partner == r.Partner && o.Kind == r.Kind && o.Name == r.Name
		})
		if i < 0 {
			into.Rules = append(into.Rules, r)
			continue
		}
		into.Rules[i].Allowed += r.Allowed
		into.Rules[i].Denied += r.Denied
		into.Rules[i].DryRun += r.DryRun
	}
}

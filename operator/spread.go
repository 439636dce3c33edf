// SPDX-License-Identifier: Apache-2.0

package operator

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
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/replay/shard/ask"
	"github.com/aip-gateway/aip-gateway/task"
)

// An operator asks any of several gateways, and is answered for all: lists have what each of them lists, with its name,
// and what is changed is changed by the owner of the shard, or by all. Each answers for itself by the same functions as
// a gateway that is alone.

// question is a request of the admin API, as it is handed to other gateways.
type question struct {
	Path, Method, Query string
	Body                []byte

	// Pages of lists are those of one gateway after the other. From is the name of the first one that has something on
	// this page, and After what the query of that one has.
	From, After string
	Paged       bool
}

// answered is what one gateway answers for itself.
type answered struct {
	Shards []int // that it owns, for a question to all
	Body   json.RawMessage
}

// answerOthers answers another gateway for this one.
func (a *Admin) answerOthers(ctx context.Context, of int, q question) (out answered, err error) {
	alone := a.routes[q.Path].alone
	if alone == nil {
		return out, fmt.Errorf("this gateway does not have the route %s", q.Path)
	}
	query := q.Query
	if q.Paged {
		values, err := url.ParseQuery(q.Query)
		if err != nil {
			return out, err
		}
		name := a.Shards.Peers().Name()
		if values.Del("after"); name < q.From {
			return out, nil
		} else if name == q.From && q.After != "" {
			values.Set("after", q.After)
		}
		query = values.Encode()
	}
	for tries := (ask.Tries{}); ; {
		r, err := http.NewRequestWithContext(ctx, q.Method, q.Path+"?"+query, bytes.NewReader(q.Body))
		if err != nil {
			return out, err
		}
		before := node.Owned(a.Shards)
		body, err := alone(a, r)
		if err == nil {
			if of == shard.AnyShard { // those that were read from the beginning to the end
				out.Shards = slices.DeleteFunc(before, func(i int) bool { return !a.Shards.Owns(i) })
			}
			out.Body, err = json.Marshal(body)
			return out, err
		}
		// A shard has left while it was read: the rest is read again.
		leaves := of == shard.AnyShard && q.Method == http.MethodGet && errors.Is(err, replay.ErrClosed)
		if !leaves || tries.Wait(ctx, node.Patience) != nil {
			return out, err
		}
	}
}

// A sharedAnswer answers a request by what the gateways that share the store answer to its question.
type sharedAnswer func(*Admin, *http.Request, question) (any, error)

// answer answers a request by this gateway, or where several share the store, by those that several asks.
func (of route) answer(a *Admin, r *http.Request) (any, error) {
	if of.several == nil || a.Shards.Peers() == nil {
		return of.alone(a, r)
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if err != nil {
		return nil, errBody("at most 1 MiB of JSON")
	}
	return of.several(a, r, question{Path: r.URL.Path, Method: r.Method, Query: r.URL.RawQuery, Body: body})
}

// atOwner answers with what the owner of a Leader's shard does, which alone has it. The Partner and the Leader are in
// the query, or in the body.
func atOwner(a *Admin, r *http.Request, q question) (any, error) {
	var of struct{ Partner, Leader string }
	if of.Partner, of.Leader = r.URL.Query().Get("partner"), r.URL.Query().Get("leader"); len(q.Body) > 0 {
		_ = json.Unmarshal(q.Body, &of) // the owner says what is wrong
	}
	out, err := a.asked.Of(r.Context(), a.Tasks.ShardOf(a.partnerOf(of.Partner), of.Leader), q)
	return out.Body, err
}

// ofNode is the answer of one gateway.
type ofNode[P any] struct {
	name string
	page *P
}

// askNodes asks all gateways, and returns their answers in the order of their names. missing says what they do not
// cover: gateways that have not answered, and shards that none of them owns.
func askNodes[P any](a *Admin, r *http.Request, q question) (all []ofNode[P], missing []string, err error) {
	ctx, done := context.WithTimeout(r.Context(), node.Patience)
	defer done()
	owned := make([]bool, a.Shards.Count())
	for answer, err := range a.asked.All(ctx, q) {
		switch {
		case err != nil && answer.Node == a.Shards.Peers().Name():
			return nil, nil, err // what is wrong with the request
		case err != nil:
			missing = append(missing, answer.Node)
			continue
		}
		for _, i := range answer.Value.Shards {
			if !node.HasShard(a.Shards, i) {
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
	return func(a *Admin, r *http.Request, q question) (any, error) {
		all, missing, err := askNodes[P](a, r, q)
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

// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"

	"github.com/aip-gateway/aip-gateway/front/group"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// selectGroups returns what a query selects.
func selectGroups(q url.Values) (selected func(*group.Status) bool, err error) {
	if state := group.State(q.Get("state")); state != "" && !slices.Contains(group.States(), state) {
		return nil, task.Errorf(task.InvalidParams, "state is %q, but must be one of %s", state, group.States())
	}
	return func(s *group.Status) bool {
		for name, value := range map[string]string{
			"partner": s.Partner, "leader": s.Leader, "group": s.Group, "state": string(s.State),
		} {
			if asked := q.Get(name); asked != "" && asked != value {
				return false
			}
		}
		return true
	}, nil
}

func listGroups(a *Admin, r *http.Request) (any, error) {
	selected, err := selectGroups(r.URL.Query())
	if err != nil {
		return nil, err
	}
	list := adminapi.GroupList{Groups: []adminapi.Group{}}
	all := a.Groups.List()
	for i := range all {
		s := &all[i]
		if !selected(s) {
			continue
		}
		list.Groups = append(list.Groups, adminapi.Group{
			GroupName: adminapi.GroupName{Partner: s.Partner, Leader: s.Leader, Group: s.Group},
			OfAgent:   a.agent(s.Partner),
			State:     string(s.State), Since: s.Since, Muted: s.Muted, Blocked: s.Blocked,
			LastError: s.LastError, NextAttempt: s.NextAttempt, Joined: s.Joined,
			Dialect: s.Dialect, LeaderAIC: s.LeaderAIC, Members: append([]string{}, s.Members...),
			Broker: s.Broker, VHost: s.VHost, Node: s.Node, Exchange: s.Exchange, Queue: s.Queue,
			Tasks: s.Tasks, Lag: s.Lag, Unconfirmed: s.Unconfirmed,
			Received: s.Received, Executed: s.Executed, Ignored: s.Ignored, Poison: s.Poison,
			Published: s.Published, Confirmed: s.Confirmed,
		})
	}
	return list, nil
}

func leaveGroup(a *Admin, r *http.Request) (any, error) {
	var name adminapi.GroupName
	const form = `{"partner": "…", "leader": "…", "group": "…"}`
	err := readBody(r, &name, form, &name.Partner, &name.Leader, &name.Group)
	if err != nil {
		return nil, err
	}
	name.Partner = a.partnerOf(name.Partner)
	return name, a.Groups.Leave(r.Context(), name.Partner, name.Leader, name.Group)
}

var allGroups = merged(func(l *adminapi.GroupList) listFields[adminapi.Group] {
	return listFields[adminapi.Group]{entries: &l.Groups, missing: &l.Missing}
}, func(a, b adminapi.Group) int {
	return cmp.Or(cmp.Compare(a.Partner, b.Partner), cmp.Compare(a.Leader, b.Leader),
		cmp.Compare(a.GroupName.Group, b.GroupName.Group))
})

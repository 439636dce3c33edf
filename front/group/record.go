// SPDX-License-Identifier: Apache-2.0

package group

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// recordVersion is the version of the stored form of a record. A record of a later version is left alone.
const recordVersion = 1

// record is the stored form of a membership: the metadata of its log. The log has no records. The names of the members
// are a stored format.
type record struct {
	Version  int       `json:"v"`
	Joined   time.Time `json:"joined"`
	AIC      string    `json:"aic"`     // of the agent, when it joined
	Dialect  string    `json:"dialect"` // of the last invitation
	Protocol string    `json:"protocol"`
	Leader   member    `json:"leader"`
	Partners []member  `json:"partners,omitempty"`

	Host  string `json:"host"`
	Port  int    `json:"port"`
	VHost string `json:"vhost"`
	// Sealed is the access token, encrypted; empty without a token or a key. HasToken is set if there is a token.
	Sealed   []byte `json:"token,omitempty"`
	HasToken bool   `json:"hasToken,omitempty"`

	Exchange     string `json:"exchange"`
	ExchangeType string `json:"exchangeType"`
	RoutingKey   string `json:"routingKey,omitempty"`
	Queue        string `json:"queue"`
	Node         string `json:"node,omitempty"` // the broker's own name

	// Inbox is task.Invitation.Inbox of the last invitation by the inbox; empty for none.
	Inbox string `json:"inbox,omitempty"`

	// Announce is the source of the id of the status by which the member announces itself, until a broker has confirmed
	// the status. It is empty then, and if the dialect has no such status.
	Announce string `json:"announce,omitempty"`

	Muted   bool       `json:"muted,omitempty"`
	Leaving *departure `json:"leaving,omitempty"`
}

// member is an agent of the group.
type member struct {
	AIC    string   `json:"aic"`
	Skills []string `json:"skills,omitempty"`
}

// departure is a begun leave. A leaving membership never becomes a staying one.
type departure struct {
	Since time.Time `json:"since"`
	// The command asking for it, for the last member status; empty if an operator did.
	Command   string `json:"command,omitempty"`
	Dialect   string `json:"dialect,omitempty"`
	SessionID string `json:"session,omitempty"`
	// KeepTasks has running tasks go on, without the group.
	KeepTasks bool `json:"keepTasks,omitempty"`
}

// newRecord returns the record of an invitation, with the agent's AIC.
func newRecord(inv *task.Invitation, aic string, now time.Time) record {
	r := record{
		Version: recordVersion, Joined: now, AIC: aic, Dialect: inv.Dialect, Protocol: inv.Protocol,
		Leader: member(inv.Group.Leader), Host: inv.Server.Host, Port: inv.Server.Port, VHost: inv.Server.VHost,
		Inbox: inv.Inbox, HasToken: inv.Server.AccessToken != "",
		Exchange: inv.Exchange.Name, ExchangeType: inv.Exchange.Type,
		RoutingKey: inv.Exchange.RoutingKey, Queue: queueName(inv.Group.Leader.AIC, inv.Group.ID, aic),
	}
	for _, p := range inv.Group.Partners {
		r.Partners = append(r.Partners, member(p))
	}
	return r
}

// queueName returns the name of the agent's own queue. It has the form of AIP v02 for every generation, so a Leader
// grants permissions in one form.
func queueName(leader, groupID, aic string) string {
	return exchangeName(leader, groupID) + "_" + aic
}

// sameBroker reports whether the queue of two records is at the same place, as far as their addresses say.
func (r *record) sameBroker(other *record) bool {
	return r.sameAddress(other) && r.VHost == other.VHost && r.Queue == other.Queue
}

// sameAddress reports whether two records have one host and port.
func (r *record) sameAddress(other *record) bool {
	return normaliseHost(r.Host) == normaliseHost(other.Host) && r.Port == other.Port
}

// sameLink reports whether a link for one of two records serves the other one, too, if the token is the same.
func (r *record) sameLink(other *record) bool {
	return r.sameBroker(other) && r.HasToken == other.HasToken && r.Exchange == other.Exchange &&
		r.ExchangeType == other.ExchangeType && r.RoutingKey == other.RoutingKey
}

// newLog returns the name of the log of a new membership. Each life of a membership has a log of its own, because an
// ended log takes no more appends while the store keeps it.
func newLog(k key) string {
	return logname.MembershipsOf(k.partner, k.leader, k.group) + rand.Text()[:13]
}

// put stores a record, durably, in a log at a revision.
func (r *record) put(ctx context.Context, store replay.Store, log string, revision uint64) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return store.Append(ctx, replay.Append{Log: log, Expect: revision, Metadata: data, Durable: true})
}

// end ends the log of a membership that is over. The token is not kept any longer.
func (r record) end(ctx context.Context, store replay.Store, log string, revision uint64) error {
	r.Sealed = nil
	data, err := json.Marshal(&r)
	if err != nil {
		return err
	}
	return store.Append(ctx, replay.Append{Log: log, Expect: revision, Metadata: data, Durable: true, End: true})
}

// stored is a membership as it lies in the store.
type stored struct {
	log      string
	revision uint64 // of the log; 0 for one not there yet
	key      key
	record   record
}

// load returns the memberships of a store, without the ended ones. Of two of one name, the later one counts. damaged
// names the unreadable ones; they are left alone.
func load(ctx context.Context, store replay.Store) (all []stored, damaged error, err error) {
	byKey := make(map[key]stored)
	for entry, err := range store.List(ctx, string(logname.Membership), "") {
		if err != nil {
			return nil, nil, fmt.Errorf("the memberships of groups cannot be read: %w", err)
		}
		if !entry.Head.Ended.IsZero() {
			continue
		}
		s := stored{log: entry.Log, revision: entry.Head.Revision}
		s.key.partner, s.key.leader, s.key.group = logname.SplitMembership(entry.Log)
		if err := json.Unmarshal(entry.Head.Metadata, &s.record); err != nil {
			damaged = errors.Join(damaged, fmt.Errorf("the membership of group %q: %w", s.key.group, err))
			continue
		}
		if s.record.Version != recordVersion {
			damaged = errors.Join(damaged, fmt.Errorf("the membership of group %q has the unknown format %d",
				s.key.group, s.record.Version))
			continue
		}
		if before, ok := byKey[s.key]; !ok || before.record.Joined.Before(s.record.Joined) {
			byKey[s.key] = s
		}
	}
	for _, s := range byKey {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b stored) int { return cmp.Compare(a.log, b.log) })
	return all, damaged, nil
}

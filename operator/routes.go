// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"github.com/aip-gateway/aip-gateway/acps/agentca"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/partner"
)

// routes are all routes but those of health, by path.
var routes = map[string]route{
	adminapi.Deliveries:       {alone: listDeliveries, several: allDeliveries},
	adminapi.Exchanges:        {alone: listExchanges, several: allExchanges},
	adminapi.ReplayDeliveries: {alone: ofWebhooks(replayDeliveries), several: everywhere(addReplayed)},
	adminapi.Webhooks:         {alone: listWebhooks, several: atOwner},
	adminapi.Endpoints:        {alone: ofWebhooks(listEndpoints), several: allEndpoints},
	adminapi.DisableEndpoint:  {alone: ofWebhooks(switchEndpoint(notify.Engines.Disable)), several: switchAll},
	adminapi.EnableEndpoint:   {alone: ofWebhooks(switchEndpoint(notify.Engines.Enable)), several: switchAll},

	adminapi.Groups:     {alone: listGroups, several: allGroups},
	adminapi.LeaveGroup: {alone: leaveGroup, several: atOwner},

	adminapi.AgentCardOf:     {alone: showAgentCard},
	adminapi.AgentSettingsOf: {alone: showAgentSettings},
	adminapi.OverviewOf:      {alone: showOverview, several: allOverviews},

	adminapi.Tasks:      {alone: listTasks, several: allTasks},
	adminapi.TaskCounts: {alone: countTasks, several: allCounts},
	adminapi.TaskEvents: {alone: listTaskEvents, several: atOwner},
	adminapi.ShowTask:   {alone: showContents, several: atOwner},
	adminapi.CancelTask: {alone: endTask((*partner.Engine).Cancel), several: atOwner},
	adminapi.FailTask:   {alone: endTask((*partner.Engine).Fail), several: atOwner},
	adminapi.TailTasks:  {stream: tailTasks},
	adminapi.TryPartner: {alone: tryPartner},
	adminapi.Streams:    {alone: listStreams, several: allStreams},

	adminapi.Drain:     {alone: drain},
	adminapi.Cluster:   {alone: reportCluster},
	adminapi.MoveShard: {alone: moveShard},
	adminapi.DrainNode: {alone: drainNode},

	adminapi.Store:       {alone: reportStore(false)},
	adminapi.VerifyStore: {alone: reportStore(true)},
	adminapi.BackupStore: {alone: backupStore},
	adminapi.ExportStore: {stream: exportStore},

	adminapi.PolicyRules: {alone: listRules, several: allRules},
	adminapi.QuotaUses:   {alone: listQuotas, several: allQuotas},
	adminapi.Issuers:     {alone: listIssuers},

	adminapi.CheckDiscovery: {alone: checkDiscovery},
	adminapi.Registrations:  {alone: registrations},
	adminapi.Withdraw:       {alone: withdraw},

	adminapi.Certificates:       {alone: listCertificates},
	adminapi.RenewCertificates:  {alone: onCertificates((*agentca.Keeper).Renew)},
	adminapi.RetireCertificates: {alone: onCertificates((*agentca.Keeper).Retire)},
}

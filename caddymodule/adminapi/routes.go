// SPDX-License-Identifier: Apache-2.0

package adminapi

// Flags and parameters that several commands and routes have.
var (
	ofTask = []Flag{
		{"partner", "of this Partner: its name, its AIC, or its agent's URL", false}, {"leader", "of this Leader", false},
	}
	ofGroup = []Flag{
		{"partner", "of this Partner: its name, or its AIC", false}, {"leader", "of this Leader", false},
	}
	ofRegistration = []Flag{{"partner", "of this Partner: its name, its AIC, or its public URL", false}}
	ofState        = Flag{"state", "pending, or a state of AIP; may be repeated", true}
	ofDelivery     = []Flag{
		{"status", "pending, failing, dead or disabled", false},
		{"partner", "of this Partner: its name, its AIC, or its agent's URL", false},
		{"leader", "of this Leader's tasks", false},
		{"task", "of the task with this id", false},
		{"webhook", "of the webhook with this id", false},
		{"host", "to this host", false},
		{"id", "with this webhook-id; may be repeated", true},
	}
	ending = append([]Flag{{"reason", "why; the Leader sees it in the status of the task", false}}, ofTask...)

	deliveryQuery = []string{"status", "partner", "leader", "task", "webhook", "host", "id", "after", "limit"}
)

// Routes are all routes of the gateway in the admin API.
var Routes = []Route{
	{
		Path: Deliveries, Method: "GET", Console: MayRead,
		Query: deliveryQuery,
		Commands: []Command{{
			Name:  "deliveries list",
			Args:  "[--status <status>] [--task <id>] [--host <host>] [...]",
			Short: "Lists the notifications that were not delivered",
			Long: `
Lists the notifications that were not delivered, in the order of their next attempt:
pending (not tried yet), failing (will be retried), dead (given up, kept as a dead
letter for 7 days) and disabled (held, because the webhook or its endpoint is
disabled).
`,
			Example: `  $ caddy aip deliveries list --status dead
  $ caddy aip deliveries list --task task-1 --json`,
			Flags: ofDelivery,
		}, {
			Name:  "deliveries show",
			Args:  "<webhook-id>",
			Short: "Shows a notification that was not delivered",
			Long: `
Shows a notification that was not delivered: what it notifies of, how many attempts
were made, when the next one is made, and how each of the last 10 has failed. After a
replay, attempts are counted from 0 again; those before it are still shown.
`,
			Example: `  $ caddy aip deliveries show msg_kxcl3b264zda7tqfhbumm3gm6xvbk2fgey7vmke4iblemnhplrea`,
		}},
	},
	{
		Path: ReplayDeliveries, Method: "POST", Console: MayReplay,
		Query: deliveryQuery,
		Commands: []Command{{
			Name:  "deliveries replay",
			Args:  "[<webhook-id>...] [--task <id>] [--host <host>] [--status dead] [...]",
			Short: "Sends dead notifications again",
			Long: `
Sends notifications again that were given up, with as many attempts as new ones and
with the same webhook-ids. Select them by their ids, by the flags of list, or all
of them by --status dead.
`,
			Example: `  $ caddy aip deliveries replay msg_kxcl3b264zda7tqfhbumm3gm6xvbk2fgey7vmke4iblemnhplrea
  $ caddy aip deliveries replay --host hooks.example.com`,
			Flags: ofDelivery,
		}},
	},
	{Path: Webhooks, Method: "GET", Query: []string{"partner", "leader", "task"}, Console: MayRead},
	{
		Path: Endpoints, Method: "GET", Console: MayRead,
		Commands: []Command{{
			Name:  "deliveries endpoints",
			Short: "Lists the endpoints of webhooks",
			Long: `
Lists the endpoints (scheme, host and port) of recent and waiting notifications, and
the state of their circuit breakers: closed (the endpoint works), open (it fails, and
gets no requests for a while), half-open (it is being tested) or disabled.
`,
			Example: `  $ caddy aip deliveries endpoints`,
		}},
	},
	{
		Path: DisableEndpoint, Method: "POST", Console: MaySwitch,
		Commands: []Command{{
			Name:  "deliveries disable",
			Args:  "<endpoint>",
			Short: "Holds all notifications to an endpoint",
			Long: `
Holds all notifications to an endpoint, which is a scheme, a host and a port, such as
https://hooks.example.com. Its notifications are kept while it is disabled.
`,
			Example: "  $ caddy aip deliveries disable https://hooks.example.com",
		}},
	},
	{
		Path: EnableEndpoint, Method: "POST", Console: MaySwitch,
		Commands: []Command{{
			Name:  "deliveries enable",
			Args:  "<endpoint>",
			Short: "Resumes all notifications to an endpoint",
			Long: `
Resumes all notifications to an endpoint, which is a scheme, a host and a port, such as
https://hooks.example.com. Its notifications are kept while it is disabled.
`,
			Example: "  $ caddy aip deliveries enable https://hooks.example.com",
		}},
	},
	{
		Path: Groups, Method: "GET", Console: MayRead,
		Query: []string{"partner", "leader", "group", "state"},
		Commands: []Command{{
			Name:  "groups list",
			Args:  "[--state <state>] [--leader <aic>] [--partner <name>]",
			Short: "Lists the groups in which the gateway's Partners take part",
			Long: `
Lists the groups in which the gateway's Partners take part: joining (the invitation is
being answered), joined (connected to the broker), reconnecting (the connection is
lost), waiting (for an invitation, because the broker refuses the token, or it is not
known any more), unregistered (the Partner is not in the configuration) or leaving. LAG
is the number of tasks with changes that are still to be published.
`,
			Example: `  $ caddy aip groups list
  $ caddy aip groups list --state waiting --json`,
			Flags: append([]Flag{
				{"state", "joining, joined, reconnecting, waiting, unregistered or leaving", false},
			}, ofGroup...),
		}, {
			Name:  "groups show",
			Args:  "<group> [--leader <aic>] [--partner <name>]",
			Short: "Shows a group: its members, its broker and its counters",
			Long: `
Shows a group in which a Partner of the gateway takes part. The counters begin with the
process. If several Leaders or Partners have a group of this name, say which.
`,
			Example: `  $ caddy aip groups show trip-1`,
			Flags:   ofGroup,
		}},
	},
	{
		Path: LeaveGroup, Method: "POST", Console: MayLeave,
		Commands: []Command{{
			Name:  "groups leave",
			Args:  "<group> [--leader <aic>] [--partner <name>]",
			Short: "Leaves a group",
			Long: `
Leaves a group, as if its Leader had asked for it: tasks of the group that have not
ended are canceled, the Partner says in the group that it is not connected any more,
and its queue is deleted. AIP has Leaders decide who leaves, so use it only for a group
that its Leader has given up.
`,
			Example: `  $ caddy aip groups leave trip-1`,
			Flags:   ofGroup,
		}},
	},
	{Path: HealthLive, Method: "GET, HEAD"},
	{Path: HealthReady, Method: "GET, HEAD", Console: MayRead},
	{Path: AgentCardOf, Method: "GET", Query: []string{"partner"}, Console: MayRead},
	{
		Path: Tasks, Method: "GET", Console: MayRead,
		Query: []string{"partner", "leader", "task", "state", "min_age", "max_age", "after", "limit"},
		Commands: []Command{{
			Name:  "tasks list",
			Args:  "[--state <state>] [--min-age <time>] [--leader <aic>] [--partner <name>] [...]",
			Short: "Lists the tasks of the gateway",
			Long: `
Lists the tasks of the gateway, those that have ended included while they are kept, in
the order of their Partners, Leaders and ids. A task is pending until its Leader gets
the first answer. The age of a task is the time since its last change of state.
`,
			Example: `  $ caddy aip tasks list
  $ caddy aip tasks list --state working --min-age 1h
  $ caddy aip tasks list --state failed --max-age 1d --json`,
			Flags: append([]Flag{
				ofState,
				{"min-age", "whose state has not changed for this time, such as 10m or 2d", false},
				{"max-age", "whose state has changed within this time", false},
			}, ofTask...),
		}},
	},
	{
		Path: TaskEvents, Method: "GET", Console: MayRead,
		Query: []string{"partner", "leader", "task", "after", "limit"},
		Commands: []Command{{
			Name:  "tasks show",
			Args:  "<task> [--after <event>] [--leader <aic>] [--partner <name>]",
			Short: "Shows a task with its events",
			Long: `
Shows a task with its events, and the Leader's messages that caused them. If several
Leaders or Partners have a task with this id, say which.
`,
			Example: `  $ caddy aip tasks show task-1
  $ caddy aip tasks show task-1 --after 100 --json`,
			Flags: ofTask,
		}},
	},
	{
		Path: TailTasks, Method: "GET", Console: MayRead,
		Query: []string{"partner", "leader", "task", "state", "after"},
		Commands: []Command{{
			Name:  "tasks tail",
			Args:  "[<task>] [--state <state>] [--after <event>] [--leader <aic>] [--partner <name>]",
			Short: "Prints changes of tasks, or the events of one task, as they happen",
			Long: `
Prints the changes of state of all tasks as they happen, or the events of one task, until
it has ended. After a reload of Caddy it continues: with a task at the next event, without
one at the present, so that changes may be missing. Ctrl-C ends it.
`,
			Example: `  $ caddy aip tasks tail --state failed --state awaiting-input
  $ caddy aip tasks tail task-1 --after 0`,
			Flags: append([]Flag{ofState}, ofTask...),
		}},
	},
	{
		Path: CancelTask, Method: "POST", Console: MayCancel,
		Commands: []Command{{
			Name:  "tasks cancel",
			Args:  "<task> [--reason <text>] [--leader <aic>] [--partner <name>]",
			Short: "Cancels a task as the operator",
			Long: `
Cancels a task that has not ended. Its agent is asked to stop, as if the Leader had
canceled the task, and the status says that the operator of the gateway did it, and
why. The Leader sees that. If several Leaders or Partners have a task with this id, say
which.
`,
			Example: `  $ caddy aip tasks cancel task-1 --reason "the agent is taken out of service"`,
			Flags:   ending,
		}},
	},
	{
		Path: FailTask, Method: "POST", Console: MayFail,
		Commands: []Command{{
			Name:  "tasks fail",
			Args:  "<task> [--reason <text>] [--leader <aic>] [--partner <name>]",
			Short: "Ends a task as failed, as the operator",
			Long: `
Ends a task that its agent works on as failed. The agent is asked to stop, but the task
fails whatever it answers. The status says that the operator of the gateway did it, and
why. The Leader sees that. If several Leaders or Partners have a task with this id, say
which.
`,
			Example: `  $ caddy aip tasks fail task-1 --reason "the agent has lost its data"`,
			Flags:   ending,
		}},
	},
	{Path: TryPartner, Method: "POST", Console: MayTry},
	{
		Path: Streams, Method: "GET", Console: MayRead,
		Query: []string{"partner", "leader", "task", "after", "limit"},
		Commands: []Command{{
			Name:  "streams",
			Args:  "[--task <id>] [--leader <aic>] [--partner <name>]",
			Short: "Lists the open streams of a running gateway",
			Long: `
Lists the open streams of a running gateway, the oldest first: whose task each sends,
since when, how many events it has sent, and how many are still to be sent. A stream
that is far behind has a caller that reads slowly. It uses Caddy's admin API.
`,
			Example: `  $ caddy aip streams
  $ caddy aip streams --task task-1 --json`,
			Flags: append([]Flag{{"task", "of the task with this id", false}}, ofTask...),
		}},
	},
	{
		Path: Drain, Method: "GET, POST, DELETE",
		Commands: []Command{{
			Name:  "drain",
			Args:  "[--wait [--timeout <time>]] [--end]",
			Short: "Has a running gateway refuse new tasks, before it is stopped",
			Long: `
Has a running gateway refuse new tasks, before it is stopped, for example for an upgrade.
The tasks that it has continue, and take all commands. With --wait it returns when no
agent works on a task any more; what waits for its Leader then, continues after the
restart. The gateway refuses new tasks until --end, or until it is stopped.
`,
			Example: `  $ caddy aip drain --wait --timeout 10m && caddy stop
  $ caddy aip drain --end`,
		}},
	},
	{
		Path: Store, Method: "GET",
		Commands: []Command{{
			Name:  "store inspect",
			Args:  "[--store <directory>]",
			Short: "Shows what a store has",
			Long: `
Shows how many tasks, outboxes and other logs a store has, and how large it is.
`,
			Example: `  $ caddy aip store inspect
  $ caddy aip store inspect --store /var/backups/aip`,
		}},
	},
	{
		Path: VerifyStore, Method: "POST",
		Commands: []Command{{
			Name:  "store verify",
			Args:  "[--store <directory>]",
			Short: "Reads all of a store, and says what is wrong",
			Long: `
Reads all of a store, with the checksums of its files, decodes the events of all tasks,
and says what is wrong. It ends with 1 if something is. It changes nothing.
`,
			Example: `  $ caddy aip store verify
  $ caddy aip store verify --store /var/backups/aip`,
		}},
	},
	{
		Path: BackupStore, Method: "POST",
		Commands: []Command{{
			Name:  "store backup",
			Args:  "<directory> [--store <directory>]",
			Short: "Copies a store, also one that is in use",
			Long: `
Copies a store into a new directory, also while the gateway uses it. The copy has all
that was acknowledged before, and is consistent. It is made by the gateway, on its
machine, and takes little space at first where it is on the same file system. To
restore it, stop Caddy and put the copy in the place of the store.
`,
			Example: `  $ caddy aip store backup /var/backups/aip-2026-11-22`,
		}},
	},
	{
		Path: ExportStore, Method: "GET",
		Commands: []Command{{
			Name:  "store export",
			Args:  "[--store <directory>] [--output <file>]",
			Short: "Writes a store as lines of JSON",
			Long: `
Writes a store as lines of JSON, which another version can import. It has what Leaders
and agents have written, and the tokens of webhooks.
`,
			Example: `  $ caddy aip store export --output store.ndjson
  $ caddy aip store export --store /var/lib/caddy/aip | gzip > store.ndjson.gz`,
		}},
	},
	{
		Path: PolicyRules, Method: "GET", Console: MayRead, Query: []string{"partner"},
		Commands: []Command{{
			Name:  "policy list",
			Args:  "[--partner <name>]",
			Short: "Lists the rules and quotas of a running gateway, and what they have decided",
			Long: `
Lists the rules of the policies of a running gateway, in the order in which they are
asked, and its quotas. ALLOWED and DENIED are calls since the process began, and DRY RUN
those that would have been denied.
`,
			Example: `  $ caddy aip policy list`,
			Flags:   ofTask[:1],
		}},
	},
	{
		Path: QuotaUses, Method: "GET", Console: MayRead, Query: []string{"quota", "of", "after", "limit"},
		Commands: []Command{{
			Name:  "policy quotas",
			Args:  "[--quota <name>] [--of <leader>]",
			Short: "Lists what the quotas of a running gateway have counted",
			Long: `
Lists what the quotas of a running gateway have counted: tasks that were started, and
bytes that were sent, on a day of UTC, the last one with a call. OF is whose calls count
together; "-" for those of all to whom the quota applies.
`,
			Example: `  $ caddy aip policy quotas --quota fair`,
			Flags: []Flag{
				{"quota", "of the quota of this name", false},
				{"of", "of this Leader, or Partner", false},
			},
		}},
	},
	{
		Path: Issuers, Method: "GET", Console: MayRead, Query: []string{"partner"},
		Commands: []Command{{
			Name:  "issuers",
			Args:  "[--partner <name>]",
			Short: "Lists the issuers of tokens of a running gateway, and their keys",
			Long: `
Lists the issuers whose tokens the Partners of a running gateway accept, how many
keys of each it has, and when it has fetched them. Keys are fetched when the first token
comes, and are kept while the issuer cannot be reached: then ERROR says why.
`,
			Example: `  $ caddy aip issuers`,
			Flags:   ofTask[:1],
		}},
	},
	{
		Path: Registrations, Method: "GET, POST", Query: []string{"partner"},
		Commands: []Command{{
			Name:  "acs status",
			Args:  "[--partner <url>]",
			Short: "Shows how far the registration of a Partner is",
			Long: `
Shows how far the registration of the Partners is whose AIC the registry assigns. It asks
the registry, by way of the running gateway.
`,
			Example: `  $ caddy aip acs status`,
			Flags:   ofRegistration,
		}, {
			Name:  "acs register",
			Args:  "[--partner <url>] [--new-version] [--resubmit] [--no-wait]",
			Short: "Registers a Partner, and waits for the decision of a person of the registry",
			Long: `
Registers a Partner of a running gateway by the ACS that it serves: looks for it at the
registry by its name and version, drafts it if it is not there, submits it, and waits
until a person of the registry has decided. That may take hours: it may be interrupted,
and the same command goes on where it was. The gateway asks the registry meanwhile, also
after a restart. Once it is approved, the configuration is loaded again, so that the
Partner uses its AIC.

An ACS that is approved can never change. Another content is a new version, which gets
another AIC: --new-version allows it, and what depends on the old AIC is printed.

Exit status: 0 it is approved, or with --no-wait submitted; 1 it is not.
`,
			Example: `  $ caddy aip acs register
  $ caddy aip acs register --new-version`,
			Flags: ofRegistration,
		}},
	},
	{
		Path: Withdraw, Method: "POST",
		Commands: []Command{{
			Name:  "acs withdraw",
			Args:  "[--partner <url>] [--delete [--aic <aic>]]",
			Short: "Takes a registration back",
			Long: `
Takes back what waits for the decision of a person of the registry: it becomes a draft,
which can be changed and registered again. --delete deletes a draft, or what was rejected.
With --aic it deletes the version that has this AIC, for ever: its certificates are
revoked, and nobody finds the Partner any more.
`,
			Example: `  $ caddy aip acs withdraw
  $ caddy aip acs withdraw --delete --aic 1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4`,
			Flags: append([]Flag{{"aic", "with --delete: the AIC of the version that is deleted", false}},
				ofRegistration...),
		}},
	},
	{
		Path: CheckDiscovery, Method: "GET",
		Commands: []Command{{
			Name:  "discover check",
			Short: "Asks the discovery servers whether they know the Partners",
			Long: `
Asks each discovery server of the option discovery for each Partner with an AIC, as a
caller would, and says what is missing. STATE is found; not-alive (the monitor hears
nothing of it); hidden (the server takes it for unavailable); inactive (the registry has
disabled it); missing (the server does not know it); or not-asked, with the REASON. SEEN
is when the monitor has last heard of it. It uses Caddy's admin API.
`,
			Example: `  $ caddy aip discover check
  $ caddy aip discover check --json`,
		}},
	},
	{
		Path: Certificates, Method: "GET",
		Commands: []Command{{
			Name:  "certificates list",
			Short: "Lists the certificates that a running gateway obtains for its Partners",
			Long: `
Lists the certificates that a running gateway obtains for its Partners, until when they
are valid, and when they are renewed. STATE is valid, revoked (by the authority),
missing, retired, inactive (the registry has disabled the agent), or needs EAB: then a
person has to get an EAB from the registry.
`,
			Example: `  $ caddy aip certificates list`,
		}},
	},
	{
		Path: RenewCertificates, Method: "POST",
		Commands: []Command{{
			Name:  "certificates renew",
			Args:  "<aic>",
			Short: "Has new certificates ordered at once",
			Long: `
Has new certificates with new keys ordered at once for a Partner, also for one that was
retired. Those that there are stay valid until they end.
`,
			Example: `  $ caddy aip certificates renew 1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4`,
		}},
	},
	{
		Path: RetireCertificates, Method: "POST",
		Commands: []Command{{
			Name:  "certificates retire",
			Args:  "<aic>",
			Short: "Revokes the certificates of a Partner, and orders no others",
			Long: `
Revokes the certificates of a Partner at its authority, as its operation ends, and orders
no others until "certificates renew" is used. The account at the authority is kept.
`,
			Example: `  $ caddy aip certificates retire 1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4`,
		}},
	},
	{
		Path: Cluster, Method: "GET", Console: MayRead,
		Commands: []Command{{
			Name:  "cluster",
			Short: "Shows the gateways that share a store, and which of them works on what",
			Long: `
Shows the gateways that share a store, and which of them works on which shard of the
tasks. SHOULD is the gateway to which a shard is about to move. LAG is how many writes
the slowest replica of a shard has still to make. It uses Caddy's admin API, and any
gateway answers for all.
`,
			Example: `  $ caddy aip cluster
  $ caddy aip cluster --json`,
		}},
	},
	{
		Path: MoveShard, Method: "POST",
		Commands: []Command{{
			Name:  "cluster move",
			Args:  "<shard> --to <node>",
			Short: "Moves a shard to another gateway",
			Long: `
Moves a shard to another gateway, which works on its tasks from then on. It stays there
until that gateway leaves. Calls of these tasks wait meanwhile, a second or less, and no
task is interrupted.
`,
			Example: `  $ caddy aip cluster move 7 --to east-2`,
			Flags:   []Flag{{"to", "the name of the gateway", false}},
		}},
	},
	{
		Path: DrainNode, Method: "POST, DELETE",
		Commands: []Command{{
			Name:  "cluster drain",
			Args:  "[<node>] [--end]",
			Short: "Has a gateway hand its shards to the others, before it is stopped",
			Long: `
Has a gateway, or the one that is asked, hand its shards to the others, one by one. It
takes calls meanwhile and after that, which the others execute, and gets no shard until
--end, or until it is started again. A gateway that is stopped does this by itself.
`,
			Example: `  $ caddy aip cluster drain east-2
  $ caddy aip cluster drain east-2 --end`,
		}},
	},
}

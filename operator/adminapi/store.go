// SPDX-License-Identifier: Apache-2.0

package adminapi

// The routes of the store.
const (
	Store       = "/aip/store"        // GET: StoreReport, without what Verify finds
	VerifyStore = "/aip/store/verify" // POST: StoreReport
	BackupStore = "/aip/store/backup" // POST StoreBackup: StoreBackup
	ExportStore = "/aip/store/export" // GET: an archive, lines of JSON
)

// StoreReport is what a store has.
type StoreReport struct {
	Driver string         `json:"driver"`
	Dir    string         `json:"dir,omitempty"`
	Size   int64          `json:"size,omitempty"` // of the files, in bytes
	Logs   int            `json:"logs"`
	Ended  int            `json:"ended"` // logs that have ended, and are kept for a time
	Bytes  int64          `json:"bytes"` // size of the records
	Kinds  map[string]int `json:"kinds"` // logs of each kind

	// What Verify finds.
	Records  int            `json:"records,omitempty"` // that were read
	Damaged  int            `json:"damaged"`           // logs with a problem
	Problems []StoreProblem `json:"problems,omitempty"`
}

// StoreProblem is what is wrong with a log.
type StoreProblem struct {
	Kind  string `json:"kind"`
	Log   string `json:"log"` // its name, with spaces between its parts
	Error string `json:"error"`
}

// StoreBackup names the directory of a backup, on the machine of the gateway.
type StoreBackup struct {
	Dir string `json:"dir"`
}

// storeRoutes are the routes of the store, and their commands.
var storeRoutes = []Route{
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
}

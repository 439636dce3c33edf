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

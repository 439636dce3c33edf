// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"github.com/aip-gateway/aip-gateway/task"
)

// legacyNoWebhook answers who asks for the one webhook of a task that has none.
var NotFound = task.Errorf(task.TaskNotFound, "this task has no push notification configuration")

// SPDX-License-Identifier: Apache-2.0

package adminapi

import "slices"

// Routes are all routes of the gateway in the admin API, in the order of the documentation.
var Routes = slices.Concat(deliveryRoutes, groupRoutes, healthRoutes, overviewRoutes, taskRoutes, tryRoutes,
	streamRoutes, drainRoutes, storeRoutes, policyRoutes, issuerRoutes, registrationRoutes, discoveryRoutes,
	certificateRoutes, clusterRoutes)

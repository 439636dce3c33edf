// SPDX-License-Identifier: Apache-2.0

package registrytest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
)

// Ontology is the AIC of the user's ontology.
const Ontology = "1.2.156.3088.1.0001.00001.YWG8FE.000000.0MJF"

// KeepNames has the registry keep the names for the certificates of entities, as one of ACPs 2.2 does.
func (r *Registry) KeepNames() { r.do(func() { r.keepsNames = true }) }

// Entities returns the AICs of the entities.
func (r *Registry) Entities() (list []string) {
	r.do(func() {
		for _, a := range r.agents {
			if aic, _ := a["aic"].(string); a["is_deleted"] != true && isEntity(aic) {
				list = append(list, aic)
			}
		}
	})
	return list
}

func isEntity(aic string) bool { return strings.Contains(aic, ".YWG8FE.") }

// entity makes an entity, as the registry of ACPs 2.1 does: of the request, only the endpoints are kept.
func (r *Registry) entity(body []byte) (int, string) {
	var sent struct {
		Ontology    string           `json:"ontologyAic"`
		EndPoints   []map[string]any `json:"endPoints"`
		Certificate any              `json:"certificate"`
	}
	if json.Unmarshal(body, &sent) != nil || sent.Ontology != Ontology || len(sent.EndPoints) != 1 {
		return http.StatusUnprocessableEntity, `{"title":"Request validation failed"}`
	}
	for _, a := range r.agents {
		aic, _ := a["aic"].(string)
		if a["is_deleted"] == true || !isEntity(aic) {
			continue
		}
		acs, _ := a["acs"].(map[string]any)
		if points, _ := acs["endPoints"].([]map[string]any); points[0]["url"] == sent.EndPoints[0]["url"] {
			status, text := Captured(r.t, "44-entity-same-url")
			return status, strings.ReplaceAll(text, "1.2.156.3088.1.0001.00001.YWG8FE.OGVPSG.0ZO8", aic)
		}
	}
	_, text := Captured(r.t, "52-list-entity")
	var list struct{ Items []map[string]any }
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		r.t.Error(err)
	}
	a := list.Items[0]
	aic := fmt.Sprintf("1.2.156.3088.1.0001.00001.YWG8FE.OGVPS%d.0ZO8", len(r.agents))
	acs, _ := a["acs"].(map[string]any)
	acs = maps.Clone(acs)
	acs["aic"], acs["endPoints"] = aic, sent.EndPoints
	if r.keepsNames {
		acs["certificate"] = sent.Certificate
	}
	a["acs"], a["aic"], a["id"] = acs, aic, fmt.Sprintf("01a208c8-f4b6-7731-8bfd-%012d", len(r.agents)+1)
	r.agents = append(r.agents, a)
	status, text := Captured(r.t, "43-entity")
	return status, strings.ReplaceAll(text, "1.2.156.3088.1.0001.00001.YWG8FE.OGVPSG.0ZO8", aic)
}

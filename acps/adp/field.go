// SPDX-License-Identifier: Apache-2.0

package adp

import "strings"

// fieldType is the type of a field of an ACS, as operators know it; a set of them for an operator.
type fieldType int

const (
	text fieldType = 1 << iota
	number
	boolean
	date
	list
	object

	every = text | number | boolean | date | list | object
)

// fields are the fields of an ACS, of all versions, by their paths. A * stands for any name.
var fields = map[string]fieldType{
	"aic": text, "name": text, "description": text, "version": text, "protocolVersion": text, "iconUrl": text,
	"documentationUrl": text, "webAppUrl": text, "entityUserId": text, "active": boolean, "lastModifiedTime": date,

	"provider": object, "provider.countryCode": text, "provider.organization": text, "provider.department": text,
	"provider.url": text, "provider.license": text, "provider.name": text, "provider.email": text,
	"provider.domainRegistrations": list, "provider.domainRegistrations.domain": text,
	"provider.domainRegistrations.registrationNumber": text, "provider.domainRegistrations.registrationType": text,

	"securitySchemes": object, "securitySchemes.*": object, "securitySchemes.*.type": text,
	"securitySchemes.*.description": text,

	"endPoints": list, "endPoints.url": text, "endPoints.transport": text, "endPoints.security": list,

	"capabilities": object, "capabilities.streaming": boolean, "capabilities.notification": boolean,
	"capabilities.messageQueue": list, "defaultInputModes": list, "defaultOutputModes": list,

	"skills": list, "skills.id": text, "skills.name": text, "skills.description": text, "skills.version": text,
	"skills.tags": list, "skills.examples": list, "skills.inputModes": list, "skills.outputModes": list,

	"certificate": object, "certificate.requestedValidity": number, "certificate.altNames": object,
	"certificate.altNames.dns": list, "certificate.altNames.ip": list,

	"entityMeta": object, "entityMeta.*": every,
}

// fieldOf returns the path and the type of a field.
func fieldOf(name string) (path []string, of fieldType, ok bool) {
	if len(name) > 200 {
		return nil, 0, false
	}
	path = strings.Split(name, ".")
	if of, ok = fields[name]; ok {
		return path, of, true
	}
	if len(path) < 2 || path[1] == "" {
		return nil, 0, false
	}
	if path[0] == "entityMeta" { // what is in it is for its owner to say
		return path, every, true
	}
	general := append([]string{path[0], "*"}, path[2:]...)
	of, ok = fields[strings.Join(general, ".")]
	return path, of, ok
}

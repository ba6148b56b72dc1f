// Package openapi reads descriptions of HTTP APIs, OpenAPI 3 and Swagger 2, in
// JSON or YAML. Each operation becomes a capability.
package openapi

// Package graphql reads the schema of a GraphQL API: the answer to [Introspection],
// or the same in the schema language. Each query and mutation becomes a capability.
package graphql

// Package capability defines the types that every part of Ken uses: what a
// capability is, where it comes from, and how it is called.
//
// Three things to know:
//
//   - [Capability] is the one noun. A tool, a skill, a card, a command, a
//     channel and an extension are all capabilities: plain data that came from
//     a [Source].
//   - [Invoker] is the one verb. Executors, gateways and the runner all have
//     it; policy, audit and plugins wrap it, as handlers wrap http.Handler.
//   - [Error] is a refusal or failure of Ken itself. A capability that ran and
//     failed is a [Result] with Failed set, which a model may read and recover
//     from.
//
// The package imports only the standard library, so that anything may import
// it. Values that were handed to a catalog are shared by every session and
// must not be changed afterwards.
package capability

// Package daemon is the listening side of the user's daemon: a unix socket
// that only the user can use, on which shims say who they are and are then
// served until they go. What serving means is the caller's; this package knows
// who calls, when no client is left, and how to make room for a newer
// daemon. See [shim.Protocol] for what is said.
package daemon

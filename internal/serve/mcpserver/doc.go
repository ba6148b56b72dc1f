// Package mcpserver offers Ken to clients that speak the Model Context
// Protocol, in every version from 2024-11-05 to 2026-07-28: over a stream
// ([Server.Serve]) and over HTTP ([Server.Handler]).
//
// Nothing is registered with the SDK's server. One middleware answers every
// request from the door, so that a client costs the same with five tools as
// with two thousand, and so that there is one way to an effect: the door's.
//
// A client sees one of two surfaces. "direct" lists every tool natively, for
// clients that keep long lists away from their model themselves; "bridge" lists
// a handful of tools by which a model finds, reads and calls the others.
package mcpserver

// Package link is one connection to one MCP server, as a client of it.
//
// [Open] connects and agrees on a protocol; a [Link] then lists what the server
// offers and carries calls to it. Who may call, when a server starts and when
// it is restarted is decided elsewhere: a Link that ended stays ended.
//
// A server is not trusted. What it sends is bounded in size and number, what it
// prints beside the protocol is skipped and counted, and a server that hangs,
// floods or dies costs the calls that are on it and nothing else.
//
//	l, err := link.Open(ctx, link.Config{Target: link.Target{Name: "files", Start: start}})
//	if err != nil { … }
//	defer l.Close()
//	res, err := l.Call(ctx, call, "read_file")
//
// # Questions
//
// A server may ask something in the middle of a call: a form (elicitation), a
// completion (sampling), or for folders (roots). The call then fails with
// [capability.InputNeeded] and a [capability.Inquiry], and is made again with
// the answers. Servers of protocol 2026-07-28 keep the state themselves: their
// requests and state pass through, the state with the defaults of forms beside
// it where there are any. With older ones the call goes on waiting inside the
// Link, parked under the State of the inquiry, until it is made again or
// Config.ParkTime is over. Fields that an accepted form lacks are filled in from
// its defaults before the server sees the answer.
package link

// Package mcpgateway connects Ken to the MCP servers behind it: it starts them
// when they are needed, caches their lists, and passes calls to them.
//
//	g, err := mcpgateway.New(mcpgateway.Config{Servers: servers, CacheDir: dir})
//	defer g.Close()
//	sources := g.Sources() // one for each server, for the catalog
//	res, err := g.Invoke(ctx, call)
//
// A [Server] is a definition. A back end is a process or a connection of one:
// one for each principal, one for each session, or one for all, as its Scope
// says. Nothing starts before it is needed, and what was not used for a
// while is stopped.
//
// # Lists
//
// What a server offers is kept in a file, so that a catalog is whole before any
// server runs. It is read again at each start and whenever the server says that
// it changed; what differs goes live through the server's Source. A tool is
// offered as the capability mcp:<server>/<tool>; reading resources and getting
// prompts are capabilities too, so that they are calls like all others.
//
// # Failure
//
// A server that does not start, or dies, is left alone for a while that grows
// with each failure, and calls meanwhile are answered at once with the reason.
// A call is made a second time only when it is known that the first never
// reached the server.
//
// # Not promised
//
// Lists are those of the definition, the same for all callers: a server that offers
// different tools to different principals shows everybody what it listed last.
package mcpgateway

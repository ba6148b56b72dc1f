// Package pin remembers what the tools of an MCP server looked like when they
// were trusted, and notices when one is new or has become something else.
//
// A server's first listing is trusted and pinned as a whole. From then on each
// tool is compared with its pin: its name, title, description, both schemas and
// its annotations.
//
//	verdicts, err := desk.Check(ctx, pin.ServerKey("github", file), tools)
//	verdicts["create_issue"].State // Accepted, Added or Changed
//
//	waiting, err := desk.Pending(ctx, key)           // what a person looks at
//	err = desk.Accept(ctx, key, shown, principal)    // bound to what was shown
//
// Only [Accepted] tools may be used. A tool that is gone keeps its pin, so it
// cannot go and come back as something else; one that is again what was accepted
// is accepted again. What waits is what was listed last, by whatever process.
//
// # What counts as a change
//
// Every byte of a name, title or description, so also an invisible character or
// a letter that looks like another. In schemas and annotations every key and
// value; not the order of keys and the space between them, and not whether a
// character was written as an escape.
//
// # Prompts and resources
//
// Prompts, resources and templates of a server are pinned in the same way, under
// [OffersKey]. Their first listing is trusted as a whole, too.
//
// # Names
//
// A tool that was accepted has a name under which clients see it. It is given
// once and stays for as long as the server is not forgotten: the tool's own
// name where [Config.Plain] says so and no other server has one that reads like
// it, else one with the server's name before it. Names are unique over all
// servers of a store.
//
// # What is kept
//
// S is a fingerprint of the server's key, H the hash of a tool:
//
//	mcp/pin/S      the pins of a server and what waits, in one value
//	mcp/mark/S     written with every change of it, so that a look costs little
//	mcp/seen/S     digests of the listing that was checked last
//	mcp/text/S/H   a tool as it was listed, to tell differences
//	mcp/names      every exposed name and the server that has it
//
// When the store fails, and where a record is damaged or of a newer version, no
// tool is accepted, and the error says so.
package pin

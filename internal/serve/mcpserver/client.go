package mcpserver

import "strings"

// The two surfaces.
const (
	direct = "direct"
	bridge = "bridge"
)

// deferring lists clients that keep a long list of tools away from their model
// until it is searched, by the beginning of the name that they give in
// initialize (clientInfo.name), in lower case. All others are bridged.
//
// Claude Code searches too, but shows its model the name of every tool in every
// turn. With 200 tools a bridge costs it fewer tokens than the tools themselves,
// behind Ken or not: TestClientTokens counts them, docs/clients.md has the table.
//
// As of 2026-11:
var deferring = [...]string{
	"codex-mcp-client",   // Codex with models that search deferred tools; with others ken connect asks for the bridge
	"visual studio code", // virtual tools from 128 on; "Visual Studio Code - Insiders" too
}

// surface chooses what a client is shown: by its name in ken connect, by the name
// that it gives itself, or as it asked when it was started.
func (c *Config) surface(agent, client, asked string) string {
	wanted, longest := c.Surface, -1
	for name, surface := range c.Surfaces {
		switch {
		case name == agent:
			wanted, longest = surface, 1<<30
		case len(name) > longest && name != "" && strings.HasPrefix(strings.ToLower(client), strings.ToLower(name)):
			wanted, longest = surface, len(name)
		}
	}
	if wanted != direct && wanted != bridge && asked != "" {
		wanted = asked
	}
	return surfaceFor(wanted, client)
}

// surface returns the surface of a client, with textOnly where that is meant.
func (ep *endpoint) surface(client string) string {
	surface := ep.s.cfg.surface(ep.who.Agent, client, ep.asked)
	if wantsText(ep.who.Agent, client) {
		surface += textOnly
	}
	return surface
}

// textOnly marks the menus of clients that get the answers of Ken's own tools as
// text and not as data too.
const textOnly = "+text"

// showingData lists clients that give their model the data of a result
// (structuredContent) instead of its text, or both. The text of Ken's own tools is
// shorter and says more: a search shows how each tool is called. The names are
// those in ken connect, and the beginning of those that clients give themselves.
//
// As of 2026-11, by the requests to their models:
var showingData = [...]string{
	"claude", // only the data
	"codex",  // only the data
	"copilot", "github-copilot",
	"qwen",
}

func wantsText(agent, client string) bool {
	client = strings.ToLower(client)
	for _, name := range showingData {
		if agent == name || strings.HasPrefix(client, name) {
			return true
		}
	}
	return false
}

// surfaceFor chooses what a client is shown that nothing else is known of.
func surfaceFor(wanted, client string) string {
	if wanted == direct || wanted == bridge {
		return wanted
	}
	client = strings.ToLower(client)
	for _, name := range deferring {
		if strings.HasPrefix(client, name) {
			return direct
		}
	}
	return bridge
}

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
// As of 2026-11:
var deferring = [...]string{
	"claude-code",        // tool search for servers with many tools; honours _meta anthropic/alwaysLoad
	"codex-mcp-client",   // Codex with OpenAI models, which search deferred tools
	"visual studio code", // virtual tools from 128 on; "Visual Studio Code - Insiders" too
}

// surfaceFor chooses what a client is shown.
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

package reload

import (
	"slices"
	"strings"
)

// liveKeys and restartKeys say of every key when a new value applies in a Ken
// that runs: live, which is to the next turn or call, or after a restart. A name
// with a star stands for the keys of a section that no other name is for. A folder
// that is removed from policy.readRoots or writeRoots is refused at once; one that
// is added has to wait until the file tools open it.
func liveKeys() []string {
	return []string{
		"model", "providers", "capabilities.*", "discovery.*", "policy.*", "mcp.servers", "mcp.import", "mcp.new", "mcp.changed", "mcp.trustHints", "databases",
		"chat.*", "skills.*", "sandbox.networkBytes", "sandbox.networks", "sandbox.networkRate", "shell.hosts",
		"limits.*", "requests.*", "jobs.*", "approval.*", "audit.keep", "experiment.*",
	}
}

func restartKeys() []string {
	return []string{
		"capabilities.killSwitch", "capabilities.allowWorkspaceCards", "catalog.*",
		"discovery.tokenizer", "discovery.collectionName", "discovery.reader", "discovery.embeddingModelId", "discovery.embeddingUrl", "discovery.embeddingKeyEnv",
		"policy.readRoots", "policy.writeRoots", "mcp.*", "chat.keep", "hooks", "trace.*", "sandbox.*", "shell.*", "extensions.*",
		"limits.timeout", "limits.maxTimeout", "jobs.serve", "approval.approvers", "audit.*", "results.*", "serve.*", "store",
	}
}

// AppliesLive reports whether a new value of a key applies to the next turn or
// call. All others apply after a restart.
func AppliesLive(key string) bool {
	for _, whole := range []string{"catalog.pins", "catalog.overrides"} {
		if strings.HasPrefix(key, whole+".") {
			key = whole
		}
	}
	section, _, _ := strings.Cut(key, ".")
	switch {
	case slices.Contains(liveKeys(), key):
		return true
	case slices.Contains(restartKeys(), key):
		return false
	}
	return slices.Contains(liveKeys(), section+".*")
}

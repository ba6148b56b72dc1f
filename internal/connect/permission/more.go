package permission

import (
	"maps"
	"slices"
	"strings"
)

// copilotDecisions reads what was approved for good in the dialogs of Copilot CLI.
// Each approval is for one folder. What flags say is not kept anywhere.
func copilotDecisions(b *reader) error {
	for _, f := range b.Files {
		path := beside(f.Path, "permissions-config.json")
		doc, _, err := b.Read(path, false)
		if err != nil {
			return err
		}
		locations, _ := doc["locations"].(map[string]any)
		for _, folder := range slices.Sorted(maps.Keys(locations)) {
			location, _ := locations[folder].(map[string]any)
			list, _ := location["tool_approvals"].([]any)
			for _, item := range list {
				m, _ := item.(map[string]any)
				server := text(m, "serverName")
				if text(m, "kind") != "mcp" || server == "" {
					continue
				}
				tool := "*"
				if name := text(m, "toolName"); name != "" {
					tool = name
				}
				b.says(Decision{effect: allowed, tool: server + ":" + tool, said: toolOf(server, tool), where: "tool_approvals in " + path, folder: folder})
			}
		}
	}
	return nil
}

// continueTools are the tools of Continue itself.
var continueTools = []string{
	"AskQuestion", "Bash", "CheckBackgroundJob", "Checklist", "Diff", "Edit", "Exit", "Fetch", "Grep", "List", "MultiEdit", "Read", "ReportFailure",
	"Search", "Skills", "Status", "Subagent", "UploadArtifact", "Write",
}

// continueNaming: a tool has its own name only.
var continueNaming = naming{prefixes: func(string) []string { return nil }, bare: true}

// continueDecisions reads the lists of Continue's command line.
func continueDecisions(b *reader) error {
	for _, f := range b.Files {
		path := beside(f.Path, "permissions.yaml")
		doc, _, err := b.Read(path, false)
		if err != nil {
			return err
		}
		for _, l := range []struct {
			key string
			effect
		}{{"exclude", denied}, {"ask", asked}, {"allow", allowed}} {
			for _, item := range texts(doc[l.key]) {
				tool, _, arguments := strings.Cut(item, "(")
				tool = strings.TrimSpace(tool)
				if slices.Contains(continueTools, tool) || tool == "*" && l.effect == allowed {
					continue
				}
				d := Decision{effect: l.effect, tool: tool, said: item, where: l.key + " in " + path, folder: f.Project}
				switch {
				case arguments:
					d.why = noArguments
				case strings.Contains(tool, "?"):
					d.tool, d.why = strings.ReplaceAll(tool, "?", "*"), "Ken has no sign for exactly one letter"
				}
				b.says(d)
			}
		}
	}
	return nil
}

// gooseNaming: the name of the extension, made fit, and that of the tool.
var gooseNaming = naming{prefixes: func(server string) []string {
	fit := strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '\t':
			return -1
		case bareLetter(r):
			return r
		}
		return '_'
	}, server)
	out := []string{server + "__"}
	for _, name := range []string{fit, strings.ToLower(fit)} {
		if !slices.Contains(out, name+"__") {
			out = append(out, name+"__")
		}
	}
	return out
}}

// gooseDecisions reads what a person chose for tools. What Goose noted about tools
// by itself is no decision.
func gooseDecisions(b *reader) error {
	for _, f := range b.Files {
		path := beside(f.Path, "permission.yaml")
		doc, _, err := b.Read(path, false)
		if err != nil {
			return err
		}
		b.listed(doc, []string{"user", "never_allow"}, denied, path, f.Project)
		b.listed(doc, []string{"user", "ask_before"}, asked, path, f.Project)
		b.listed(doc, []string{"user", "always_allow"}, allowed, path, f.Project)
	}
	return nil
}

// crushNaming is how Crush names tools.
var crushNaming = naming{prefixes: func(server string) []string { return []string{"mcp_" + server + "_"} }}

// crushDecisions reads the tools that run unasked, and those that are off.
func crushDecisions(b *reader) error {
	for _, f := range b.Files {
		doc, _, err := b.Read(f.Path, b.TOML)
		if err != nil {
			return err
		}
		b.listed(doc, []string{"options", "disabled_tools"}, denied, f.Path, f.Project)
		b.listed(doc, []string{"permissions", "allowed_tools"}, allowed, f.Path, f.Project)
	}
	return nil
}

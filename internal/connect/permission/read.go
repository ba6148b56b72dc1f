package permission

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"ken/internal/coldsort"
)

// A File is one file of a client's configuration.
type File struct {
	Path    string
	Project string // the folder it is for; empty is everywhere
}

// Config says where the settings of a client are.
type Config struct {
	Files   []File
	TOML    bool   // Files are TOML, and not JSON
	Home    string // the person's home folder
	Project string // a folder whose files are read too
	GOOS    string
	Getenv  func(string) string

	// Read returns a file as maps and lists, and the names in a table of it in their
	// order. Both are nil if the file does not exist.
	Read func(path string, toml bool) (doc map[string]any, names func(at []string) []string, err error)
}

// Read returns what the user of a client decided about tools.
func Read(client string, cfg Config) ([]Decision, error) {
	read := readers[client]
	if read == nil {
		return nil, nil
	}
	r := &reader{Config: cfg}
	err := read(r)
	return r.decisions, err
}

var readers = map[string]func(*reader) error{
	"claude": claudeDecisions, "codex": codexDecisions, "continue": continueDecisions, "copilot": copilotDecisions, "crush": crushDecisions,
	"cursor": cursorDecisions, "gemini": geminiDecisions, "goose": gooseDecisions, "opencode": opencodeDecisions,
	"qwen": qwenDecisions, "vscode": vscodeDecisions, "zed": zedDecisions,
}

var namings = map[string]naming{
	"claude": doubleUnderscore, "continue": continueNaming, "copilot": colonNaming, "crush": crushNaming, "cursor": colonNaming,
	"gemini": geminiNaming, "goose": gooseNaming, "opencode": opencodeNaming, "qwen": qwenNaming,
	"vscode": slashNaming, "zed": colonNaming,
}

type reader struct {
	Config
	decisions []Decision
}

// says adds a decision. One that allows something does not count if its file is in
// a project's folder.
func (b *reader) says(d Decision) {
	if d.effect == allowed && d.why == "" && b.inProject(d) {
		d.why = byOthers
	}
	b.decisions = append(b.decisions, d)
}

// byOthers is why a permission in a file of a project's folder makes no rule: a
// downloaded folder can contain such files.
const byOthers = "it is in a file of the project's folder, which others can write"

// inProject reports whether the file of a decision is in the folder that it is for,
// or in that of a project's configuration. A home folder is no project.
func (b *reader) inProject(d Decision) bool {
	folders := []string{d.folder}
	for _, f := range b.Files {
		folders = append(folders, f.Project)
	}
	for _, folder := range folders {
		if folder != "" && folder != b.Home && strings.Contains(d.where, " in "+filepath.Clean(folder)+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

// listed adds one decision for each text of a list.
func (b *reader) listed(doc map[string]any, at []string, e effect, path, folder string) {
	for _, item := range listAt(doc, at) {
		b.says(Decision{effect: e, tool: item, said: item, where: strings.Join(at, ".") + " in " + path, folder: folder})
	}
}

// beside returns a file in the folder of another.
func beside(path, name string) string { return filepath.Join(filepath.Dir(path), name) }

func listAt(doc map[string]any, at []string) []string {
	for _, name := range at[:len(at)-1] {
		doc, _ = doc[name].(map[string]any)
	}
	return texts(doc[at[len(at)-1]])
}

func texts(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

// Where each client keeps what its user decided about tools.

// noArguments is why a rule that looks at arguments has no equivalent.
const noArguments = "Ken has no rule for the arguments of an MCP tool"

// claudeDecisions reads permissions of Claude Code's settings: the user's, those
// of the machine's owner, and of every project that Claude Code knows.
func claudeDecisions(b *reader) error {
	dir := cmp.Or(b.Getenv("CLAUDE_CONFIG_DIR"), filepath.Join(b.Home, ".claude"))
	type settings struct{ path, folder string }
	all := []settings{{managedClaude(b.GOOS), ""}, {filepath.Join(dir, "settings.json"), ""}}
	folders := map[string]bool{}
	if b.Project != "" {
		if folder, err := filepath.Abs(b.Project); err == nil {
			folders[folder] = true
		}
	}
	for _, f := range b.Files {
		doc, _, err := b.Read(f.Path, b.TOML)
		if err != nil {
			return err
		}
		projects, _ := doc["projects"].(map[string]any)
		for folder, v := range projects {
			folders[folder] = true
			project, _ := v.(map[string]any)
			b.permissions(map[string]any{"permissions": map[string]any{"allow": project["allowedTools"]}}, f.Path, folder)
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		for _, name := range []string{"settings.json", "settings.local.json"} {
			if path := filepath.Join(folder, ".claude", name); filepath.IsAbs(folder) && path != filepath.Join(dir, name) {
				all = append(all, settings{path, folder})
			}
		}
	}
	for _, s := range all {
		doc, _, err := b.Read(s.path, false)
		if err != nil {
			return err
		}
		b.permissions(doc, s.path, s.folder)
	}
	return nil
}

func managedClaude(goos string) string {
	switch goos {
	case "darwin":
		return "/Library/Application Support/ClaudeCode/managed-settings.json"
	case "windows":
		return `C:\Program Files\ClaudeCode\managed-settings.json`
	}
	return "/etc/claude-code/managed-settings.json"
}

// permissions reads the lists of Claude Code and Qwen Code.
func (b *reader) permissions(doc map[string]any, path, folder string) {
	for _, e := range []effect{denied, asked, allowed} {
		at := []string{"permissions", e.String()}
		list := listAt(doc, at)
		for _, item := range list {
			d := Decision{effect: e, tool: item, said: item, where: strings.Join(at, ".") + " in " + path, folder: folder}
			if tool, _, found := strings.Cut(item, "("); found {
				d.tool, d.why = tool, noArguments
			}
			server, ours := strings.CutPrefix(d.tool, "mcp__")
			server, _, _ = strings.Cut(server, "__")
			if e == allowed && strings.Contains(server, "*") || !ours && !strings.HasPrefix(d.tool, "*") {
				continue // a tool of the client itself, or a wildcard that it does not follow
			}
			b.says(d)
		}
	}
}

// qwenDecisions reads permissions like Claude Code's besides what Gemini CLI has.
func qwenDecisions(b *reader) error {
	for _, f := range b.Files {
		doc, _, err := b.Read(f.Path, b.TOML)
		if err != nil {
			return err
		}
		b.permissions(doc, f.Path, f.Project)
	}
	return geminiDecisions(b)
}

// Where Gemini CLI and Qwen Code name tools that are left out, and those that run
// unasked. The later ones are of older versions.
var (
	excludedTools = [][]string{{"tools", "exclude"}, {"excludeTools"}}
	trustedTools  = [][]string{{"tools", "allowed"}, {"allowedTools"}}
)

// geminiTools are the tools of Gemini CLI and Qwen Code themselves. A tool of a
// server that has such a name is called by its full name.
var geminiTools = []string{
	"activate_skill", "ask_user", "cli_help", "codebase_investigator", "edit", "edit_file", "enter_plan_mode", "exit_plan_mode", "get_internal_docs", "glob",
	"google_web_search", "grep_search", "list_directory", "read_file", "read_many_files", "replace", "run_shell_command", "save_memory", "search_file_content",
	"skill", "task", "todo_write", "web_fetch", "web_search", "write_file", "write_todos",
	"EditTool", "GlobTool", "GrepTool", "LSTool", "MemoryTool", "ReadFileTool", "ReadManyFilesTool", "ShellTool", "WebFetchTool", "WebSearchTool", "WriteFileTool",
}

// geminiNaming: a tool has its own name, or one with its server before it.
var geminiNaming = naming{prefixes: func(server string) []string {
	return []string{"mcp_" + server + "_", "mcp_" + server + "__", server + "__", server + "."}
}, bare: true}

// qwenNaming adds the names of Claude Code's rules.
var qwenNaming = naming{prefixes: func(server string) []string {
	return append(doubleUnderscore.prefixes(server), geminiNaming.prefixes(server)...)
}, whole: true, sep: "__", any: doubleUnderscore.any, bare: true}

func geminiDecisions(b *reader) error {
	for _, f := range b.Files {
		doc, _, err := b.Read(f.Path, b.TOML)
		if err != nil {
			return err
		}
		for _, at := range excludedTools {
			b.named(doc, at, denied, f)
		}
		for _, at := range trustedTools {
			b.named(doc, at, allowed, f)
		}
		servers, _ := doc["mcpServers"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			entry, _ := servers[name].(map[string]any)
			if entry["trust"] == true {
				b.says(Decision{effect: allowed, entry: name, tool: "*", said: toolOf(name, "*"), where: "mcpServers." + name + ".trust in " + f.Path})
			}
		}
	}
	return geminiPolicies(b)
}

// named reads a list of names of tools, which may have a server before them.
func (b *reader) named(doc map[string]any, at []string, e effect, f File) {
	list := listAt(doc, at)
	for _, item := range list {
		tool, _, arguments := strings.Cut(item, "(")
		if slices.Contains(geminiTools, tool) {
			continue
		}
		d := Decision{effect: e, tool: tool, said: item, where: strings.Join(at, ".") + " in " + f.Path, folder: f.Project}
		if arguments {
			d.why = noArguments
		}
		b.says(d)
	}
}

// geminiPolicies reads the rules of the policy engine, of which the one with the
// highest priority counts.
func geminiPolicies(b *reader) error {
	type rule struct {
		priority float64
		decision Decision
	}
	var rules []rule
	for _, f := range b.Files {
		paths, err := filepath.Glob(filepath.Join(filepath.Dir(f.Path), "policies", "*.toml"))
		if err != nil {
			return err
		}
		for _, path := range paths {
			doc, _, err := b.Read(path, true)
			if err != nil {
				return err
			}
			list, _ := doc["rule"].([]any)
			for _, item := range list {
				m, _ := item.(map[string]any)
				d, about := geminiRule(m, path, f.Project)
				for _, tool := range about {
					d.tool, d.said = tool, cmp.Or(d.said, tool)
					rules = append(rules, rule{number(m["priority"]), d})
				}
			}
		}
	}
	coldsort.Stable(rules, func(x, y rule) int { return cmp.Compare(x.priority, y.priority) })
	for _, r := range rules {
		b.says(r.decision)
	}
	return nil
}

func number(v any) float64 {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return 0
}

// geminiRule reads one rule, and which tools it names.
func geminiRule(m map[string]any, path, folder string) (d Decision, tools []string) {
	// A rule of a project takes no rule of the user's back, whatever its priority.
	d = Decision{where: "a rule in " + path, folder: folder, group: "gemini policies " + folder}
	switch text(m, "decision") {
	case "deny":
		d.effect = denied
	case "ask_user":
		d.effect = asked
	case "allow":
		d.effect = allowed
	}
	for _, key := range []string{"argsPattern", "commandPrefix", "commandRegex", "toolAnnotations", "modes", "interactive", "subagent"} {
		if m[key] != nil {
			d.why = "Ken has no rule with " + key
		}
	}
	names := texts(m["toolName"])
	if name, one := m["toolName"].(string); one {
		names = []string{name}
	}
	server := text(m, "mcpName")
	if server == "" {
		for _, name := range names {
			if !slices.Contains(geminiTools, name) && name != "*" {
				tools = append(tools, name)
			}
		}
		return d, tools
	}
	if len(names) == 0 {
		names = []string{"*"}
	}
	for _, name := range names {
		tools = append(tools, "mcp_"+server+"_"+name)
	}
	d.said = server + " " + strings.Join(names, ", ")
	return d, tools
}

// codexDecisions reads the approval modes in the entries of servers.
func codexDecisions(b *reader) error {
	for _, f := range b.Files {
		doc, _, err := b.Read(f.Path, b.TOML)
		if err != nil {
			return err
		}
		servers, _ := doc["mcp_servers"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			entry, _ := servers[name].(map[string]any)
			group := f.Path + " " + name
			b.codexMode(entry["default_tools_approval_mode"], name, "*", "mcp_servers."+name+".default_tools_approval_mode", f.Path, group)
			tools, _ := entry["tools"].(map[string]any)
			for _, tool := range slices.Sorted(maps.Keys(tools)) {
				t, _ := tools[tool].(map[string]any)
				at := "mcp_servers." + name + ".tools." + tool
				if t["enabled"] == false {
					b.says(Decision{effect: denied, entry: name, tool: tool, said: toolOf(name, tool), where: at + ".enabled in " + f.Path})
				}
				b.codexMode(t["approval_mode"], name, tool, at+".approval_mode", f.Path, group)
			}
		}
	}
	return nil
}

// toolOf names a tool of a server, for people.
func toolOf(server, tool string) string {
	if tool == "*" {
		return "every tool of " + server
	}
	return tool + " of " + server
}

func (b *reader) codexMode(mode any, server, tool, said, path, group string) {
	if mode == nil {
		return
	}
	text, _ := mode.(string)
	d := Decision{entry: server, tool: tool, said: toolOf(server, tool), where: said + " = " + text + " in " + path, group: group}
	switch text {
	case "auto":
	case "approve":
		d.effect = allowed
	case "prompt":
		d.effect = asked
	case "writes", "prompt_writes", "prompt_for_writes":
		d.effect, d.classes = asked, []string{"write", "edit", "exec", "network"}
	default:
		d.effect, d.why = asked, "Ken does not know this approval mode"
	}
	b.says(d)
}

// opencodeNaming: the name of the server, an underscore, and that of the tool.
var opencodeNaming = naming{prefixes: func(server string) []string { return []string{plainLetters(server) + "_"} }}

// opencodeDecisions reads tools and permission, of which the last line that
// matches counts. Those of one agent cannot be told apart by Ken.
func opencodeDecisions(b *reader) error {
	for _, f := range b.Files {
		doc, names, err := b.Read(f.Path, b.TOML)
		if err != nil {
			return err
		}
		b.opencode(doc, names, nil, f, "")
		for _, of := range []string{"agent", "mode"} {
			agents, _ := doc[of].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(agents)) {
				agent, _ := agents[name].(map[string]any)
				b.opencode(agent, names, []string{of, name}, f, "Ken cannot tell the agents of opencode apart")
			}
		}
	}
	return nil
}

func (b *reader) opencode(doc map[string]any, names func(at []string) []string, at []string, f File, why string) {
	say := func(key, tool string, e effect, why string) {
		if strings.Contains(tool, "?") {
			tool, why = strings.ReplaceAll(tool, "?", "*"), cmp.Or(why, "Ken has no sign for exactly one letter")
		}
		if strings.Trim(tool, "*") == "" && e == allowed {
			return // a default, and no decision about a tool
		}
		where := strings.Join(append(slices.Clone(at), key), ".")
		b.says(Decision{effect: e, tool: tool, said: tool, where: where + " in " + f.Path, folder: f.Project, group: f.Path + " " + strings.Join(at, "."), why: why})
	}
	effects := map[any]effect{"allow": allowed, "ask": asked, "deny": denied}
	tools, _ := doc["tools"].(map[string]any)
	for _, tool := range names(append(slices.Clone(at), "tools")) {
		switch tools[tool] {
		case false:
			say("tools", tool, denied, why)
		case true:
			say("tools", tool, undecided, why)
		}
	}
	if all, ok := doc["permission"].(string); ok {
		say("permission", "*", effects[all], why)
	}
	permission, _ := doc["permission"].(map[string]any)
	for _, tool := range names(append(slices.Clone(at), "permission")) {
		switch v := permission[tool].(type) {
		case string:
			say("permission", tool, effects[v], why)
		case map[string]any:
			all, plain := effects[v["*"]]
			if !plain || len(v) > 1 {
				all, why := denied, cmp.Or(why, noArguments)
				say("permission", tool, all, why)
				continue
			}
			say("permission", tool, all, why)
		}
	}
}

// colonNaming is how Cursor names tools.
var colonNaming = naming{prefixes: func(server string) []string { return []string{server + ":", server + ", ", server + ","} }}

// cursorDecisions reads the list of tools that run unasked, and the permissions of
// Cursor's command line.
func cursorDecisions(b *reader) error {
	for _, f := range b.Files {
		for _, name := range []string{"permissions.json", "cli-config.json", "cli.json"} {
			path := beside(f.Path, name)
			doc, _, err := b.Read(path, false)
			if err != nil {
				return err
			}
			b.listed(doc, []string{"mcpAllowlist"}, allowed, path, f.Project)
			for _, e := range []effect{denied, allowed} {
				at := []string{"permissions", e.String()}
				list := listAt(doc, at)
				for _, item := range list {
					if inner, ok := strings.CutPrefix(item, "Mcp("); ok {
						tool := strings.ReplaceAll(strings.TrimSuffix(inner, ")"), "**", "*")
						b.says(Decision{effect: e, tool: tool, said: item, where: strings.Join(at, ".") + " in " + path, folder: f.Project})
					}
				}
			}
		}
	}
	return nil
}

// slashNaming is how VS Code names tools.
var slashNaming = naming{prefixes: func(server string) []string { return []string{server + "/"} }}

// vscodeDecisions reads which tools always ask.
func vscodeDecisions(b *reader) error {
	for _, f := range b.Files {
		path := beside(f.Path, "settings.json")
		doc, _, err := b.Read(path, false)
		if err != nil {
			return err
		}
		const key = "chat.tools.eligibleForAutoApproval"
		eligible, _ := doc[key].(map[string]any)
		for _, tool := range slices.Sorted(maps.Keys(eligible)) {
			if eligible[tool] == false {
				b.says(Decision{effect: asked, tool: tool, said: tool, where: key + " in " + path, folder: f.Project})
			}
		}
	}
	return nil
}

// zedDecisions reads the permissions of tools and what profiles leave out.
func zedDecisions(b *reader) error {
	for _, f := range b.Files {
		doc, _, err := b.Read(f.Path, b.TOML)
		if err != nil {
			return err
		}
		agent, _ := doc["agent"].(map[string]any)
		permissions, _ := agent["tool_permissions"].(map[string]any)
		tools, _ := permissions["tools"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(tools)) {
			tool, ours := strings.CutPrefix(name, "mcp:")
			m, isTable := tools[name].(map[string]any)
			if !ours || !isTable {
				continue
			}
			d := Decision{tool: tool, said: name, where: "agent.tool_permissions.tools in " + f.Path, folder: f.Project}
			d.effect = map[string]effect{"allow": allowed, "confirm": asked, "deny": denied}[text(m, "default")]
			for _, key := range []string{"always_deny", "always_confirm", "always_allow"} {
				if list, _ := m[key].([]any); len(list) > 0 {
					d.effect, d.why = max(d.effect, asked), noArguments
				}
			}
			b.says(d)
		}
		b.zedProfiles(agent, f)
	}
	return nil
}

func (b *reader) zedProfiles(agent map[string]any, f File) {
	first, _ := agent["default_profile"].(string)
	profiles, _ := agent["profiles"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		profile, _ := profiles[name].(map[string]any)
		servers, _ := profile["context_servers"].(map[string]any)
		for _, server := range slices.Sorted(maps.Keys(servers)) {
			s, _ := servers[server].(map[string]any)
			tools, _ := s["tools"].(map[string]any)
			for _, tool := range slices.Sorted(maps.Keys(tools)) {
				if tools[tool] != false {
					continue
				}
				d := Decision{effect: denied, tool: server + ":" + tool, said: server + " " + tool, where: "agent.profiles." + name + " in " + f.Path, folder: f.Project}
				if name != cmp.Or(first, "write") {
					d.why = "Ken cannot tell the profiles of Zed apart"
				}
				b.says(d)
			}
		}
	}
}

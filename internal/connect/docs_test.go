package connect

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// about holds the facts in docs/clients.md about one client that the code does not know.
type about struct {
	file, project, refs, tested string
	notes                       []string
}

var abouts = map[string]about{
	"claude": {
		"`~/.claude.json`, or `.claude.json` in the folder `CLAUDE_CONFIG_DIR`", "`.mcp.json`", "`${NAME}`, `${NAME:-default}`",
		"`claude -p` of 2.1.326 finds, reads and calls tools through Ken and gets a write approved, over stdio and HTTP",
		[]string{
			"`~/.claude.json` can define servers for single projects. Ken moves these too. Each keeps its folder as `cwd`, and as `project` in `x-ken`.",
			"Ken enables the servers in a project's `.mcp.json` only if you approved them in Claude Code.",
			"Permissions come from `settings.json`, from the machine's `managed-settings.json`, and from `.claude/settings.json` and `settings.local.json` of the projects that `~/.claude.json` names. Those of a project apply in its folder. Files in a project's folder only forbid and ask; a permission in them is named and makes no rule.",
		},
	},
	"codex": {
		"`~/.codex/config.toml`, or `config.toml` in the folder `CODEX_HOME`", "`.codex/config.toml`", "none. `env_vars`, `bearer_token_env_var` and `env_http_headers` become `${NAME}`",
		"`codex exec` of 0.169.0 finds, reads and calls tools through Ken and gets a write approved, over stdio and HTTP",
		[]string{"Approval modes (`default_tools_approval_mode`, `tools.NAME.approval_mode`) become rules: `prompt` asks, `approve` allows, and `writes` asks before anything that does not only read.", "With a `model_provider` other than `openai`, or a model that `models_cache.json` lists without `supports_search_tool`, Codex shows its model every tool in every turn. Ken's entry then has `--surface bridge`. Connect again after you change the model."},
	},
	"continue": {
		"`~/.continue/config.yaml`, or `config.yaml` in the folder `CONTINUE_GLOBAL_DIR`", "`.continue/config.yaml`", "none. An entry with `${{ secrets.NAME }}` stays in the client",
		"`cn -p` of 1.5.47 finds, reads and calls tools through Ken and gets a write approved, over stdio and HTTP",
		[]string{"Servers in files of their own (`.continue/mcpServers/`) stay there.", "`allow`, `ask` and `exclude` in `permissions.yaml` become rules.", "Ken does not read a file with anchors (`&`, `*`, `<<`), and changes nothing then."},
	},
	"copilot": {
		"`~/.copilot/mcp-config.json`, or `mcp-config.json` in the folder `COPILOT_HOME`", "`.mcp.json` and `.github/mcp.json`", "`${NAME}`, `${NAME:-default}`",
		"`copilot -p` of 1.0.102 finds, reads and calls tools through Ken and gets a write approved, over stdio and HTTP",
		[]string{"`tools` becomes `includeTools`. Servers in `disabledMcpServers` of `settings.json` are disabled behind Ken too.", "What you approved for a folder in its dialogs (`permissions-config.json`) becomes rules. What you pass as `--allow-tool` or `--deny-tool` is in no file, so it applies to the tools of Ken's entry."},
	},
	"crush": {
		"`~/.config/crush/crush.json`, or `crush.json` in the folder `CRUSH_GLOBAL_CONFIG`", "`.crush.json` and `crush.json`", "`$NAME`, `${NAME}`, `${NAME:-default}`. An entry with `$(…)` stays in the client",
		"not with the client itself. The entry follows the schema of `crush.json`",
		[]string{"Servers that a `crushrc` adds stay there.", "`options.disabled_tools` and `permissions.allowed_tools` become rules."},
	},
	"cursor": {
		"`~/.cursor/mcp.json`", "`.cursor/mcp.json`", "`${env:NAME}`, `${userHome}`, and `${workspaceFolder}` in a project's file",
		"not with the editor itself. The entry follows the documentation of Cursor's `mcp.json`",
		[]string{"`mcpAllowlist` in `permissions.json`, and `Mcp(server:tool)` in `cli-config.json` and `cli.json`, become rules."},
	},
	"gemini": {
		"`~/.gemini/settings.json`, or `.gemini/settings.json` in the folder `GEMINI_CLI_HOME`", "`.gemini/settings.json`", "`$NAME`, `${NAME}`, `${NAME:-default}`",
		"`gemini -p` of 0.61.0 finds, reads and calls tools through Ken and gets a write approved, over stdio and HTTP",
		[]string{"If `mcp.allowed` lists the servers that may be used, Ken adds `ken` to the list. Behind Ken, it disables the servers that are not in the list.", "`tools.exclude`, `tools.allowed`, `trust` and the rules in `policies/*.toml` become rules."},
	},
	"goose": {
		"`~/.config/goose/config.yaml`, `%APPDATA%\\Block\\goose\\config\\config.yaml` on Windows, or `config/config.yaml` in the folder `GOOSE_PATH_ROOT`", "none", "none",
		"not with the client itself. The entry follows the types of Goose's `extensions`",
		[]string{"Extensions of Goose itself (`builtin`, `platform`) stay, and so do those whose variables are in Goose's own secrets (`env_keys`).", "`never_allow`, `ask_before` and `always_allow` of `user` in `permission.yaml` become rules."},
	},
	"jetbrains": {
		"`~/.junie/mcp/mcp.json`", "`.junie/mcp/mcp.json`", "none",
		"not with the client itself. The entry follows the documentation of Junie's `mcp.json`",
		[]string{"AI Assistant keeps its servers in the settings of the IDE and not in a file that Ken reads. Paste the entry there, or use Junie.", "The list of actions that Junie runs unasked is not translated: Ken asks by its own rules."},
	},
	"lmstudio": {
		"`~/.lmstudio/mcp.json`, in older versions `~/.cache/lm-studio/mcp.json`", "none", "none",
		"not with the client itself. The entry follows the documentation of LM Studio's `mcp.json`",
		[]string{"What you allowed in its dialogs is not in this file, so Ken asks again."},
	},
	"opencode": {
		"`opencode.jsonc`, `opencode.json` and `config.json` in `~/.config/opencode`. Ken changes each one that exists. `OPENCODE_CONFIG` names one more file", "`opencode.json` or `opencode.jsonc`, also in `.opencode/`", "`{env:NAME}`",
		"`opencode run` of 1.18.33 finds, reads and calls tools through Ken and gets a write approved, over stdio and HTTP",
		[]string{"`tools` and `permission` become rules. As in opencode, the last line that matches counts. Ken does not take over a catch-all `allow`.", "Permissions of single agents have no equivalent. Ken does not read agent files (`*.md`)."},
	},
	"qwen": {
		"`~/.qwen/settings.json`, or `settings.json` in the folder `QWEN_HOME`", "`.qwen/settings.json`", "`$NAME`, `${NAME}`, `${NAME:-default}`",
		"`qwen -p` of 0.24.4 finds, reads and calls tools through Ken and gets a write approved, over stdio and HTTP",
		[]string{"`url` means server-sent events, and `httpUrl` means streamable HTTP.", "Qwen Code hides the tools of servers from its model until it searches. `alwaysLoadTools` shows the few that Ken has, which search themselves.", "`mcp.allowed`, lists of tools and policies work as in Gemini CLI, and `permissions` as in Claude Code."},
	},
	"vscode": {
		"`mcp.json` of the default profile. It is in `~/.config/Code/User/` on Linux, `~/Library/Application Support/Code/User/` on macOS and `%APPDATA%\\Code\\User\\` on Windows", "`.vscode/mcp.json`", "`${env:NAME}`, `${input:NAME}`, `${userHome}`, and `${workspaceFolder}` in a workspace's file",
		"not with the editor itself. The entry follows VS Code's own schema of `mcp.json`",
		[]string{
			"If VS Code would ask for a value (`${input:NAME}`), the value becomes the secret `mcp.input.NAME`. Set it once with `ken secret set mcp.input.NAME`.",
			"For other profiles and builds, name the file with `--file`.",
			"A tool that `chat.tools.eligibleForAutoApproval` sets to false asks. What you allowed in the editor's dialogs is in no file, so Ken asks again.",
		},
	},
	"windsurf": {
		"`~/.codeium/windsurf/mcp_config.json`", "none", "`${env:NAME}`, `${userHome}`",
		"not with the editor itself. The entry follows the documentation of Windsurf's `mcp_config.json`",
		[]string{"`disabledTools` becomes `excludeTools`."},
	},
	"zed": {
		"`~/.config/zed/settings.json`", "`.zed/settings.json`", "none",
		"not with the editor itself. The entry follows the types of Zed's `context_servers` settings",
		[]string{"Ken does not move servers that came with an extension.", "`agent.tool_permissions`, and the tools that the default profile leaves out, become rules."},
	},
}

const docsHead = `# Clients: Ken in front of the MCP servers you have

<!-- Generated by internal/connect: go test ./internal/connect -run Docs -update -->

` + "```" + `
ken connect claude        # shows the change and asks; --yes skips the question
ken disconnect claude     # restores the file byte for byte
` + "```" + `

` + "`" + `ken connect` + "`" + ` finds the client's configuration and moves its MCP servers to ` + "`" + `~/.ken/mcp.json` + "`" + `. It
replaces them with one entry: Ken. Everything else in the file stays the same, including comments,
order and indentation. If ` + "`" + `KEN_HOME` + "`" + ` names a folder other than ` + "`" + `~/.ken` + "`" + `, the entry contains
` + "`" + `KEN_HOME` + "`" + `.

| flag | effect |
|---|---|
| ` + "`" + `--dry-run` + "`" + ` | shows the change and changes nothing |
| ` + "`" + `--yes` + "`" + ` | changes the file without asking |
| ` + "`" + `--project DIR` + "`" + ` | also changes the project's own file. Other people may share that file, so look at the diff |
| ` + "`" + `--file FILE` + "`" + ` | changes only this file |
| ` + "`" + `--http` + "`" + ` | connects the client to a running ` + "`" + `ken serve` + "`" + `, and writes a token for the client into its file. ` + "`" + `ken serve` + "`" + ` must run whenever the client needs it |

**Other clients.** ` + "`" + `ken connect generic --file FILE` + "`" + ` connects any client with a JSON, TOML or YAML file
that lists servers under ` + "`" + `mcpServers` + "`" + `, ` + "`" + `servers` + "`" + `, ` + "`" + `mcp_servers` + "`" + `, ` + "`" + `context_servers` + "`" + `, ` + "`" + `extensions` + "`" + ` or ` + "`" + `mcp` + "`" + `.
` + "`" + `ken disconnect generic --file FILE` + "`" + ` restores it. Each file is a client of its own. Ken cannot translate the
permissions of a client that it does not know.

**Secrets.** Ken moves tokens, keys and passwords from the entries to the sealed store, and writes
` + "`" + `${secret:NAME}` + "`" + ` in their place. The diff masks them. Ken also keeps the original file sealed, for
` + "`" + `ken disconnect` + "`" + `.

**Your decisions stay.** What you allowed, denied or want to be asked about in the client becomes rules
for this client. Ken shows each rule with the setting that it comes from, before it changes anything.
It writes them to ` + "`" + `~/.ken/client-rules.json` + "`" + ` and applies them to the calls of this client, which it
knows by ` + "`" + `ken mcp --client NAME` + "`" + ` or by the client's token. If such a rule denies a call, the answer
names the rule and the setting.

- Only tools and servers that you named become allowed. If a name contains ` + "`" + `*` + "`" + `, destructive calls
  still need approval.
- If a setting has no equivalent, such as one about the arguments of a tool, ` + "`" + `ken connect` + "`" + ` names it and
  changes nothing. ` + "`" + `--skip-untranslated` + "`" + ` connects without it.
- Settings for the client's own tools stay with the client.
- After you change a setting, run ` + "`" + `ken connect` + "`" + ` again. ` + "`" + `ken disconnect` + "`" + ` removes the rules.

**What Ken does not move.** Some entries stay in the client's file, and Ken prints the reason:

- server types that exist only inside the client;
- entries that use something only the client knows, such as ` + "`" + `${workspaceFolder}` + "`" + ` in a file for all
  projects, an ` + "`" + `envFile` + "`" + `, or the client's own sign-in;
- invalid entries.

**Disconnecting.** The file may have changed since you connected; Claude Code changes its file at
every start. Then ` + "`" + `ken disconnect` + "`" + ` keeps those changes, removes Ken's entry and restores the
servers. ` + "`" + `--force` + "`" + ` restores the original bytes instead. Ken removes the secrets that came from the
file and names them. A secret that you set yourself, such as an input of VS Code, stays.

## mcp.json

Clients and Ken share this format. ` + "`" + `x-ken` + "`" + ` holds what only Ken reads.

| keys | meaning |
|---|---|
| ` + "`" + `command` + "`" + `, ` + "`" + `args` + "`" + `, ` + "`" + `env` + "`" + `, ` + "`" + `cwd` + "`" + ` | a program to start |
| ` + "`" + `url` + "`" + ` (` + "`" + `httpUrl` + "`" + `, ` + "`" + `serverUrl` + "`" + `), ` + "`" + `type` + "`" + ` (` + "`" + `transport` + "`" + `), ` + "`" + `headers` + "`" + `, ` + "`" + `oauth` + "`" + ` (` + "`" + `clientId` + "`" + `, ` + "`" + `scopes` + "`" + `) | a server to connect to; ` + "`" + `type` + "`" + ` is ` + "`" + `http` + "`" + `, ` + "`" + `streamable-http` + "`" + ` or ` + "`" + `sse` + "`" + ` |
| ` + "`" + `timeout` + "`" + `, ` + "`" + `startTimeout` + "`" + ` | in milliseconds |
| ` + "`" + `includeTools` + "`" + `, ` + "`" + `excludeTools` + "`" + ` | which tools are used |
| ` + "`" + `disabled` + "`" + ` (` + "`" + `enabled` + "`" + `) | whether the server is used |

Ken warns about other keys. Values may contain ` + "`" + `${NAME}` + "`" + ` (an environment variable) and
` + "`" + `${secret:NAME}` + "`" + `. Both can have a default, as in ` + "`" + `${NAME:-default}` + "`" + `. If two clients share a server,
Ken lists it once. If two different servers have the same name, Ken adds the client's name to it.

`

const docsTokens = `
## Tokens

Each client finishes the same task of five calls with 200 tools: without Ken, with Ken, and with Ken's other
surface ([mcp.md](mcp.md#what-the-client-sees)). The tools are the first 200 of a catalog of published MCP
servers. The client's model is a scripted server on this machine. It calls a tool at once if the client
shows it, and otherwise searches first; if a search of Ken does not show the required arguments, it reads
the tool too. Ken's tokenizer (o200k_base) counts all requests of the task as the model gets them, including
the client's own texts. A vendor's cache makes repeated parts cheaper; the table does not count that.

%s
` + "`" + `ken connect` + "`" + ` prints the tokens of the tool definitions as MCP has them. Clients write them in forms of their
own, up to a quarter longer or shorter. Claude Code and Qwen Code load definitions only when their model
searches, but name every tool in every turn. Claude Code's list of its own tools differs by 400 tokens
between runs, so its numbers vary by 2 %%. Codex is measured with a model that gets every tool in every turn.
VS Code, and Codex with a model that searches for tools, are not measured.

The command, as root or under ` + "`" + `unshare -rn` + "`" + `, with the folder of the catalogs in ` + "`" + `KEN_BENCH` + "`" + `:

` + "```" + `
KEN_CLIENTS=$(.ci/clients.sh install continue free licensed) go test -run TestClientTokens ./internal/testkit/mcptest -update
go test ./internal/connect -run Docs -update
` + "```" + `
`

// wrapped returns text in lines of at most 100 columns. Lines after the first
// start with indent.
func wrapped(text, indent string) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		width := utf8.RuneCountInString(word)
		switch {
		case column == 0:
		case column+1+width > 100:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += width
	}
	return b.String() + "\n"
}

// renderDocs writes docs/clients.md from the code that connects.
func renderDocs(t *testing.T) string {
	var b strings.Builder
	b.WriteString(docsHead)
	servers, _, err := Merge(nil, []Server{
		{Name: "github", URL: "https://api.githubcopilot.com/mcp/", Headers: map[string]string{"Authorization": "Bearer ${secret:mcp.github.Authorization}"}},
		{Name: "files", Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-filesystem", "/home/me/work"}},
	}, "claude")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, "```json\n%s```\n", servers)
	table, err := os.ReadFile("testdata/tokens.md")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, docsTokens, table)
	for _, c := range Clients() {
		a, ok := abouts[c.Name]
		if !ok {
			t.Errorf("abouts has no entry for %s", c.Name)
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", c.Title, wrapped(fmt.Sprintf("Run `ken connect %s`, or edit the file yourself:", c.Name), ""))
		if len(c.project) == 0 {
			a.project = "none"
		}
		for _, line := range []string{"File for all projects: " + a.file, "File in a project: " + a.project, "References that Ken translates: " + a.refs, "Tested: " + a.tested} {
			b.WriteString(wrapped("- "+line+".", "  "))
		}
		for _, note := range a.notes {
			b.WriteString(wrapped("- "+note, "  "))
		}
		lang := "json"
		switch c.format.(type) {
		case tomlFormat:
			lang = "toml"
		case yamlFormat:
			lang = "yaml"
		}
		for _, e := range []Entry{{Command: "/usr/local/bin/ken", Args: []string{"mcp", "--client", c.Name}}, {URL: "http://127.0.0.1:7777/mcp", Token: "YOUR-TOKEN"}} {
			over := "Over standard input and output:"
			if e.URL != "" {
				over = "Over HTTP, with `ken serve` running:"
			}
			edits, err := c.format.edits(nil, []change{{at: c.at, put: []put{{name: "ken", value: c.entry(e)}}}})
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "\n%s\n\n```%s\n%s```\n", over, lang, apply(nil, edits))
		}
	}
	return b.String()
}

// The examples in the documentation are what connecting writes.
func TestDocs(t *testing.T) {
	const path = "../../docs/clients.md"
	want := renderDocs(t)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/clients.md is not what the code writes; run go test ./internal/connect -run Docs -update (-want +got):\n%s", diff)
	}
}

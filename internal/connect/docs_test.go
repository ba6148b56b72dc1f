package connect

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// about is what docs/clients.md says of a client beyond its entry.
type about struct {
	file, project, refs, checked, more string
}

var abouts = map[string]about{
	"claude": {"`~/.claude.json` (`CLAUDE_CONFIG_DIR` moves it)", "`.mcp.json`", "`${NAME}`, `${NAME:-default}`",
		"`claude mcp get ken` of 2.1.197 says *Connected*, over stdio and HTTP",
		"The servers that `~/.claude.json` has for single projects move too, and keep their folder as `cwd` and as `project` in `x-ken`. Of a project's `.mcp.json` only those that you approved in Claude Code are switched on. Rules for tools in Claude Code's own settings name the server: `mcp__github__x` becomes `mcp__ken__x`."},
	"codex": {"`~/.codex/config.toml` (`CODEX_HOME` moves it)", "`.codex/config.toml`", "none; `env_vars`, `bearer_token_env_var` and `env_http_headers` become `${NAME}`",
		"`codex mcp get ken` of 0.166.0 lists both forms with every field", ""},
	"cursor": {"`~/.cursor/mcp.json`", "`.cursor/mcp.json`", "`${env:NAME}`, `${userHome}`, `${workspaceFolder}` in a project's file",
		"written to the documentation of its `mcp.json`; the editor itself was not run", ""},
	"gemini": {"`~/.gemini/settings.json` (`GEMINI_CLI_HOME` moves the folder)", "`.gemini/settings.json`", "`$NAME`, `${NAME}`, `${NAME:-default}`",
		"`gemini mcp list` of 0.61.0 says *Connected*, over stdio and HTTP", "Where `mcp.allowed` names the servers that may be used, `ken` is added to it, and those it leaves out are switched off behind Ken."},
	"opencode": {"`~/.config/opencode/opencode.jsonc`, `opencode.json` or `config.json`, each that is there; `OPENCODE_CONFIG` names one more", "`opencode.json`, `opencode.jsonc`, also in `.opencode/`", "`{env:NAME}`",
		"`opencode mcp list` of 1.18.33 says *connected*, over stdio and HTTP", ""},
	"qwen": {"`~/.qwen/settings.json` (`QWEN_HOME` moves the folder)", "`.qwen/settings.json`", "`$NAME`, `${NAME}`, `${NAME:-default}`",
		"`qwen mcp list` of 0.15.10 says *Connected*, over stdio and HTTP", "An address under `url` is one of server-sent events, one under `httpUrl` is streamable HTTP. `mcp.allowed` as for Gemini CLI."},
	"vscode": {"`mcp.json` of the default profile: `~/.config/Code/User/` on Linux, `~/Library/Application Support/Code/User/` on macOS, `%APPDATA%\\Code\\User\\` on Windows", "`.vscode/mcp.json`", "`${env:NAME}`, `${input:NAME}`, `${userHome}`, `${workspaceFolder}` in a workspace's file",
		"written to the editor's own schema of `mcp.json`; the editor itself was not run", "What VS Code would ask for (`${input:NAME}`) becomes the secret `mcp.input.NAME`, which you set once: `ken secret set mcp.input.NAME`. Other profiles and builds: name the file with `--file`."},
	"zed": {"`~/.config/zed/settings.json`", "`.zed/settings.json`", "none",
		"written to the types of its `context_servers` settings; the editor itself was not run", "Servers that came with an extension stay."},
}

const docsHead = `# Clients: Ken in front of the servers you have

<!-- Made by internal/connect: go test ./internal/connect -run Docs -update -->

` + "```" + `
ken connect claude        # shows what it will change, and asks; --yes where nobody can be asked, --dry-run to look
ken disconnect claude     # puts the file back as it was, byte for byte
` + "```" + `

` + "`ken connect`" + ` finds the client's configuration, moves its MCP servers to ` + "`~/.ken/mcp.json`" + ` and puts one entry, Ken, in their place.
Everything else in the file stays as it is: comments, order, indentation. With ` + "`--project DIR`" + ` the project's own file is taken as well
(it may be shared with others: look at the diff), with ` + "`--file FILE`" + ` that file and no other, with ` + "`--http`" + ` the client speaks to a running
` + "`ken serve`" + ` and gets the token written into its file; it must run whenever the client asks.

**Secrets.** Tokens, keys and passwords in the moved entries go to the sealed store and are written as ` + "`${secret:NAME}`" + `; what the diff shows is
masked. The file as it was is kept sealed too, for ` + "`ken disconnect`" + `.

**What stays where it is**, with the reason printed: entries of types that live inside the client, entries that use what only the client
knows (` + "`${workspaceFolder}`" + ` in a file for all projects, an ` + "`envFile`" + `, its own sign-in), and entries that make no sense.

**Disconnecting** a file that was changed since (Claude Code changes its own at every start) keeps those changes, takes Ken's entry out and
puts the servers back; ` + "`--force`" + ` restores the old bytes instead.
Secrets that came out of the file go, and are named; one that you set yourself, as for an input of VS Code, stays.

## mcp.json

The form that clients share, with ` + "`x-ken`" + ` for what only Ken reads. Keys: ` + "`command`, `args`, `env`, `cwd`" + ` or ` + "`url` (`httpUrl`, `serverUrl`), `type` (`transport`): `http`, `streamable-http` or `sse`, `headers`, `oauth` (`clientId`, `scopes`)" + `;
` + "`timeout` and `startTimeout` in milliseconds, `includeTools`, `excludeTools`, `disabled` (`enabled`)" + `. A key that means nothing to Ken is a warning.
Values may have ` + "`${NAME}`" + ` (environment) and ` + "`${secret:NAME}`" + `, each with a default as in ` + "`${NAME:-default}`" + `.
A server that two clients have is there once; two different ones of one name are told apart by the client's name.

`

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
	for _, c := range Clients() {
		a, ok := abouts[c.Name]
		if !ok {
			t.Errorf("nothing is said about %s", c.Name)
		}
		fmt.Fprintf(&b, "\n## %s\n\n`ken connect %s`, or by hand in %s; a project's file is %s.\n\n", c.Title, c.Name, a.file, a.project)
		lang := "json"
		if _, ok := c.format.(tomlFormat); ok {
			lang = "toml"
		}
		for _, e := range []Entry{{Command: "/usr/local/bin/ken"}, {URL: "http://127.0.0.1:7777/mcp", Token: "YOUR-TOKEN"}} {
			edits, err := c.format.edits(nil, []change{{at: c.at, put: []put{{name: "ken", value: c.entry(e)}}}})
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "```%s\n%s```\n\n", lang, apply(nil, edits))
		}
		fmt.Fprintf(&b, "References that are translated: %s.\nChecked: %s.\n", a.refs, a.checked)
		if a.more != "" {
			b.WriteString(a.more + "\n")
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

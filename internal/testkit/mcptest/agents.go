//go:build linux

package mcptest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ken/internal/testkit"
	"ken/llm"
	"ken/llm/llmtest"
)

const task = "Please cancel my order 4711 in the shop."

// An agent is a published MCP client, with what makes it ask a scripted model
// without a person.
type agent struct {
	name    string // in ken connect
	program string
	wire    llmtest.Wire
	file    string // in the home folder
	config  string // of that file; see fill
	env     []string
	args    []string
	prompt  string // the flag before the prompt; empty: none
	rewrite bool   // it writes to the file when it runs
}

// fill replaces what stands for the places of a test: {url} is the model, {server}
// is the definition of the MCP server as this client writes it, {home} the home
// folder.
func fill(text, url, server, home string) string {
	return strings.NewReplacer("{url}", url, "{server}", server, "{home}", home).Replace(text)
}

// agents are the clients that .ci/clients.sh installs.
func agents() []agent {
	return []agent{
		{
			name: "claude", program: "claude", wire: llmtest.Messages, file: ".claude.json", rewrite: true,
			config: "{\n  \"numStartups\": 3,\n  \"hasCompletedOnboarding\": true,\n  \"mcpServers\": {\"shop\": {\"type\": \"stdio\", {server}}}\n}\n",
			env:    []string{"ANTHROPIC_BASE_URL={url}", "ANTHROPIC_API_KEY=sk-ant-test", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"},
			args:   []string{"--model", "claude-sonnet-4-5", "--allowedTools", "mcp__ken,mcp__shop"}, prompt: "-p",
		},
		{
			name: "codex", program: "codex", wire: llmtest.Responses, file: ".codex/config.toml",
			config: "# mine\nmodel = \"scripted\"\nmodel_provider = \"scripted\"\n\n[model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{url}\"\nwire_api = \"responses\"\nenv_key = \"SCRIPTED_KEY\"\n\n[mcp_servers.shop]\n{server}\n",
			env:    []string{"SCRIPTED_KEY=k"},
			args:   []string{"exec", "--skip-git-repo-check", "--sandbox", "danger-full-access"},
		},
		{
			name: "gemini", program: "gemini", wire: llmtest.Gemini, file: ".gemini/settings.json",
			config: "{\n  \"security\": {\"auth\": {\"selectedType\": \"gemini-api-key\"}},\n  \"mcpServers\": {\"shop\": {{server}}}\n}\n",
			env:    []string{"GOOGLE_GEMINI_BASE_URL={url}", "GEMINI_API_KEY=k", "GEMINI_CLI_TRUST_WORKSPACE=true"},
			args:   []string{"--model", "gemini-2.5-pro", "--approval-mode", "yolo"}, prompt: "-p",
		},
		{
			name: "qwen", program: "qwen", wire: llmtest.Chat, file: ".qwen/settings.json",
			config: "{\n  \"$version\": 4,\n  \"security\": {\"auth\": {\"selectedType\": \"openai\"}},\n  \"mcpServers\": {\"shop\": {{server}}}\n}\n",
			env:    []string{"OPENAI_BASE_URL={url}", "OPENAI_API_KEY=k", "OPENAI_MODEL=scripted"},
			args:   []string{"--auth-type", "openai", "--approval-mode", "yolo"}, prompt: "-p",
		},
		{
			name: "opencode", program: "opencode", wire: llmtest.Chat, file: ".config/opencode/opencode.jsonc", rewrite: true,
			config: "{\n  // mine\n  \"autoupdate\": false,\n  \"provider\": {\"scripted\": {\"npm\": \"@ai-sdk/openai-compatible\", \"options\": {\"baseURL\": \"{url}\", \"apiKey\": \"k\"}, \"models\": {\"m\": {\"name\": \"m\"}}}},\n  \"model\": \"scripted/m\",\n  \"mcp\": {\"shop\": {\"type\": \"local\", {server}}}\n}\n",
			args:   []string{"run"},
		},
		{
			name: "copilot", program: "copilot", wire: llmtest.Chat, file: ".copilot/mcp-config.json",
			config: "{\n  \"mcpServers\": {\n    \"shop\": {\"type\": \"local\", {server}, \"tools\": [\"*\"]}\n  }\n}\n",
			env:    []string{"COPILOT_PROVIDER_BASE_URL={url}", "COPILOT_PROVIDER_API_KEY=k", "COPILOT_MODEL=scripted", "COPILOT_OFFLINE=true"},
			args:   []string{"--allow-all-tools"}, prompt: "-p",
		},
		{
			name: "continue", program: "cn", wire: llmtest.Chat, file: ".continue/config.yaml",
			config: "name: mine\nversion: 1.0.0\nschema: v1\nmodels:\n  - name: scripted\n    provider: openai\n    model: scripted\n    apiBase: {url}\n    apiKey: k\n    roles: [chat]\n    capabilities: [tool_use]\nmcpServers:\n  - name: shop\n{server}\n",
			args:   []string{"--config", "{home}/.continue/config.yaml", "--auto"}, prompt: "-p",
		},
	}
}

// server writes the definition of a program as the client does.
func (a agent) server(program string, args ...string) string {
	quoted := func(list []string) string {
		text, _ := json.Marshal(list) // strings always can
		return string(text)
	}
	switch a.name {
	case "codex":
		return fmt.Sprintf("command = %q\nargs = %s", program, quoted(args))
	case "opencode":
		return `"command": ` + quoted(append([]string{program}, args...))
	case "continue":
		return fmt.Sprintf("    command: %s\n    args: %s", program, quoted(args))
	}
	return fmt.Sprintf(`"command": %q, "args": %s`, program, quoted(args))
}

// alone puts the goroutine of a test, the listeners that it opens and the programs
// that it starts into a network with only a loopback device. So a client cannot
// ask its vendor, and ports are free.
func alone(t testing.TB) {
	t.Helper()
	runtime.LockOSThread() // until the goroutine ends, and its thread with it
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		if errors.Is(err, unix.EPERM) {
			t.Skip("cannot here: a network of its own needs root; run the test under unshare -rn")
		}
		t.Fatalf("unshare the network: %v", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		t.Fatalf("start the loopback device: %v", err)
	}
}

// run starts a client with a task and waits for its end.
func (a agent) run(t testing.TB, p *place, program, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	home := filepath.Dir(p.home)
	args := []string{}
	for _, arg := range a.args {
		args = append(args, fill(arg, url, "", home))
	}
	if a.prompt != "" {
		args = append(args, a.prompt)
	}
	cmd := exec.CommandContext(ctx, program, append(args, task)...)
	cmd.Dir = p.work
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "NO_COLOR=1", "TERM=dumb"}
	for _, line := range a.env {
		cmd.Env = append(cmd.Env, fill(line, url, "", home))
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		t.Errorf("%s ended with %v:\n%s", a.program, err, out.Bytes())
	}
	return out.String()
}

// newHome makes a home folder in which a client has the server.
func (a agent) newHome(t testing.TB, kenYAML, url string, args ...string) (p *place, path string) {
	t.Helper()
	p = newPlace(t, kenYAML, nil)
	if err := os.Remove(filepath.Join(p.home, "mcp.json")); err != nil {
		t.Fatal(err)
	}
	home := filepath.Dir(p.home)
	path = filepath.Join(home, a.file)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	config := fill(a.config, url, a.server(fixture(t), args...), home)
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return p, path
}

// must runs Ken and returns what it prints.
func (p *place) must(args ...string) string {
	p.tb.Helper()
	cmd := p.ken(args...)
	cmd.Stderr = nil
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.tb.Fatalf("ken %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// stop ends the daemon that a client's ken mcp has started, and waits for its end, so
// that it writes nothing into the folder of the test any more.
func (p *place) stop() {
	p.tb.Helper()
	found := daemon.FindStringSubmatch(p.must("mcp", "--stop"))
	if found == nil {
		return
	}
	pid, err := strconv.Atoi(found[1])
	if err != nil {
		p.tb.Fatal(err)
	}
	if !testkit.Until(func() bool { return syscall.Kill(pid, 0) != nil }) {
		p.tb.Fatal("the daemon does not end after ken mcp --stop")
	}
}

var daemon = regexp.MustCompile(`The daemon, process (\d+),`)

// serveAt runs ken serve at its usual address, which is free in a network of its
// own.
func (p *place) serveAt(t testing.TB) {
	t.Helper()
	cmd := p.ken("serve", "--json")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGINT)
		if err := cmd.Wait(); err != nil {
			t.Errorf("ken serve ended with %v", err)
		}
	})
	var hello struct{ URL string }
	if err := json.NewDecoder(stdout).Decode(&hello); err != nil {
		t.Fatalf("ken serve printed no URL: %v", err)
	}
}

// finished is the last thing that the model says.
const finished = "Order 4711 is gone."

// A model plays the language model of a client: it knows what it wants to call,
// and takes names from the tools that the client shows it.
type model struct {
	wire  llmtest.Wire
	grant func(ticket string) error // approves in another terminal

	mu    sync.Mutex
	turn  int
	said  []string // what went as it should not
	tools []string // at the last turn

	again    int             // calls that were repeated because the server was starting
	granted  bool            // the write was approved
	searched map[string]bool // tools that the client's own search was asked for
}

var ticket = regexp.MustCompile(`ken approve grant ([a-z0-9]+)`)

// A turn is a call, and what its result must contain.
type turn struct {
	tool string
	args map[string]any
	want string
}

func (m *model) reply(seen llmtest.Seen) llmtest.Reply {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tools = toolNames(m.wire, seen.Body)
	if named(m.tools, "discover_capabilities") == "" {
		return llmtest.Reply{Text: "An order"} // a title, or a question of the client's own
	}
	order := map[string]any{"number": 4711}
	read := turn{"read_order", order, "one teapot, not shipped"}
	write := turn{"cancel_order", order, "ken approve grant"}
	turns := []turn{
		{"discover_capabilities", map[string]any{"query": "cancel an order of the shop"}, "mcp:shop/cancel_order"},
		{"describe_capability", map[string]any{"id": "mcp:shop/cancel_order"}, "Cancels an order of the shop for good"},
		read, write, write,
	}
	turns[4].want = "Order 4711 is canceled"
	if m.turn > 0 && m.turn <= len(turns) {
		before := turns[m.turn-1]
		switch has := strings.Contains(string(seen.Body), before.want); {
		case has:
		case m.again < 100 && strings.Contains(string(seen.Body), " starting: "): // this machine is slow
			m.again++
			m.turn--
		default:
			m.said = append(m.said, fmt.Sprintf("after %s the request lacks %q", before.tool, before.want))
			return llmtest.Reply{Text: "I give up after " + before.tool}
		}
	}
	if m.turn == 4 && !m.granted {
		m.granted = true
		if err := m.grant(string(ticket.FindSubmatch(seen.Body)[1])); err != nil {
			m.said = append(m.said, err.Error())
			return llmtest.Reply{Text: "I give up: it was not approved"}
		}
	}
	if m.turn >= len(turns) {
		return llmtest.Reply{Text: finished}
	}
	next := turns[m.turn]
	name, args := m.call(seen.Body, "mcp:shop/"+next.tool, next.tool, next.args)
	if named(m.tools, next.tool) == "" && named(m.tools, "invoke_capability") == "" && !m.searched[next.tool] {
		m.searched[next.tool] = true
		return calls(clientSearch, map[string]any{"query": "select:" + name, "max_results": 5})
	}
	m.turn++
	return calls(name, args)
}

// clientSearch is Claude Code's own search for tools that it keeps back.
const clientSearch = "ToolSearch"

// call returns how a client calls a tool: under its own name, or through Ken's.
func (m *model) call(body []byte, id, name string, args map[string]any) (string, map[string]any) {
	if own := named(m.tools, name); own != "" {
		return own, args
	}
	if invoke := named(m.tools, "invoke_capability"); invoke != "" {
		return invoke, map[string]any{"capability": id, "arguments": args}
	}
	// The names of tools that the client keeps back stand in its first message.
	return string(regexp.MustCompile(`mcp__\w+__` + name + `\b`).Find(body)), args
}

func calls(name string, args map[string]any) llmtest.Reply {
	text, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return llmtest.Reply{Calls: []llm.ToolCall{{Name: name, Arguments: text}}}
}

// named returns the name under which a client has a tool; empty: it has none.
func named(tools []string, name string) string {
	for _, t := range tools {
		if t == name || strings.HasSuffix(t, "_"+name) || strings.HasSuffix(t, "-"+name) {
			return t
		}
	}
	return ""
}

// toolNames returns the tools that a request shows to the model.
func toolNames(wire llmtest.Wire, body []byte) []string {
	var out []string
	for _, t := range toolsOf(wire, body) {
		out = append(out, t.Name)
	}
	return out
}

// A shownTool is a tool as a request has it.
type shownTool struct {
	Name  string
	Defer bool `json:"defer_loading"`
	Raw   json.RawMessage
}

func toolsOf(wire llmtest.Wire, body []byte) []shownTool {
	var o struct{ Tools []json.RawMessage }
	if json.Unmarshal(body, &o) != nil {
		return nil
	}
	var out []shownTool
	for _, raw := range o.Tools {
		var t struct {
			shownTool
			Type                 string
			Function             shownTool
			Tools                []json.RawMessage
			FunctionDeclarations []json.RawMessage
		}
		if json.Unmarshal(raw, &t) != nil {
			continue
		}
		inner := append(t.Tools, t.FunctionDeclarations...)
		if wire == llmtest.Chat {
			t.shownTool.Name = t.Function.Name
		}
		if len(inner) == 0 {
			out = append(out, shownTool{Name: t.Name, Defer: t.Defer, Raw: raw})
		}
		for _, one := range inner {
			var i shownTool
			if json.Unmarshal(one, &i) == nil {
				i.Raw = one
				out = append(out, i)
			}
		}
	}
	return out
}

// report fails the test with what went wrong, and keeps the requests where
// KEN_CLIENTS_KEEP names a folder.
func (m *model) report(t testing.TB, server *llmtest.Server) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, line := range m.said {
		t.Error(line)
	}
	if m.turn == 0 {
		t.Errorf("the client never showed Ken's tools to its model; it showed %q", m.tools)
	}
	if dir := os.Getenv("KEN_CLIENTS_KEEP"); dir != "" {
		for _, seen := range server.Requests() {
			name := fmt.Sprintf("%s-%02d.json", strings.ReplaceAll(t.Name(), "/", "-"), seen.Number)
			if err := os.WriteFile(filepath.Join(dir, name), seen.Body, 0o600); err != nil {
				t.Error(err)
			}
			t.Logf("request %d %s: %d bytes, unread %q, refused %q", seen.Number, seen.Path, len(seen.Body), seen.Unread, seen.Refused)
		}
	}
}

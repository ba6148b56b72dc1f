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
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ken/internal/testkit"
	"ken/llm/llmtest"
)

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

const task = "Please cancel my order 4711 in the shop."

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

// eachAgent runs a test with every client that is here, in a network with nothing
// but this machine.
func eachAgent(t *testing.T, test func(t *testing.T, a agent, program string)) {
	dir := os.Getenv("KEN_CLIENTS")
	if dir == "" {
		t.Skip("there are no clients: make install-nightly installs them; KEN_CLIENTS names the folder of their programs")
	}
	ken(t) // building does not count
	fixture(t)
	for _, a := range agents() {
		t.Run(a.name, func(t *testing.T) {
			program := filepath.Join(dir, a.program)
			if _, err := os.Stat(program); err != nil {
				t.Skipf("there is no %s in KEN_CLIENTS: make install-nightly installs it", a.program)
			}
			test(t, a, program)
		})
	}
}

// alone puts the goroutine of a test, the listeners that it opens and the programs
// that it starts into a network with only a loopback device. So a client cannot
// ask its vendor, and ports are free.
func alone(t *testing.T) {
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
func (a agent) run(t *testing.T, p *place, program, url string) string {
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
func (a agent) newHome(t *testing.T, kenYAML, url string, args ...string) (p *place, path string) {
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

// TestClientFlows lets every client do a task through Ken, over both transports:
// find a tool, read it, call one that reads and one that a person must approve
// in another terminal. Afterwards the client's file is as it was.
func TestClientFlows(t *testing.T) {
	testkit.Nightly(t, "runs published clients")
	eachAgent(t, func(t *testing.T, a agent, program string) {
		for _, way := range []string{"stdio", "http"} {
			t.Run(way, func(t *testing.T) {
				t.Parallel()
				alone(t)
				flow(t, a, program, way)
			})
		}
	})
}

func flow(t *testing.T, a agent, program, way string) {
	m := &model{wire: a.wire, searched: map[string]bool{}}
	server := llmtest.ServeOthers(t, a.wire, m.reply)
	dir := t.TempDir()
	orders := filepath.Join(dir, "orders")
	p, path := a.newHome(t, "mcp: {trustHints: [shop]}\n", server.URL(), "-orders", orders)
	before := read(t, path)
	m.grant = func(ticket string) error {
		cmd := p.ken("approve", "grant", ticket)
		cmd.Stderr = nil
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("ken approve grant %s: %w: %s", ticket, err, out)
		}
		return nil
	}

	connect := []string{"connect", a.name, "--yes"}
	if way == "http" {
		connect = append(connect, "--http")
	}
	t.Logf("%s", p.must(connect...))
	connected := read(t, path)
	if bytes.Contains(connected, []byte("shop")) || !bytes.Contains(connected, []byte("ken")) {
		t.Errorf("after ken connect the file is %s", connected)
	}
	if way == "http" {
		p.serveAt(t)
	} else {
		t.Cleanup(p.stop)
	}

	out := a.run(t, p, program, server.URL())
	if !strings.Contains(out, finished) {
		t.Errorf("%s does not print %q:\n%s", a.program, finished, out)
	}
	m.report(t, server)
	if got, err := os.ReadFile(orders); string(got) != "canceled 4711\n" {
		t.Errorf("the server was told %q, %v; want one order canceled", got, err)
	}
	if log := p.must("audit", "query", "--json"); !strings.Contains(log, `"`+a.name+`"`) {
		t.Errorf("the audit log does not name %s:\n%s", a.name, log)
	}

	touched := !bytes.Equal(read(t, path), connected)
	if touched != a.rewrite {
		t.Errorf("%s wrote to its file: %v, want %v", a.program, touched, a.rewrite)
	}
	t.Logf("%s", p.must("disconnect", a.name))
	after := read(t, path)
	if !touched && !bytes.Equal(after, before) {
		t.Errorf("after ken disconnect the file is\n%s\nwant\n%s", after, before)
	}
	if touched && (!bytes.Contains(after, []byte(fixture(t))) || bytes.Contains(after, []byte(`"ken"`))) {
		t.Errorf("after ken disconnect the file is\n%s\nwant the server shop and no ken", after)
	}
	// A client that keeps its own notes in the file has not run in between now.
	p.must(connect...)
	p.must("disconnect", a.name)
	if again := read(t, path); !bytes.Equal(again, after) {
		t.Errorf("connected and disconnected again, the file is\n%s\nwant\n%s", again, after)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// serveAt runs ken serve at its usual address, which is free in a network of its
// own.
func (p *place) serveAt(t *testing.T) {
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

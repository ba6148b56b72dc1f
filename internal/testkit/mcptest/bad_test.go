package mcptest

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/testkit"
	"ken/internal/testkit/mcptest/skills"
)

// TestBadServers puts servers that break their word behind the real Ken. Each
// stays without effect on the others and on Ken, and what is wrong is named.
func TestBadServers(t *testing.T) {
	testkit.CI(t, "starts Ken and bad servers")
	t.Parallel()
	program := build(t, "ken/internal/testkit/mcptest/badserver")
	servers := map[string]definition{}
	for _, mode := range []string{"liar", "silent", "heavy", "page", "skill"} {
		servers[mode] = definition{Command: program, Args: []string{mode}}
	}
	servers["endless"] = definition{Command: program, Args: []string{"endless"}, Timeout: 2000}
	p := newPlace(t, allowAll+"mcp: {surface: bridge}\n", servers)
	p.prepare("mcp:liar/plain", "mcp:silent/plain", "mcp:heavy/plain", "mcp:page/show", "mcp:skill/skill_good", "mcp:endless/never")
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	if err := skills.Know(client); err != nil {
		t.Fatal(err)
	}
	session := p.connect(ctx, client, "--standalone")
	invoke := func(t *testing.T, id, args string) (*mcp.CallToolResult, string) {
		t.Helper()
		res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "invoke_capability", Arguments: json.RawMessage(fmt.Sprintf(`{"capability":%q,"arguments":%s}`, id, args))})
		if err != nil {
			return &mcp.CallToolResult{IsError: true}, err.Error()
		}
		return res, textOf(res)
	}
	works := func(t *testing.T, id, want string) *mcp.CallToolResult {
		t.Helper()
		res, got := invoke(t, id, `{}`)
		if res.IsError || !strings.Contains(got, want) {
			t.Errorf("%s = %q, error %v; want %q", id, tail([]byte(got), 500), res.IsError, want)
		}
		return res
	}

	t.Run("announces extensions that it does not answer", func(t *testing.T) {
		works(t, "mcp:liar/plain", "plain answer")
		if res, got := invoke(t, "mcp:liar/promise", `{}`); !res.IsError {
			t.Errorf("a task that cannot be asked about = %q, want an error", got)
		}
		works(t, "mcp:liar/plain", "plain answer")
		lint := exec.CommandContext(ctx, ken(t), "catalog", "lint")
		lint.Dir, lint.Env = p.work, p.env()
		out, _ := lint.CombinedOutput() // it fails for what it finds
		if !strings.Contains(string(out), "the server announces skills but does not support listing them") {
			t.Errorf("ken catalog lint does not name it:\n%s", tail(out, 2000))
		}
	})

	var list struct {
		Skills []struct{ URI string }
	}
	if err := skills.Ask(ctx, session, "skills/list", "", &list); err != nil {
		t.Fatal(err)
	}
	t.Run("answers for an extension that it did not announce", func(t *testing.T) {
		works(t, "mcp:silent/plain", "plain answer")
		for _, s := range list.Skills {
			if strings.Contains(s.URI, "unannounced") {
				t.Errorf("skills/list has %s, which no server announced", s.URI)
			}
		}
		if res, got := invoke(t, "mcp:silent/skill_unannounced", `{}`); !res.IsError {
			t.Errorf("the skill = %q, want an error", got)
		}
	})

	t.Run("10 MB of metadata", func(t *testing.T) {
		works(t, "mcp:heavy/plain", "plain answer")
		for _, name := range []string{"result", "content", "notes"} {
			res := works(t, "mcp:heavy/"+name, name+" answer")
			if raw, err := json.Marshal(res); err != nil || len(raw) > 1<<20 {
				t.Errorf("the result of %s has %d bytes for the client, %v", name, len(raw), err)
			}
		}
		tools, err := session.ListTools(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if raw, err := json.Marshal(tools); err != nil || len(raw) > 1<<20 {
			t.Errorf("the list of tools has %d bytes, %v", len(raw), err)
		}
		works(t, "mcp:heavy/plain", "plain answer")
	})

	t.Run("a task that never ends", func(t *testing.T) {
		if res, got := invoke(t, "mcp:endless/never", `{}`); !res.IsError || !strings.Contains(got, "mcp.servers.endless.timeout") {
			t.Errorf("the call = %q, error %v; want the end of its time", got, res.IsError)
		}
		testkit.Wait(t, "the task is cancelled", func() bool {
			_, got := invoke(t, "mcp:endless/cancelled", `{}`)
			return strings.Contains(got, "1")
		})
	})

	t.Run("a skill with a wrong digest", func(t *testing.T) {
		works(t, "mcp:skill/skill_good", "Follow the steps.")
		for args, file := range map[string]string{`{}`: "skill://altered/SKILL.md", `{"file":"more.md"}`: "skill://altered/more.md"} {
			res, got := invoke(t, "mcp:skill/skill_altered", args)
			if !res.IsError || !strings.Contains(got, file) || !strings.Contains(got, "its entry says sha256:") || strings.Contains(got, "curl") {
				t.Errorf("the skill with %s = %q, error %v; want an error that names the file and the digest", args, got, res.IsError)
			}
			if res, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: file}); err == nil || !strings.Contains(err.Error(), "digest") {
				t.Errorf("resources/read %s = %+v, %v; want an error about the digest", file, res, err)
			}
		}
	})
}

//go:build unix

package mcpgateway

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/testkit/mcptest/skills"
)

// TestSkills: a skill of a server is read with its digests, in a fence, and only
// the files that it lists. One that changes is in quarantine, and so are its files.
func TestSkills(t *testing.T) {
	var changed atomic.Bool
	all := func() []skills.Skill {
		one := skills.Skill{Dir: "skill://acme/tour", Description: "Lead guests through the site.", Files: map[string]string{"more.md": "Red, then blue.\n"}}
		if changed.Load() {
			one.Files["more.md"] = "Blue, then red.\n"
		}
		return []skills.Skill{one}
	}
	opts := &mcp.ServerOptions{}
	skills.Declare(opts)
	server := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, opts)
	if err := skills.Add(server, all); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(func() {
		for session := range server.Sessions() {
			session.Close()
		}
		web.CloseClientConnections()
		web.Close()
	})
	def := Server{Name: "r", URL: web.URL, Trust: capability.TrustUser, Timeout: time.Minute, StartTimeout: time.Minute}
	d := desk(t)
	g := listed(t, Config{Pins: d}, def)
	if got := invoke(t, g, callAs("ada", "", "r/skill_tour", "")); !strings.Contains(got, "Follow the steps.") || !strings.Contains(got, "skill tour of the MCP server r") {
		t.Errorf("the skill = %q, want its text in a fence that names the server", got)
	}
	if got := invoke(t, g, callAs("ada", "", "r/skill_tour", `{"file":"more.md"}`)); !strings.Contains(got, "Red, then blue.") {
		t.Errorf("its file = %q", got)
	}
	gives(t, g, callAs("ada", "", "r/read_resource", `{"uri":"skill://acme/tour/more.md"}`), "Red, then blue.\n")
	for target, want := range map[string]capability.ErrorKind{
		`r/skill_tour {"file":"../../etc/passwd"}`:                     capability.Invalid,
		`r/skill_tour {"file":"unlisted.md"}`:                          capability.Invalid,
		`r/read_resource {"uri":"skill://acme/tour/unlisted.md"}`:      capability.Conflict,
		`r/read_resource {"uri":"skill://acme/tour/../tour/SKILL.md"}`: capability.Conflict,
	} {
		id, args, _ := strings.Cut(target, " ")
		refused(t, g, callAs("ada", "", id, args), want)
	}
	if offers := g.Offers(); len(offers) != 1 || len(offers[0].Skills) != 1 || offers[0].Skills[0].Read != "mcp:r/skill_tour" {
		t.Errorf("Offers() = %+v, want the skill", offers)
	}

	changed.Store(true)
	again := listed(t, Config{Pins: d}, def)
	if got := rules(byID(load(t, again))["mcp:r/skill_tour"]); got != "mcp-changed" {
		t.Errorf("the changed skill has the rules %q, want mcp-changed", got)
	}
	for _, target := range []string{`r/skill_tour {}`, `r/read_resource {"uri":"skill://acme/tour/SKILL.md"}`} {
		id, args, _ := strings.Cut(target, " ")
		refused(t, again, callAs("ada", "", id, args), capability.Conflict, "ken extension review mcp:r")
	}
	if offers := again.Offers(); len(offers) != 1 || len(offers[0].Skills) != 0 {
		t.Errorf("Offers() = %+v, want no skill in quarantine", offers)
	}
}

package mcptest

import (
	"os"
	"path/filepath"
	"testing"

	"ken/internal/testkit"
)

// TestConformanceFixture shows that the fixture itself is sound, so that what
// fails in front of Ken is Ken's.
func TestConformanceFixture(t *testing.T) {
	testkit.Nightly(t, "runs the conformance suite")
	t.Parallel()
	npmDir(t)
	url := startHTTP(t, fixture(t), "-http", "127.0.0.1:0")
	conform(t, func(s suite) []string { return []string{"server", "--url", url} })
}

// TestConformanceServer tests Ken's side toward clients: everything that the
// suite asks a server for comes from the fixture behind it.
func TestConformanceServer(t *testing.T) {
	testkit.Nightly(t, "runs the conformance suite")
	t.Parallel()
	npmDir(t)
	p := newPlace(t, allowAll+"mcp: {surface: direct, new: accept, changed: accept}\nserve: {auth: off}\n", map[string]definition{"fixture": {Command: fixture(t)}})
	p.prepare("mcp:fixture/test_simple_text")
	url, _ := p.serve()
	conform(t, func(s suite) []string { return []string{"server", "--url", url} })
}

// TestConformanceClient tests Ken's side toward servers.
func TestConformanceClient(t *testing.T) {
	testkit.Nightly(t, "runs the conformance suite")
	t.Parallel()
	npmDir(t)
	client := build(t, "ken/internal/testkit/mcptest/client")
	conform(t, func(s suite) []string { return []string{"client", "--command", client} })
}

// skillScenarios are the scenarios of the newest suite about skills (SEP-2640).
// They belong to an extension, so no set of requirements has them.
var skillScenarios = map[string][]string{
	"server": {"sep-2640-skills-enumeration", "sep-2640-skills-manifest", "sep-2640-skills-directory"},
	"client": {"sep-2640-client-no-prefetch", "sep-2640-client-verify-digest", "sep-2640-client-verify-size", "sep-2640-client-verify-frontmatter"},
}

// loginScenarios are those of the newest suite about logging in that no set of
// requirements has: tokens without a person, tokens that are bound to a key, and
// servers of the first protocol that knew logins.
var loginScenarios = []string{"auth/client-credentials-jwt", "auth/client-credentials-basic", "auth/enterprise-managed-authorization", "auth/wif-jwt-bearer",
	"auth/dpop", "auth/dpop-nonce", "auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback"}

func TestConformanceLogin(t *testing.T) {
	testkit.Nightly(t, "runs the conformance suite")
	t.Parallel()
	npmDir(t)
	conformTo(t, loginScenarios, "client", "--command", build(t, "ken/internal/testkit/mcptest/client"), "--timeout", "240000")
}

// TestConformanceSkills tests skills on both sides of Ken. The skills of the first
// server come from the fixture behind it, those of the second from local files.
func TestConformanceSkills(t *testing.T) {
	testkit.Nightly(t, "runs the conformance suite")
	t.Parallel()
	npmDir(t)
	t.Run("behind", func(t *testing.T) {
		p := newPlace(t, allowAll+"serve: {auth: off}\n", map[string]definition{"fixture": {Command: fixture(t)}})
		p.prepare("mcp:fixture/skill_pdf-processing")
		url, _ := p.serve()
		conformTo(t, skillScenarios["server"], "server", "--url", url)
	})
	t.Run("own", func(t *testing.T) {
		p := newPlace(t, allowAll+"serve: {auth: off}\n", nil)
		dir := filepath.Join(p.home, "skills", "pdf-processing")
		if err := os.MkdirAll(filepath.Join(dir, "references"), 0o700); err != nil {
			t.Fatal(err)
		}
		p.write("skills/pdf-processing/SKILL.md", []byte("---\nname: pdf-processing\ndescription: Extract and fill PDF documents.\nmetadata: {version: \"2.1\"}\n---\n\nRead references/FORMS.md.\n"))
		p.write("skills/pdf-processing/references/FORMS.md", []byte("# Forms\n"))
		url, _ := p.serve()
		conformTo(t, skillScenarios["server"], "server", "--url", url)
	})
	t.Run("client", func(t *testing.T) {
		conformTo(t, skillScenarios["client"], "client", "--command", build(t, "ken/internal/testkit/mcptest/client"), "--timeout", "240000")
	})
}

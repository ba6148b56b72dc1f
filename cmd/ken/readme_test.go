//go:build unix

package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ken/internal/testkit"
)

// TestReadme runs the commands of README.md in their order in a fresh home, as a
// new user would. Each must succeed, and none may remove a capability of the
// starter catalog.
func TestReadme(t *testing.T) {
	testkit.CI(t, "runs the commands of README.md")
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := readmeCommands(string(text))
	if len(lines) < 8 {
		t.Fatalf("README.md has %d commands: %q", len(lines), lines)
	}
	n := newcomer{t: t, dir: t.TempDir(), home: t.TempDir()}
	n.settle()
	starter := n.capabilities()
	if len(starter) < 60 {
		t.Fatalf("a fresh home has %d capabilities, want those of the starter", len(starter))
	}
	for _, line := range lines {
		n.do(line)
		var gone []string
		now := n.capabilities()
		for _, id := range starter {
			if !slices.Contains(now, id) {
				gone = append(gone, id)
			}
		}
		if len(gone) > 0 {
			t.Errorf("after %q, %d of %d capabilities of the starter are missing, such as %s", line, len(gone), len(starter), gone[0])
		}
	}
}

// TestReadmeCommands checks which lines readmeCommands takes for commands.
func TestReadmeCommands(t *testing.T) {
	const text = "words\n\n```\nmake build\nbin/ken run \"a # b\"      # why\n```\n\n```yaml\na: b\n```\n\n```\n +--+\n | picture |\n```\n"
	if got, want := readmeCommands(text), []string{"make build", `bin/ken run "a # b"`}; !slices.Equal(got, want) {
		t.Errorf("commands = %q, want %q", got, want)
	}
}

var (
	codeBlock = regexp.MustCompile("(?ms)^```\n(.*?)^```$")
	remark    = regexp.MustCompile(`\s{2,}# .*$`)
)

// readmeCommands returns the lines of the code blocks without a language, less
// their comments. It skips lines that begin with a space: they belong to a
// drawing.
func readmeCommands(text string) []string {
	var commands []string
	for _, block := range codeBlock.FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(block[1]) {
			line = strings.TrimRight(line, "\n")
			if line != "" && line[0] != ' ' {
				commands = append(commands, remark.ReplaceAllString(line, ""))
			}
		}
	}
	return commands
}

// A newcomer is a new user with a clone of the repository and a home directory
// that holds the configuration of an MCP client.
type newcomer struct {
	t         *testing.T
	dir, home string
}

// settle creates both directories. The client has one MCP server.
func (n *newcomer) settle() {
	n.t.Helper()
	binary := newKen(n.t).binary
	server, err := os.Executable()
	if err == nil {
		err = os.Mkdir(filepath.Join(n.dir, "bin"), 0o755)
	}
	if err == nil {
		binary, err = filepath.Abs(binary)
	}
	if err == nil {
		err = os.Symlink(binary, filepath.Join(n.dir, "bin", "ken"))
	}
	sample := filepath.Join(n.home, "sample")
	if err == nil {
		err = os.Symlink(server, sample) // see TestMain
	}
	if err == nil {
		client := fmt.Sprintf(`{"mcpServers": {"notes": {"command": %q, "args": [%q]}}}`, sample, n.home)
		err = os.WriteFile(filepath.Join(n.home, ".claude.json"), []byte(client), 0o600)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(n.dir, "README.md"), []byte("# A project\n"), 0o644)
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *newcomer) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = n.dir
	cmd.Env = []string{"HOME=" + n.home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.Getenv("TMPDIR"), "GORACE=atexit_sleep_ms=0"}
	return cmd
}

// do runs one line. For make it only checks that the target exists: the targets
// run these tests.
func (n *newcomer) do(line string) {
	n.t.Helper()
	if target, ok := strings.CutPrefix(line, "make "); ok {
		makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
		if err != nil {
			n.t.Fatal(err)
		}
		if !strings.Contains(string(makefile), "\n"+target+":") {
			n.t.Errorf("%s: the Makefile has no such target", line)
		}
		return
	}
	line = strings.Replace(line, "go run ./cmd/ken", "bin/ken", 1)
	switch {
	case strings.HasPrefix(line, "bin/ken serve"):
		n.serve(strings.Fields(line)[1:])
	case strings.HasPrefix(line, "bin/ken "):
		if strings.HasPrefix(line, "bin/ken connect ") {
			line += " --yes" // confirms what connect would ask on a terminal
		}
		ctx, cancel := context.WithTimeout(n.t.Context(), testkit.Patience)
		defer cancel()
		// Standard input is empty, so a conversation ends at once.
		if out, err := n.command(ctx, "sh", "-ec", line).CombinedOutput(); err != nil {
			n.t.Errorf("%s: %v\n%s", line, err, out)
		}
		if line == "bin/ken init" {
			n.commented()
		}
	default:
		n.t.Errorf("%s: unknown command", line)
	}
}

// commented checks that ken.yaml has a comment for each setting, as init writes it.
func (n *newcomer) commented() {
	n.t.Helper()
	text, err := os.ReadFile(filepath.Join(n.home, ".ken", "ken.yaml"))
	if err != nil {
		n.t.Fatal(err)
	}
	if comments := strings.Count(string(text), "# "); comments < 100 {
		n.t.Errorf("after bin/ken init, ken.yaml has %d comments, want every setting explained:\n%s", comments, text)
	}
}

// serve starts the server, opens the page with the printed link, and stops it.
func (n *newcomer) serve(args []string) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), testkit.Patience)
	defer cancel()
	cmd := n.command(ctx, "bin/ken", append(args, "--addr", "127.0.0.1:0", "--json")...)
	var stderr lockedBuffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		n.t.Fatal(err)
	}
	var hello struct{ Page string }
	if err = json.NewDecoder(out).Decode(&hello); err == nil {
		err = n.open(ctx, hello.Page)
	}
	err = errors.Join(err, cmd.Process.Signal(os.Interrupt), cmd.Wait())
	if err != nil {
		n.t.Errorf("ken serve: %v\n%s", err, stderr.String())
	}
}

func (n *newcomer) open(ctx context.Context, page string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Accept": "text/html"} { // what a browser sends
		req.Header.Set(name, value)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Jar: jar}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET of the printed link: status %d", resp.StatusCode)
	}
	return nil
}

// capabilities returns the ids of every capability in the catalog.
func (n *newcomer) capabilities() []string {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), testkit.Patience)
	defer cancel()
	var list struct{ Capabilities []struct{ ID string } }
	out, err := n.command(ctx, "bin/ken", "--json", "catalog", "list").Output()
	if err == nil {
		err = json.Unmarshal(out, &list)
	}
	if err != nil {
		n.t.Fatalf("ken catalog list: %v\n%s", err, out)
	}
	var ids []string
	for _, c := range list.Capabilities {
		ids = append(ids, c.ID)
	}
	return ids
}

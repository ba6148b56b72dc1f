package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"ken/internal/config"
)

// TestDocumentedCommands: every command, flag and key of ken.yaml in a command
// that the documentation names exists.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	files := []string{filepath.Join("..", "..", "README.md"), filepath.Join("..", "..", "SECURITY.md")}
	for _, pattern := range []string{"*.md", filepath.Join("tutorials", "*.md")} {
		found, err := filepath.Glob(filepath.Join("..", "..", "docs", pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	seen := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range commandsIn(string(text)) {
			seen++
			if err := checkCommand(line); err != nil {
				t.Errorf("%s: %q: %v", filepath.Base(file), line, err)
			}
		}
	}
	if seen < 200 {
		t.Errorf("the documentation has %d commands, want more", seen)
	}
}

func TestDocumentedCommandsCatches(t *testing.T) {
	t.Parallel()
	const text = "Run `ken chat -p hi` or `bin/ken serve`, not `kennel`.\n\n```\nken config get   # all\ngo run ./cmd/ken demo --yes\n```\n"
	if got, want := commandsIn(text), []string{"chat -p hi", "serve", "config get", "demo --yes"}; !slices.Equal(got, want) {
		t.Errorf("commands = %q, want %q", got, want)
	}
	for line, fine := range map[string]bool{
		"approve grant ID --for session": true, "config set model ollama/qwen3": true, "run \"/shell ls --all\"": true, "add npm:x -- --port 1": true,
		"config get mcp.servers.files.command": true, "config set KEY VALUE": true, "--json catalog list": true, "…": true,
		"aprove list": false, "approve gant ID": false, "serve --adress x": false, "config get serve.adr": false,
	} {
		if err := checkCommand(line); (err == nil) != fine {
			t.Errorf("checkCommand(%q) = %v, want fine: %v", line, err, fine)
		}
	}
}

var (
	codeSpan    = regexp.MustCompile("`([^`\n]+)`")
	aFence      = regexp.MustCompile("(?ms)^ *```[a-z]*\n(.*?)^ *```")
	ofKen       = regexp.MustCompile(`^(?:\$ )?(?:ken|bin/ken|go run \./cmd/ken) (.+)$`)
	afterRemark = regexp.MustCompile(`\s+# .*$`)
)

// commandsIn returns the commands of Ken in a page, without the name of the
// program and without remarks.
func commandsIn(text string) []string {
	var out []string
	add := func(line string) {
		if m := ofKen.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			out = append(out, afterRemark.ReplaceAllString(m[1], ""))
		}
	}
	var blocks []string
	rest := aFence.ReplaceAllStringFunc(text, func(block string) string {
		blocks = append(blocks, block)
		return ""
	})
	for _, m := range codeSpan.FindAllStringSubmatch(rest, -1) {
		add(m[1])
	}
	for _, block := range blocks {
		for line := range strings.Lines(block) {
			add(line)
		}
	}
	return out
}

var (
	plainWord = regexp.MustCompile(`^[a-z]+$`)
	aKey      = regexp.MustCompile(`^[a-z]+(\.[a-zA-Z0-9]+)*$`)
)

// checkCommand looks up the command, the flags and the key of ken.yaml in a line.
func checkCommand(line string) error {
	root := newRoot(&environment{})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	cmd, given := root, 0
	for _, word := range strings.Fields(line) {
		word = strings.TrimRight(word, ",.;")
		switch {
		case word == "--" || strings.ContainsAny(word, "|&<>(\"'"):
			return nil // what follows is the shell's, or another program's
		case strings.HasPrefix(word, "-") && word != "-":
			if cmd.Name() == "run" && given > 0 {
				return nil // the command's own
			}
			if err := checkFlag(cmd, word); err != nil {
				return err
			}
		case given == 0 && cmd.HasSubCommands() && plainWord.MatchString(word):
			next := slices.IndexFunc(cmd.Commands(), func(sub *cobra.Command) bool { return sub.Name() == word || sub.HasAlias(word) })
			if next < 0 {
				return fmt.Errorf("%s has no command %q", cmd.CommandPath(), word)
			}
			cmd = cmd.Commands()[next]
		default:
			if given++; given == 1 && cmd.Parent() != nil && cmd.Parent().Name() == "config" && aKey.MatchString(word) {
				if _, _, err := config.Default().Explain(config.WholeKey(word)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func checkFlag(cmd *cobra.Command, word string) error {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	if name == "help" || name == "h" || name == "…" {
		return nil
	}
	if len(word) > 1 && word[1] != '-' {
		if cmd.Flags().ShorthandLookup(name[:1]) == nil && cmd.InheritedFlags().ShorthandLookup(name[:1]) == nil {
			return errors.New("there is no flag -" + name[:1])
		}
		return nil
	}
	if cmd.Flags().Lookup(name) == nil && cmd.InheritedFlags().Lookup(name) == nil && cmd.Root().PersistentFlags().Lookup(name) == nil {
		return errors.New("there is no flag --" + name)
	}
	return nil
}

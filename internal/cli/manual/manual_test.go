package manual_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"ken/internal/cli/manual"
)

func TestPages(t *testing.T) {
	t.Parallel()
	root := &cobra.Command{Use: "tool", Short: "Does things", Long: "Does things:\n\n.first \\ one\n'second"}
	sub := &cobra.Command{Use: "do THING", Short: "Do one", Example: "tool do -n 3", Run: func(*cobra.Command, []string) {}}
	sub.Flags().IntP("number", "n", 2, "how `many`")
	sub.Flags().String("secret", "", "not told")
	if err := sub.Flags().MarkHidden("secret"); err != nil {
		t.Fatal(err)
	}
	hidden := &cobra.Command{Use: "hidden", Hidden: true, Run: func(*cobra.Command, []string) {}}
	root.AddCommand(sub, hidden)

	pages := map[string]string{}
	for _, p := range manual.Pages(root, "1.2.3", "2026-11-17") {
		pages[p.Name] = string(p.Text)
	}
	tests := []struct{ page, want string }{
		{"tool.1", ".TH \"TOOL\" 1 \"2026\\-11\\-17\" \"ken 1.2.3\" \"Ken\"\n"},
		{"tool.1", ".BR tool\\-do (1)\nDo one\n"},
		{"tool.1", "\n\\&.first \\e one\n\\&'second\n"},
		{"tool-do.1", ".B tool do THING [flags]\n"},
		{"tool-do.1", ".B \\-n, \\-\\-number many\nhow many (default 2)\n"},
		{"tool-do.1", "tool do \\-n 3\n"},
		{"tool-do.1", ".SH SEE ALSO\n.BR tool (1)\n"},
	}
	for _, tt := range tests {
		if !strings.Contains(pages[tt.page], tt.want) {
			t.Errorf("%s has no %q:\n%s", tt.page, tt.want, pages[tt.page])
		}
	}
	if strings.Contains(pages["tool-do.1"], "secret") {
		t.Error("tool-do.1 tells of a hidden flag")
	}
	for name, page := range pages {
		if strings.Contains(name, "hidden") {
			t.Errorf("%s is the page of a hidden command", name)
		}
		complaints(t, name, page)
	}
}

// complaints fails the test if groff, where it is installed, finds fault with a page.
func complaints(t *testing.T, name, page string) {
	t.Helper()
	groff, err := exec.LookPath("groff")
	if err != nil {
		return
	}
	cmd := exec.Command(groff, "-man", "-Tascii", "-ww", "-z")
	cmd.Stdin = strings.NewReader(page)
	out, err := cmd.CombinedOutput()
	if lines := slices.DeleteFunc(strings.Split(string(out), "\n"), func(s string) bool { return s == "" }); err != nil || len(lines) > 0 {
		t.Errorf("groff about %s: %v\n%s", name, err, out)
	}
}

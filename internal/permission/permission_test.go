package permission_test

import (
	"testing"

	"ken/internal/govern/policy"
	"ken/internal/permission"
)

// TestAliases: what a package's words mean is what the rules enforce.
func TestAliases(t *testing.T) {
	for word, want := range map[string]string{
		"exec_shell": "exec", "http": "network", "net": "network", "network_http": "network", "fs.read": "filesystem.read",
		"fs_read": "filesystem.read", "fs.write": "filesystem.write", "fs_write": "filesystem.write", "browser": "browser", "llm": "llm",
	} {
		if i := permission.Find(word); i < 0 || permission.Names()[i] != want {
			t.Errorf("%s is %d, want %s", word, i, want)
		}
		if got := policy.ParsePermissions([]string{word}); got.String() != want || got.Unknown() != "" {
			t.Errorf("the rules take %s for %q, want %s", word, got, want)
		}
	}
	if i := permission.Find("root"); i != -1 {
		t.Errorf("root is %d, want none", i)
	}
}

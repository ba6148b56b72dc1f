//go:build linux

package sandbox

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"ken/internal/testkit"
)

// TestMask: a masked file cannot be read, changed, removed or moved, by its
// name, through a link, from its folder or after the folder was moved. Files
// next to it can. Without the mask, each way works.
func TestMask(t *testing.T) {
	testkit.CI(t, "starts dozens of tools")
	for _, tt := range []struct{ name, script string }{
		{"name", `cat .env sub/.env keys/id`},
		{"link", `ln -s .env l && cat l; ln -s ../sub/.env other/l && cat other/l; ln -s keys k && cat k/id`},
		{"hard link", `ln .env h && cat h`},
		{"recursive", `grep -r secret . `},
		{"moved", `mv sub sub2 && cat sub2/.env; mv keys keys2 && cat keys2/id`},
		{"removed", `rm -f .env && echo secret gone; rm -rf keys && echo secret gone`},
		{"changed", `echo secret >.env && echo secret written; echo secret >keys/more && echo secret written`},
		{"mode", `chmod 0644 .env; chmod 0755 keys; cat .env keys/id`},
		{"unmount", `umount .env; umount -l keys; cat .env keys/id`},
		{"copied", `cp -r . /tmp/copy; cat /tmp/copy/.env /tmp/copy/keys/id`},
		{"blank", `cat /.blank/file; echo .env >/.blank/x; ls -d /.blank && echo secret place`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			attack := func(mask ...string) Outcome {
				work := inside(t)
				for name, text := range map[string]string{".env": "secret", "sub/.env": "secret", "keys/id": "secret", "other/plain": "plain", "sub/plain": "plain"} {
					must(t, work.MkdirAll(filepath.Dir(name), 0o755), work.WriteFile(name, []byte(text+"\n"), 0o644))
				}
				s := shell(work, `cat sub/plain && echo x >sub/new && { `+tt.script+`; } 2>/dev/null; true`)
				s.Mask = mask
				o := mustRun(t, Full, s)
				if !strings.HasPrefix(o.Stdout.Text(), "plain\n") {
					t.Errorf("control: reading beside it = %q %q", o.Stdout.Text(), o.Stderr.Text())
				}
				if len(mask) > 0 {
					for _, name := range []string{".env", "keys/id"} {
						if data, err := work.ReadFile(name); err != nil || string(data) != "secret\n" {
							t.Errorf("%s = %q, %v, want it unchanged", name, data, err)
						}
					}
				}
				return o
			}
			if o := attack(); tt.name != "blank" && !strings.Contains(o.Stdout.Text(), "secret") {
				t.Errorf("control: without a mask = %q", o.Stdout.Text())
			}
			if o := attack(".env", "sub/.env", "keys"); strings.Contains(o.Stdout.Text(), "secret") || len(o.Isolation.Missing) > 0 {
				t.Errorf("masked = %q; missing %q", o.Stdout.Text(), o.Isolation.Missing)
			}
		})
	}
}

// TestMaskGranted: files in a granted folder, including a read-only one, are
// masked by their absolute name.
func TestMaskGranted(t *testing.T) {
	work, read, write := inside(t), inside(t), inside(t)
	must(t, read.WriteFile(".env", []byte("secret"), 0o644), write.WriteFile(".env", []byte("secret"), 0o644))
	s := shell(work, fmt.Sprintf("cat %s/.env %s/.env; echo done", read.Name(), write.Name()))
	s.Read, s.Write = []string{read.Name()}, []string{write.Name()}
	says(t, mustRun(t, Full, s), "secretsecretdone\n")
	s.Mask = []string{filepath.Join(read.Name(), ".env"), filepath.Join(write.Name(), ".env")}
	if o := mustRun(t, Full, s); o.Stdout.Text() != "done\n" || strings.Count(o.Stderr.Text(), "Permission denied") != 2 {
		t.Errorf("masked: %q %q", o.Stdout.Text(), o.Stderr.Text())
	}
}

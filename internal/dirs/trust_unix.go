//go:build unix

package dirs

import (
	"io/fs"
	"os"
	"syscall"

	"ken/capability"
)

// Distrust says why the user's settings cannot be read from a file or a folder:
// another user could write there what this one may do, and which programs run.
// What is missing is no problem. Root is trusted, and may use what belongs to
// others, as in a container.
func Distrust(path string) []capability.Problem {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	const code = "untrusted"
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && os.Geteuid() != 0 && int(st.Uid) != os.Geteuid() {
		return []capability.Problem{{
			Code: code, Origin: capability.Origin{Path: path},
			Message: "it belongs to another user, who could change your settings", Fix: "set KEN_HOME to a folder of your own",
		}}
	}
	if mode := info.Mode(); mode.Perm()&0o002 != 0 && (mode.IsRegular() || mode&fs.ModeDir != 0) {
		return []capability.Problem{{
			Code: code, Origin: capability.Origin{Path: path},
			Message: "every user can write there, and could change your settings", Fix: "chmod o-w " + path,
		}}
	}
	return nil
}

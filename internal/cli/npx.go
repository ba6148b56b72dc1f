package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// inNPXCache reports whether a program lies in the cache of npx, which deletes
// old packages.
func inNPXCache(program string) bool {
	return strings.Contains(filepath.ToSlash(program), "/_npx/")
}

// lastingProgram returns where a copy of a program goes that does not last where it
// is: into the folder bin of Ken's home.
func lastingProgram(home, program string) string {
	return filepath.Join(home, "bin", filepath.Base(program))
}

// copyProgram writes a program to another place. What is there is replaced as a
// whole, so that a client that starts it meanwhile gets the old or the new one.
func copyProgram(to, from string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("copy %s to %s: %w", from, to, err)
		}
	}()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(to), "ken-*")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name()) // once it has its name, there is nothing to remove
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Chmod(0o755)
	}
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(out.Name(), to)
}

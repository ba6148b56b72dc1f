package shim

import "bytes"

// Mine reports whether the arguments of a program, its name first, are ken mcp
// with nothing but flags that the daemon understands. All else is for the
// program's own reading: --standalone, --help, mistakes, and flags before the
// command.
func Mine(args []string) bool {
	if !Supported || len(args) < 2 || args[1] != "mcp" {
		return false
	}
	for rest := args[2:]; len(rest) > 0; rest = rest[1:] {
		name, value, joined := bytes.Cut([]byte(rest[0]), []byte("="))
		switch string(name) {
		case "--config", "--catalog", "--client":
		case "--surface":
			if !joined && len(rest) > 1 {
				value = []byte(rest[1])
			}
			if string(value) != "bridge" && string(value) != "direct" {
				return false
			}
		default:
			return false
		}
		if joined {
			continue
		}
		if rest = rest[1:]; len(rest) == 0 {
			return false
		}
	}
	return true
}

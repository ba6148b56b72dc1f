package programs

import (
	"slices"
	"strings"
)

// A Concern is a word of a command that a person should look at before they allow
// the command, and why.
type Concern struct {
	Arg int // its place in the command, from 0
	Why string
}

// Concerns returns the words of a command that a person should look at, in their
// order. It is for people who decide: that a word is not among them promises
// nothing.
func Concerns(argv []string) []Concern {
	var out []Concern
	for _, from := range Starts(argv) {
		out = append(out, concerns(argv[from:], from)...)
	}
	return out
}

// Starts returns where the commands of a command begin: at 0, and where a starter
// such as sudo or xargs names the command that it starts.
func Starts(argv []string) []int {
	var out []int
	for from := 0; from < len(argv); {
		out = append(out, from)
		started, ok := Started(argv[from:])
		if !ok || len(started) == 0 {
			break
		}
		from = len(argv) - len(started)
	}
	return out
}

func concerns(argv []string, from int) (out []Concern) {
	name := Name(argv[0])
	add := func(arg int, why string) { out = append(out, Concern{from + arg, why}) }
	each := func(why string, match func(arg string) bool) {
		for i, arg := range argv[1:] {
			if match(arg) {
				add(i+1, why)
			}
		}
	}
	switch {
	case name == "sudo" || name == "doas" || name == "su" || name == "pkexec" || name == "runuser" || name == "gosu" || name == "su-exec":
		add(0, "runs as another user")
	case name == "rm":
		add(0, "deletes files")
		each("deletes folders with everything in them", func(a string) bool { return shortOrLong(a, "rR", "--recursive") })
		each("never asks", func(a string) bool { return shortOrLong(a, "f", "--force") && !shortOrLong(a, "rR") })
	case name == "git":
		if at, _ := GitCommand(argv); at >= 0 && GitDestroys(argv) {
			add(at, "discards commits or changes")
		} else if at >= 0 && slices.Contains([]string{"push", "pull", "fetch", "clone"}, argv[at]) {
			add(at, "uses the network")
		}
	case name == "find":
		each("deletes everything that is found", func(a string) bool { return a == "-delete" })
		each("runs a command for everything that is found", func(a string) bool { return strings.HasPrefix(a, "-exec") || strings.HasPrefix(a, "-ok") })
	case Destroys(argv):
		add(0, "destroys what it names")
	case usesNetwork(name):
		add(0, "uses the network")
		if name == "curl" {
			each("sends data", func(a string) bool {
				return shortOrLong(a, "dFT", "--data", "--form", "--upload-file", "--json")
			})
		}
	case installs(argv):
		add(1, "downloads code that it may run")
	case name == "chmod" || name == "chown" || name == "chgrp" || name == "setfacl":
		add(0, "changes who may use files")
	case name == "kill" || name == "killall" || name == "pkill" || name == "shutdown" || name == "reboot" || name == "halt" || name == "poweroff":
		add(0, "ends programs")
	case name == "systemctl" || name == "service" || name == "launchctl" || name == "crontab" || name == "at" || name == "schtasks":
		add(0, "changes what runs on this machine")
	}
	return out
}

// Destroys reports whether a program is known to destroy what its arguments name.
func Destroys(argv []string) bool {
	switch name := Name(argv[0]); name {
	case "rm", "rmdir", "shred", "dd", "mkfs", "truncate", "unlink", "wipefs", "fdisk", "parted":
		return true
	case "git":
		return GitDestroys(argv)
	case "find":
		return slices.Contains(argv, "-delete")
	default:
		return strings.HasPrefix(name, "mkfs.")
	}
}

func usesNetwork(name string) bool {
	switch name {
	case "curl", "wget", "nc", "ncat", "netcat", "ssh", "scp", "sftp", "rsync", "ftp", "telnet", "socat", "lftp", "http", "https", "aria2c", "mosh", "rclone":
		return true
	}
	return false
}

// installs reports whether a command is one of a package manager that fetches
// packages.
func installs(argv []string) bool {
	if len(argv) < 2 {
		return false
	}
	switch Name(argv[0]) {
	case "npm", "pnpm", "yarn", "pip", "pip3", "pipx", "uv", "gem", "cargo", "go", "apt", "apt-get", "dnf", "yum", "brew", "apk", "snap", "choco", "winget":
		return slices.Contains([]string{"install", "i", "add", "ci", "get", "upgrade", "update"}, argv[1])
	}
	return false
}

// shortOrLong reports whether an argument is a cluster of short options with one
// of the letters, or one of the long options.
func shortOrLong(arg, letters string, long ...string) bool {
	if strings.HasPrefix(arg, "--") {
		return slices.ContainsFunc(long, func(l string) bool { return strings.HasPrefix(arg, l) })
	}
	return len(arg) > 1 && arg[0] == '-' && strings.ContainsAny(arg[1:], letters)
}

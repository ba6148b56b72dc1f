package shim

import (
	"errors"
	"hash/fnv"
	"os"
	"path"
	"strconv"
)

// A Place is where a user's daemon is met. It is computed from names alone,
// but for the fallback of a socket whose name would be too long.
type Place struct {
	Home   string // the user's folder of Ken
	Socket string // where the daemon listens
	Log    string // what the daemon says

	// Private says that the socket's folder is for this alone and no other user
	// may even look into it.
	Private bool
}

// Where computes the place from the environment and the working directory, by
// the rule of dirs.New for the home and the logs. The two must agree:
// a test holds them together.
func Where(getenv func(string) string, cwd string) (Place, error) {
	if !path.IsAbs(cwd) {
		return Place{}, errors.New("find Ken's places: the working directory has no absolute name; change to another directory")
	}
	user := ""
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if home := getenv(name); user == "" && path.IsAbs(home) {
			user = path.Clean(home)
		}
	}
	under := func(variable, otherwise string) string {
		if dir := getenv(variable); path.IsAbs(dir) {
			return path.Join(dir, "ken")
		}
		return otherwise
	}
	var p Place
	logs := ""
	if home := getenv("KEN_HOME"); home != "" {
		switch {
		case user != "" && (home == "~" || len(home) > 1 && home[:2] == "~/"):
			home = path.Join(user, home[1:])
		case !path.IsAbs(home):
			home = path.Join(cwd, home)
		}
		p.Home = path.Clean(home)
		logs = path.Join(p.Home, "logs")
	} else {
		dotKen := ""
		if user != "" {
			dotKen = path.Join(user, ".ken")
		}
		if p.Home = under("XDG_CONFIG_HOME", dotKen); p.Home == "" {
			return Place{}, errors.New("find Ken's places: there is no home directory; set HOME or KEN_HOME")
		}
		if dotKen == "" {
			dotKen = p.Home
		}
		logs = path.Join(under("XDG_STATE_HOME", dotKen), "logs")
	}
	p.Log = path.Join(logs, "daemon.log")
	p.Socket, p.Private = socket(p.Home, getenv("XDG_RUNTIME_DIR"))
	return p, nil
}

// socket returns the socket of a home. The system bounds the names of sockets;
// a home too deep for that has its socket elsewhere, under a name made of its
// own. Two homes with one such name would share a daemon: the hash has 64
// bits, and only the user chooses homes.
func socket(home, runtimeDir string) (name string, private bool) {
	if name = path.Join(home, "ken.sock"); len(name) <= maxPath {
		return name, false
	}
	h := fnv.New64a()
	h.Write([]byte(home))
	short := strconv.FormatUint(h.Sum64(), 36) + ".sock"
	if path.IsAbs(runtimeDir) {
		if name = path.Join(runtimeDir, "ken", short); len(name) <= maxPath {
			return name, true
		}
	}
	return path.Join("/tmp", "ken-"+strconv.Itoa(os.Geteuid()), short), true
}

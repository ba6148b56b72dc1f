package browser

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ken/internal/procid"
	"ken/internal/run/executor"
	"ken/internal/run/executor/browser/devtools"
	"ken/internal/run/sandbox"
)

// Programs returns the names by which Chromium is looked for, best first.
func Programs() []string {
	return []string{"chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome"}
}

// launch starts the program that its arguments name, with the pipes of the
// DevTools protocol as its files 3 and 4. The sandbox gives a program only its
// standard streams, and the address of the proxy as a variable.
const launch = `mkdir -p "$HOME" && exec "$0" "$@" --proxy-server="$HTTP_PROXY" 3<&0 4>&1 </dev/null >&2`

// flags are those of every browser.
func flags() []string {
	return []string{
		"--headless", "--remote-debugging-pipe", "--no-startup-window",
		// Its own sandbox needs namespaces and system calls that ours denies.
		"--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
		// All it sends goes through the proxy, names to resolve too.
		"--proxy-bypass-list=<-loopback>", "--disable-quic", "--webrtc-ip-handling-policy=disable_non_proxied_udp",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps", "--disable-extensions",
		"--disable-domain-reliability", "--no-pings", "--no-first-run", "--no-default-browser-check", "--no-service-autorun",
		"--disable-breakpad", "--disable-crash-reporter", "--mute-audio", "--hide-scrollbars", "--password-store=basic", "--use-mock-keychain",
		"--disable-features=Translate,MediaRouter,OptimizationHints,AutofillServerCommunication,CertificateTransparencyComponentUpdater,DialMediaRouteProvider",
		"--disable-blink-features=AutomationControlled", "--window-size=1280,900", "--lang=en-US",
	}
}

// start starts a browser in a work directory. It runs until life ends.
func (e *Executor) start(life context.Context, work *os.Root, r *room, way sandbox.Egress, on func(*devtools.Conn, devtools.Event)) (*devtools.Conn, *sandbox.Process, error) {
	program, err := e.program()
	if err != nil {
		return nil, nil, err
	}
	profile := "/tmp/profile" // in memory, of this run alone, and gone with it
	if e.cfg.Require == sandbox.Off || sandbox.Probe(life).Isolation.Profile != sandbox.Full {
		if profile, err = r.folder("profile"); err != nil {
			return nil, nil, err
		}
	}
	toBrowser, out, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer toBrowser.Close()
	in, fromBrowser, err := os.Pipe()
	if err != nil {
		out.Close()
		return nil, nil, err
	}
	defer fromBrowser.Close()
	env, _ := executor.Environment(executor.DefaultPath, nil, nil)
	env = append(env, "HOME="+profile, "XDG_CONFIG_HOME="+profile, "XDG_CACHE_HOME="+profile, "XDG_DATA_HOME="+profile, "TMPDIR="+profile)
	p, err := sandbox.Start(life, sandbox.Spec{
		Path: "/bin/sh", Args: append([]string{"sh", "-c", launch, program.Path, "--user-data-dir=" + profile}, flags()...),
		Read: []string{"/etc/chromium", "/etc/chromium.d"}, // its launcher on Debian needs them
		Work: work, Env: env, Egress: way, Open: sandbox.Open{UnixSockets: true}, Limits: e.processLimits(), Require: e.cfg.Require, StdinFile: toBrowser, StdoutFile: fromBrowser,
	})
	if err != nil {
		in.Close()
		out.Close()
		return nil, nil, err
	}
	return devtools.New(in, out, on), p, nil
}

// program finds Chromium.
func (e *Executor) program() (executor.Program, error) {
	var worst error
	for _, name := range Programs() {
		p, err := e.programs.Find(name)
		if err == nil {
			return p, nil
		}
		if worst == nil || !errors.Is(err, os.ErrNotExist) {
			worst = err
		}
	}
	return executor.Program{}, worst
}

// roomPrefix begins the names of the folders that browsers have in a work
// directory, before the name of the Ken that they belong to.
const roomPrefix = ".browser-"

// A room is a folder of a browser in its work directory, for files on their way
// in and out. It is made when it is needed and removed with the browser; that of
// a Ken that was killed is removed when the next browser starts.
type room struct {
	work *os.Root
	name string // empty: not made
}

// folder makes a folder in the room and returns its path.
func (r *room) folder(name string) (string, error) {
	if r.name == "" {
		own := roomPrefix + url.PathEscape(procid.Self()) + "~" + rand.Text()[:8]
		if err := r.work.Mkdir(own, 0o700); err != nil {
			return "", fmt.Errorf("make a folder for the browser: %w", err)
		}
		r.name = own
	}
	if err := r.work.MkdirAll(r.name+"/"+name, 0o700); err != nil {
		return "", fmt.Errorf("make a folder for the browser: %w", err)
	}
	at, err := filepath.Abs(r.work.Name())
	return filepath.Join(at, r.name, name), err
}

func (r *room) remove() {
	if r.name != "" {
		r.work.RemoveAll(r.name) // what stays is tried again when a browser starts
		r.name = ""
	}
}

// sweep removes the rooms of processes that are gone.
func sweep(work *os.Root) {
	dir, err := work.Open(".")
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, roomPrefix)
		owner, _, whole := strings.Cut(rest, "~")
		if owner, err = url.PathUnescape(owner); ok && whole && err == nil && procid.Dead(owner) {
			work.RemoveAll(name)
		}
	}
}

// processLimits are those of a browser. It lives longer than a call: how long, the
// executor decides.
func (e *Executor) processLimits() sandbox.Limits {
	l := e.cfg.Limits
	l.Wall = longestLife + time.Minute
	l.CPU = l.Wall
	l.Disk, l.AddressSpace = -1, -1 // it reserves terabytes, and uses little of them
	l.Scratch = max(l.Scratch, scratch)
	l.Processes = max(l.Processes, tasks)
	l.OpenFiles = max(l.OpenFiles, 4096)
	l.OutputStop = 0
	return l
}

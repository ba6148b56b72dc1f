package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// slack is what the helper needs beside the tool: memory and tasks that a
// cgroup charges to both.
const (
	slackMemory = 16 * mib
	slackTasks  = 12
)

// landlockSignals is the first Landlock that keeps signals in.
const landlockSignals = 6

// cgroupHomes are the directories in which groups of ours may be made, by
// controller: "2" for the unified hierarchy, "memory" and "pids" for old ones.
// Only those that exist are there; whether we may write is seen by trying.
var cgroupHomes = onceGood(func() (map[string]string, error) {
	homes := make(map[string]string)
	mine := make(map[string]string)
	data, err := os.ReadFile("/proc/self/cgroup")
	if scarce(err) {
		return nil, err
	}
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for c := range strings.SplitSeq(parts[1], ",") {
			mine[c] = parts[2]
		}
	}
	if data, err = os.ReadFile("/proc/self/mountinfo"); scarce(err) {
		return nil, err
	}
	for line := range strings.Lines(string(data)) {
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		at, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(at) < 5 || len(kind) < 3 {
			continue
		}
		switch kind[0] {
		case "cgroup2":
			homes["2"] = filepath.Join(at[4], mine[""])
		case "cgroup":
			for c := range strings.SplitSeq(kind[2], ",") {
				if c == "memory" || c == "pids" {
					homes[c] = filepath.Join(at[4], mine[c])
				}
			}
		}
	}
	for _, home := range homes {
		removeStale(home)
	}
	return homes, nil
})

// removeStale takes away what runtimes left that were killed. The kernel lets
// only empty groups go.
func removeStale(home string) {
	groups, _ := filepath.Glob(filepath.Join(home, "ken-*-*"))
	for _, dir := range groups {
		text, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), "ken-"), "-")
		if pid, err := strconv.Atoi(text); err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			os.Remove(dir)
		}
	}
}

var groupNumber atomic.Int64

// A group is the cgroups of one run. Its zero value is none at all.
type group struct {
	unified *os.File // to be cloned into; nil when there is none
	dirs    []string // all, to be joined and removed
	old     []string // those joined by writing a pid
	bounds  []string
	version string
}

// openGroup makes the cgroups a run needs: for memory, for tasks where a user
// namespace does not count them, and for killing where the tool could kill its
// helper and so escape the sweep. What cannot be had is left out; [group.name]
// says what is in force.
func openGroup(l Limits, p Profile, open Open, abi func() int) *group {
	g := new(group)
	namespaces := p == Full
	counts := namespaces && !(open.Files && os.Getuid() == 0)
	kill := !namespaces && (p == None || abi() < landlockSignals)
	// Joining an old hierarchy waits for the kernel's grace periods, some
	// milliseconds: not for a default.
	needTasks := !counts && l.Processes > 0 && l.Processes != defaultProcesses
	if l.Memory <= 0 && !needTasks && !kill {
		return g
	}
	name := fmt.Sprintf("ken-%d-%d", os.Getpid(), groupNumber.Add(1))
	homes, _ := cgroupHomes() // without one, other means hold the run, or it says what is missing
	if home := homes["2"]; home != "" {
		g.openUnified(filepath.Join(home, name), l, needTasks, kill)
	}
	if l.Memory > 0 && !g.has("memory") {
		g.openOld(homes["memory"], name, "memory", "memory.limit_in_bytes", l.Memory+slackMemory)
	}
	if needTasks && !g.has("pids") {
		g.openOld(homes["pids"], name, "pids", "pids.max", l.Processes+slackTasks)
	}
	return g
}

func (g *group) openUnified(dir string, l Limits, tasks, kill bool) {
	if os.Mkdir(dir, 0o755) != nil {
		return
	}
	g.dirs = append(g.dirs, dir)
	var bounds []string
	if l.Memory > 0 && put(dir, "memory.max", l.Memory+slackMemory) == nil {
		put(dir, "memory.swap.max", 0)
		put(dir, "memory.oom.group", 1) // end the whole call, not one process of it
		bounds = append(bounds, "memory")
	}
	if tasks && put(dir, "pids.max", l.Processes+slackTasks) == nil {
		bounds = append(bounds, "pids")
	}
	if _, err := os.Stat(filepath.Join(dir, "cgroup.kill")); err == nil && kill {
		bounds = append(bounds, "kill")
	}
	f, err := os.Open(dir)
	if err != nil || len(bounds) == 0 {
		return
	}
	g.unified, g.bounds, g.version = f, bounds, "v2"
}

func (g *group) openOld(home, name, controller, file string, value int64) {
	if home == "" {
		return
	}
	dir := filepath.Join(home, name)
	if os.Mkdir(dir, 0o755) != nil {
		return
	}
	g.dirs = append(g.dirs, dir)
	if put(dir, file, value) != nil {
		return
	}
	g.old = append(g.old, dir)
	g.bounds = append(g.bounds, controller)
	if g.version == "" {
		g.version = "v1"
	} else if g.version == "v2" {
		g.version = "v1+v2"
	}
}

func put(dir, file string, value int64) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(strconv.FormatInt(value, 10))
	return err
}

func (g *group) has(bound string) bool {
	for _, b := range g.bounds {
		if b == bound {
			return true
		}
	}
	return false
}

// name is how an [Isolation] tells of the group.
func (g *group) name() string {
	if len(g.bounds) == 0 {
		return "none"
	}
	return g.version + ":" + strings.Join(g.bounds, ",")
}

// joinsLater moves a process into the group that it could not be cloned into.
func (g *group) joinsLater() {
	if dir := g.unified.Name(); !slices.Contains(g.old, dir) {
		g.old = append(g.old, dir)
	}
}

// join moves a process into the groups that it was not born in.
func (g *group) join(pid int) error {
	for _, dir := range g.old {
		if err := put(dir, "cgroup.procs", int64(pid)); err != nil {
			return fmt.Errorf("join cgroup %s: %w", dir, err)
		}
	}
	return nil
}

// kill kills everything in the group, where the kernel can.
func (g *group) kill() {
	if g.unified != nil {
		put(g.unified.Name(), "cgroup.kill", 1)
	}
}

// starved reports whether a process of the group was killed for memory.
func (g *group) starved() bool {
	for _, dir := range g.dirs {
		for _, file := range []string{"memory.events", "memory.oom_control"} {
			data, _ := os.ReadFile(filepath.Join(dir, file))
			for line := range bytes.Lines(data) {
				f := bytes.Fields(line)
				if len(f) == 2 && string(f[0]) == "oom_kill" && string(f[1]) != "0" {
					return true
				}
			}
		}
	}
	return false
}

// remove takes the group away. A group that is still being emptied by the
// kernel is tried again in the background; should that fail an empty
// directory stays.
func (g *group) remove() {
	if g.unified != nil {
		g.unified.Close()
	}
	for _, dir := range g.dirs {
		if os.Remove(dir) != nil {
			go removeLater(dir)
		}
	}
}

func removeLater(dir string) {
	for pause := time.Millisecond; pause < 2*time.Second; pause *= 2 {
		time.Sleep(pause)
		if os.Remove(dir) == nil {
			return
		}
	}
}

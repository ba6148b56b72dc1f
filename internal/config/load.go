package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"ken/capability"
	"ken/internal/config/orchestration"
	"ken/internal/dirs"
)

// Load reads the configuration: the defaults, then the user's file, then what
// replicas share (see [SharedFile]), then the project's. An explicit file, when not empty, replaces both and counts as the
// user's own words; a relative name counts from the workspace. No file at all
// is fine, unless it was named. The other configuration of an experiment is
// read as well; what is wrong with that one refuses both.
//
// The error is an *[Error] with all that is wrong in all files.
func Load(places dirs.Places, explicit string) (Config, error) {
	own, project, problems := filesOf(places, explicit)
	problems = append(problems, dirs.Distrust(places.Home)...)
	if own != "" {
		problems = append(problems, dirs.Distrust(own)...)
	}
	cfg, wrong, widening := load(places, own, project, func(c *Config) []capability.Problem {
		return append(c.readCedar(), ownAccess(places, c, explicit != "")...)
	})
	problems = slices.Concat(problems, wrong, widening, projectAccess(places, &cfg), cfg.readClientRules(places))
	if e := cfg.Experiment; len(problems) == 0 && e.Name != "" && e.Config != "" {
		// What the project says was taken before. Where B has less than that,
		// B stands.
		b, wrong, _ := load(places, e.Config, project, nil)
		b = cfg.with(b)
		for i := range wrong {
			if wrong[i].Code == codeUnreadable {
				wrong[i].Message += ", and experiment.config names it (" + cfg.said("experiment.config") + ")"
			}
		}
		cfg.other, problems = &b, wrong
	}
	if len(problems) > 0 {
		return Config{}, &Error{problems}
	}
	if cfg.Trace.Orchestration != OrchestrationOff {
		cfg.Work, cfg.Policy.Scope = orchestration.Read(places.Workspace)
	}
	return cfg, nil
}

// load reads the two files, where there are any, and says what is wrong with
// each. more, where it is not nil, adds what else the user says before the
// project narrows it.
func load(p dirs.Places, own, project string, more func(*Config) []capability.Problem) (cfg Config, wrong, widening []capability.Problem) {
	cfg = Default()
	cfg.origins = map[string]saying{}
	if own != "" {
		r := newReading(p, own, false)
		cfg.files = append(cfg.files, own)
		cfg.over(r.read(), &r)
		wrong = r.sorted()
	}
	if shared := SharedFile(p); cfg.Store != "" && there(shared) {
		r := newReading(p, shared, false)
		cfg.files = append(cfg.files, shared)
		cfg.over(r.read(), &r)
		wrong = append(wrong, r.sorted()...)
	}
	if more != nil {
		wrong = append(wrong, more(&cfg)...)
	}
	if project != "" {
		r := newReading(p, project, true)
		cfg.files = append(cfg.files, project)
		cfg.narrow(r.read(), &r)
		r.distinctNames(cfg.Catalog.Sources)
		r.distinctRules(cfg.Policy.Rules)
		widening = r.sorted()
	}
	return cfg, wrong, widening
}

// SharedFile is the copy of the settings that all replicas on one PostgreSQL share.
// They go over the user's file, and count only with a store there.
func SharedFile(places dirs.Places) string { return filepath.Join(places.State, "shared.yaml") }

func there(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// filesOf returns the user's and the project's file, empty where there is none.
func filesOf(p dirs.Places, explicit string) (own, project string, problems []capability.Problem) {
	if explicit != "" {
		if !filepath.IsAbs(explicit) {
			explicit = filepath.Join(p.Workspace, explicit)
		}
		return explicit, "", nil
	}
	own, there, problems := find(p.Home)
	if !there {
		own = ""
	}
	if p.Project == p.Home {
		return own, "", problems
	}
	project, there, more := find(p.Project)
	if !there || sameFile(own, project) {
		project = "" // at home, the user's file is not the project's
	}
	return own, project, append(problems, more...)
}

// File returns the user's configuration file, whether it is there or not. It
// fails where it is not clear which that is.
func File(places dirs.Places) (string, error) {
	file, _, problems := find(places.Home)
	if len(problems) > 0 {
		return "", &Error{problems}
	}
	return file, nil
}

func sameFile(a, b string) bool {
	ai, err := os.Stat(a)
	if err != nil {
		return false
	}
	bi, err := os.Stat(b)
	return err == nil && os.SameFile(ai, bi)
}

// The names of a configuration file. A directory has one of the two.
const (
	YAMLName = "ken.yaml"
	JSONName = "ken.json"
)

// find returns the configuration file of a directory: ken.yaml, or ken.json
// where only that is there. Two at once, and a name that would be passed over,
// are problems.
func find(dir string) (file string, there bool, problems []capability.Problem) {
	file = filepath.Join(dir, YAMLName)
	for _, name := range []string{YAMLName, JSONName, "ken.yml"} {
		candidate := filepath.Join(dir, name)
		_, err := os.Lstat(candidate)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return file, false, append(problems, unreadable(candidate, err))
		case name == "ken.yml":
			problems = append(problems, capability.Problem{
				Code: "wrong-name", Origin: capability.Origin{Path: candidate},
				Message: "this file is not read", Fix: "rename it to ken.yaml",
			})
		case there:
			problems = append(problems, capability.Problem{
				Code: "two-files", Origin: capability.Origin{Path: candidate},
				Message: "ken.yaml is there as well", Fix: "keep one of the two",
			})
		default:
			file, there = candidate, true
		}
	}
	return file, there, problems
}

// Package sources turns the settings of the catalog into an ordered list of
// sources.
package sources

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/dirs"
	"ken/internal/know/source"
	"ken/internal/know/source/parsecache"
	"ken/internal/know/source/remote"
	"ken/internal/know/source/table"
)

// A Config says what a [Planner] works with.
type Config struct {
	Settings config.Catalog
	Places   dirs.Places
	Cache    *parsecache.Cache
	OwnTools func(name string) *source.Memory // the tools that are part of the program
}

// A Planner collects the sources of the catalog, lowest precedence first, and
// then makes them.
type Planner struct {
	cfg   Config
	plan  []planned
	names map[string]bool // that are taken
	err   error
}

// A Place is somewhere capabilities are read from.
type Place struct {
	Name  string           `json:"name"`
	Trust capability.Trust `json:"trust"`
	Why   string           `json:"why"`
}

// planned is a source that is not made yet.
type planned struct {
	name  string
	path  string // of files, so that none are read twice
	place Place
	make  func(name string) (capability.Source, error)

	fallback bool // only while nothing else brings anything
}

// Built is what [Planner.Build] has made.
type Built struct {
	Sources  []capability.Source // lowest precedence first
	Fallback capability.Source   // read while the others bring nothing; may be nil
	Places   []Place             // highest precedence first
	Close    []func() error      // of sources that must be closed
}

// NewPlanner returns a Planner without sources.
func NewPlanner(cfg Config) *Planner { return &Planner{cfg: cfg, names: map[string]bool{}} }

// Build makes the planned sources. A path that is planned twice is read once, at
// its highest precedence; a name that is taken gets a number. Build returns what
// it has made also with an error.
func (s *Planner) Build() (b Built, err error) {
	paths := map[string]bool{}
	for _, p := range slices.Backward(s.plan) {
		if p.path != "" && paths[p.path] {
			continue
		}
		paths[p.path] = true
		name := s.FreeName(p.name)
		src, err := p.make(name)
		if err != nil {
			s.err = errors.Join(s.err, err)
			continue
		}
		if c, ok := src.(io.Closer); ok {
			b.Close = append(b.Close, c.Close)
		}
		p.place.Name = name
		b.Places = append(b.Places, p.place)
		if p.fallback {
			b.Fallback = src
		} else {
			b.Sources = append(b.Sources, src)
		}
	}
	slices.Reverse(b.Sources)
	return b, s.err
}

// FreeName returns a name that is not taken, and takes it.
func (s *Planner) FreeName(want string) string {
	name := want
	for n := 2; s.names[name]; n++ {
		name = fmt.Sprintf("%s (%d)", want, n)
	}
	s.names[name] = true
	return name
}

// Add plans a source that exists already.
func (s *Planner) Add(src capability.Source, place Place) {
	s.plan = append(s.plan, planned{
		name: src.Name(), place: place,
		make: func(name string) (capability.Source, error) {
			if name != src.Name() {
				return nil, fmt.Errorf("open: two sources are called %q; name one of them differently", src.Name())
			}
			return src, nil
		},
	})
}

func (s *Planner) tree(cfg source.TreeConfig, why string) {
	cfg.Cache = s.cfg.Cache
	cfg.Watch = source.WatchConfig{Debounce: s.cfg.Settings.Debounce, Poll: s.cfg.Settings.Poll}
	if cfg.Name == "" {
		cfg.Name = cfg.Path
	}
	s.plan = append(s.plan, planned{
		name: cfg.Name, path: cfg.Path, place: Place{Trust: cfg.Trust, Why: why},
		make: func(name string) (capability.Source, error) {
			cfg.Name = name
			return source.NewTree(cfg), nil
		},
	})
}

// Only plans the folders and files that --catalog names. It is an error if one
// does not exist.
func (s *Planner) Only(dir string, paths []string) {
	for _, p := range paths {
		wrong := func(why, fix string) {
			s.err = errors.Join(s.err, &capability.Error{
				Kind: capability.Invalid, Op: "open catalog", Target: p, Err: errors.New(why), Fix: fix,
			})
		}
		if strings.Contains(p, "://") {
			wrong("it is an address, not a path", "name it in ken.yaml, under catalog.sources")
			continue
		}
		if !filepath.IsAbs(p) {
			p = filepath.Join(dir, p)
		}
		if _, err := os.Stat(p); err != nil {
			wrong("there is nothing to read", "name a directory or a file of capabilities")
			continue
		}
		s.tree(source.TreeConfig{Path: filepath.Clean(p), Trust: capability.TrustUser}, "named by --catalog")
	}
}

// Usual plans Ken's own tools, the starter catalog, the user's places, what
// ken.yaml names, the project's places, and those of the environment.
func (s *Planner) Usual() {
	settings := s.cfg.Settings
	s.plan = append(s.plan, planned{
		name:  "ken",
		place: Place{Trust: capability.TrustBuiltin, Why: "Ken's own tools, part of the program"},
		make:  func(name string) (capability.Source, error) { return s.cfg.OwnTools(name), nil },
	})
	if settings.Starter != config.StarterOff {
		p := planned{
			name:  "starter",
			place: Place{Trust: capability.TrustBuiltin, Why: "part of the program; ken config set catalog.starter off leaves it out"},
			make:  func(name string) (capability.Source, error) { return source.Starter(name), nil },
		}
		if settings.Starter == config.StarterAuto {
			p.fallback = true
			p.place.Why = "part of the program, used while you have no tools of your own (catalog.starter: auto)"
		}
		s.plan = append(s.plan, p)
	}
	places := s.cfg.Places.Catalog(settings.CompatibilityPaths)
	slices.Reverse(places) // lowest layer first
	s.places(places, dirs.LayerUser)
	for _, named := range settings.Sources {
		s.named(named)
	}
	s.places(places, dirs.LayerWorkspace)
	s.places(places, dirs.LayerEnv)
}

func (s *Planner) places(places []dirs.Place, layer dirs.Layer) {
	for _, p := range places {
		if p.Layer != layer {
			continue
		}
		cfg := source.TreeConfig{Path: p.Path, Trust: p.Trust, Optional: p.Optional}
		if layer == dirs.LayerWorkspace {
			cfg.Within = s.cfg.Places.Workspace
		}
		s.tree(cfg, p.Why)
	}
}

// named plans one source of ken.yaml.
func (s *Planner) named(n config.Source) {
	why := "named by " + n.Origin.String()
	if n.Path != "" {
		cfg := source.TreeConfig{Name: n.Name, Path: n.Path, Trust: n.Trust, Optional: n.Optional}
		if s.ofProject(n) {
			cfg.Within = s.cfg.Places.Workspace
		}
		s.tree(cfg, why)
		return
	}
	refresh := n.Refresh
	if refresh == 0 {
		refresh = -1 // only at the start
	}
	s.plan = append(s.plan, planned{
		name: n.Name, place: Place{Trust: n.Trust, Why: why},
		make: func(name string) (src capability.Source, err error) {
			if n.URL != "" {
				src, err = remote.New(remote.Config{
					Name: name, URL: n.URL, SHA256: n.SHA256, Refresh: refresh, Cache: s.cfg.Cache,
					CacheDir: filepath.Join(s.cfg.Places.Cache, "remote"),
				})
			} else {
				src, err = table.New(table.Config{Name: name, DSN: n.Database, Table: n.Table, Trust: n.Trust, Poll: refresh})
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", n.Origin, err)
			}
			return src, nil
		},
	})
}

// ofProject reports whether the project's own ken.yaml names a source. Such a
// source must not leave the project.
func (s *Planner) ofProject(n config.Source) bool {
	p := s.cfg.Places
	return p.Project != p.Home && filepath.Dir(n.Origin.Path) == p.Project
}

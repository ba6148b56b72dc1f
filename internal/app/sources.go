package app

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
	"ken/internal/know/source"
	"ken/internal/know/source/table"
)

// sources plans what the catalog is made of, lowest precedence first, and then
// makes it.
type sources struct {
	app      *App
	cache    *source.Cache
	plan     []planned
	fallback capability.Source
	names    map[string]bool // that are taken
	err      error
}

// planned is a source that is not made yet.
type planned struct {
	name  string
	path  string // of files, so that none are read twice
	place Place
	make  func(name string) (capability.Source, error)

	fallback bool // only while nothing else brings anything
}

// build makes what is planned. A path that is planned twice is read once, at
// its highest precedence; a name that is taken gets a number.
func (s *sources) build() (list []capability.Source, err error) {
	paths := map[string]bool{}
	s.names = map[string]bool{}
	for _, p := range slices.Backward(s.plan) {
		if p.path != "" && paths[p.path] {
			continue
		}
		paths[p.path] = true
		name := s.free(p.name)
		src, err := p.make(name)
		if err != nil {
			s.err = errors.Join(s.err, err)
			continue
		}
		if c, ok := src.(io.Closer); ok {
			s.app.closers = append(s.app.closers, c.Close)
		}
		p.place.Name = name
		s.app.Reading = append(s.app.Reading, p.place)
		if p.fallback {
			s.fallback = src
		} else {
			list = append(list, src)
		}
	}
	slices.Reverse(list)
	return list, s.err
}

// free returns a name that is not taken, and takes it.
func (s *sources) free(want string) string {
	name := want
	for n := 2; s.names[name]; n++ {
		name = fmt.Sprintf("%s (%d)", want, n)
	}
	s.names[name] = true
	return name
}

// given plans a source that is there already.
func (s *sources) given(src capability.Source, place Place) {
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

func (s *sources) tree(cfg source.TreeConfig, why string) {
	cfg.Cache = s.cache
	cfg.Watch = source.WatchConfig{Debounce: s.app.Settings.Catalog.Debounce, Poll: s.app.Settings.Catalog.Poll}
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

// only reads what --catalog names and nothing else. What a person names and is
// not there is a mistake, not an empty catalog.
func (s *sources) only(dir string, paths []string) {
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

// usual reads Ken's own tools, the starter catalog, the user's places, what ken.yaml names, the
// project's places, and those of the environment.
func (s *sources) usual() {
	settings := s.app.Settings.Catalog
	s.plan = append(s.plan, planned{
		name:  "ken",
		place: Place{Trust: capability.TrustBuiltin, Why: "Ken's own tools, part of the program"},
		make:  func(name string) (capability.Source, error) { return ownTools(name), nil },
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
	places := s.app.Places.Catalog(settings.CompatibilityPaths)
	slices.Reverse(places) // lowest layer first
	s.places(places, config.LayerUser)
	for _, named := range settings.Sources {
		s.named(named)
	}
	s.places(places, config.LayerWorkspace)
	s.places(places, config.LayerEnv)
}

func (s *sources) places(places []config.Place, layer config.Layer) {
	for _, p := range places {
		if p.Layer != layer {
			continue
		}
		cfg := source.TreeConfig{Path: p.Path, Trust: p.Trust, Optional: p.Optional}
		if layer == config.LayerWorkspace {
			cfg.Within = s.app.Places.Workspace
		}
		s.tree(cfg, p.Why)
	}
}

// named reads one source of ken.yaml.
func (s *sources) named(n config.Source) {
	why := "named by " + n.Origin.String()
	if n.Path != "" {
		cfg := source.TreeConfig{Name: n.Name, Path: n.Path, Trust: n.Trust, Optional: n.Optional}
		if s.ofProject(n) {
			cfg.Within = s.app.Places.Workspace
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
				src, err = source.NewRemote(source.RemoteConfig{
					Name: name, URL: n.URL, SHA256: n.SHA256, Refresh: refresh, Cache: s.cache,
					CacheDir: filepath.Join(s.app.Places.Cache, "remote"),
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

// ofProject reports whether the project's own ken.yaml names a source, whose
// words must not lead out of the project.
func (s *sources) ofProject(n config.Source) bool {
	p := s.app.Places
	return p.Project != p.Home && filepath.Dir(n.Origin.Path) == p.Project
}

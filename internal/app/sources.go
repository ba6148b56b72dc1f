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

// sources collects what the catalog is made of, lowest precedence first.
type sources struct {
	app      *App
	cache    *source.Cache
	list     []capability.Source
	fallback capability.Source
	err      error
}

func (s *sources) add(src capability.Source, p Place) {
	s.list = append(s.list, src)
	s.app.Reading = append(s.app.Reading, p)
	if c, ok := src.(io.Closer); ok {
		s.app.closers = append(s.app.closers, c.Close)
	}
}

func (s *sources) tree(cfg source.TreeConfig, why string) {
	cfg.Cache = s.cache
	cfg.Watch = source.WatchConfig{Debounce: s.app.Settings.Catalog.Debounce, Poll: s.app.Settings.Catalog.Poll}
	t := source.NewTree(cfg)
	s.add(t, Place{Name: t.Name(), Trust: cfg.Trust, Why: why})
}

// only reads what --catalog names and nothing else. What a person names and is
// not there is a mistake, not an empty catalog.
func (s *sources) only(dir string, paths []string) {
	for _, p := range paths {
		if strings.Contains(p, "://") {
			s.err = errors.Join(s.err, &capability.Error{
				Kind: capability.Invalid, Op: "open catalog", Target: p,
				Err: errors.New("it is an address, not a path"), Fix: "name it in ken.yaml, under catalog.sources",
			})
			continue
		}
		if !filepath.IsAbs(p) {
			p = filepath.Join(dir, p)
		}
		if _, err := os.Stat(p); err != nil {
			s.err = errors.Join(s.err, &capability.Error{
				Kind: capability.Invalid, Op: "open catalog", Target: p,
				Err: errors.New("there is nothing to read"), Fix: "name a directory or a file of capabilities",
			})
			continue
		}
		s.tree(source.TreeConfig{Path: filepath.Clean(p), Trust: capability.TrustUser}, "named by --catalog")
	}
}

// usual reads the starter catalog, the user's places, what ken.yaml names, the
// project's places, and those of the environment.
func (s *sources) usual() {
	settings := s.app.Settings.Catalog
	switch settings.Starter {
	case config.StarterOn:
		s.add(source.Starter(), Place{Name: "starter", Trust: capability.TrustBuiltin, Why: "part of the program (catalog.starter: on)"})
	case config.StarterOff:
	default:
		s.fallback = source.Starter()
		s.app.Reading = append(s.app.Reading, Place{
			Name: "starter", Trust: capability.TrustBuiltin,
			Why: "part of the program, used while there is nothing else (catalog.starter: auto)",
		})
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
	refresh := n.Refresh
	if refresh == 0 {
		refresh = -1 // only at the start
	}
	var src capability.Source
	var err error
	switch {
	case n.Path != "":
		s.tree(source.TreeConfig{Name: n.Name, Path: n.Path, Trust: n.Trust, Optional: n.Optional}, why)
		return
	case n.URL != "":
		src, err = source.NewRemote(source.RemoteConfig{
			Name: n.Name, URL: n.URL, SHA256: n.SHA256, Refresh: refresh, Cache: s.cache,
			CacheDir: filepath.Join(s.app.Places.Cache, "remote"),
		})
	default:
		src, err = table.New(table.Config{Name: n.Name, DSN: n.Database, Table: n.Table, Trust: n.Trust, Poll: refresh})
	}
	if err != nil {
		s.err = errors.Join(s.err, fmt.Errorf("%s: %w", n.Origin, err))
		return
	}
	s.add(src, Place{Name: n.Name, Trust: n.Trust, Why: why})
}

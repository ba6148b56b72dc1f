package config

import (
	"ken/capability"
	"ken/internal/yamldoc"
	"ken/internal/yamledit"
)

// A saying is where the value of a key was said.
type saying struct {
	where string
	own   bool // the user's file says something about the key too
}

// A Setting is one key with the value in force and where it was said.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`  // as ken.yaml would have it, on one line
	Origin string `json:"origin"` // "file:line", several with ", " between, "profile lean" or "default"
	Doc    string `json:"doc"`    // one line about the key
}

const fromDefault = "default"

// Settings lists every key, in the order of [Sample].
func (c Config) Settings() []Setting {
	var out []Setting
	for _, s := range settings() {
		out = append(out, Setting{Key: s.name, Value: yamledit.Flow(shown(s, &c)), Origin: c.origin(s), Doc: s.doc})
	}
	return out
}

// HasEntries reports whether a value, as [Config.Explain] returns it, is a list or a
// map that is not empty.
func HasEntries(value string) bool {
	return len(value) > 2 && (value[0] == '[' || value[0] == '{')
}

// Explain returns the value of one key as ken.yaml would have it, and where it
// was said: "file:line", "profile lean" or "default". A single pin is
// "catalog.pins.ID", a single override "catalog.overrides.ID".
func (c Config) Explain(key string) (value, origin string, err error) {
	if whole, id, ok := hashKey(key); ok {
		list, what := c.Catalog.Pins, "pin"
		if whole+"." == overPrefix {
			list, what = c.Catalog.Overrides, "override"
		}
		if hash, ok := list[capability.ID(id)]; ok {
			return yamledit.Flow(hash), c.said(whole), nil
		}
		return "", "", invalid("get", key, "no such "+what, "`ken config get "+whole+"` lists them")
	}
	if whole, below, ok := namedKey(key); ok {
		s, err := settingOf("get", whole)
		if err != nil {
			return "", "", err
		}
		v, err := yamldoc.ParseValue([]byte(yamledit.Flow(shown(s, &c))), limits())
		for _, name := range below {
			m, isMap := v.Any.(*yamldoc.Map)
			if !isMap {
				return "", "", invalid("get", key, "not set", "`ken config get "+whole+"` shows all")
			}
			if v, ok = m.Get(name); !ok {
				return "", "", invalid("get", key, "not set", "`ken config get "+whole+"` shows all")
			}
		}
		return yamledit.Flow(v.Any), c.said(whole), err
	}
	s, err := settingOf("get", key)
	if err != nil {
		return "", "", err
	}
	return yamledit.Flow(shown(s, &c)), c.origin(s), nil
}

func (c Config) origin(s setting[Config]) string {
	if _, said := c.origins[s.name]; said {
		return c.said(s.name)
	}
	if s.governed {
		return "profile " + c.Policy.Profile.String()
	}
	if standard := Default(); s.profiled && yamledit.Flow(s.show(&c)) != yamledit.Flow(s.show(&standard)) {
		return "profile " + string(c.Discovery.Profile)
	}
	return fromDefault
}

// Said reports whether a file sets a key.
func (c Config) Said(key string) bool {
	_, said := c.origins[key]
	return said
}

// said returns where a key was said.
func (c Config) said(key string) string {
	if o, ok := c.origins[key]; ok {
		return o.where
	}
	return fromDefault
}

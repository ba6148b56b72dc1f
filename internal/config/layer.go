package config

import (
	"ken/capability"
	"ken/internal/yamledit"
)

// A layer is what one file says: the values of the keys that it gives, with
// their lines.
type layer struct {
	cfg   Config
	given map[string]int
}

// over lays what a file of the user's own says over c.
func (c *Config) over(l layer, r *reading) {
	for _, s := range settings() {
		if line, ok := l.given[s.name]; ok {
			s.take(c, &l.cfg)
			c.origins[s.name] = saying{capability.Origin{Path: r.file, Line: line}.String(), true}
		}
	}
	c.fill()
}

// narrow lays what a project's file says over c. A value that is wider than
// both what c has and the default is refused, since the project's author
// expects an effect that it may not have. One that is no wider than the
// default is merely not needed where c is narrower already: the project cannot
// know, and c stands, or takes of it what it can.
func (c *Config) narrow(l layer, r *reading) {
	standard, user := Default(), *c
	for _, s := range settings() {
		line, ok := l.given[s.name]
		if !ok {
			continue
		}
		here := capability.Origin{Path: r.file, Line: line}.String()
		was, said := c.origins[s.name]
		harmless := !s.exact && s.noWider(&l.cfg, &standard)
		switch {
		case s.noWider(&l.cfg, &user), harmless && s.joins:
			joined := user
			s.join(&joined, &l.cfg)
			s.take(c, &joined)
			switch same := yamledit.Flow(s.show(&user)) == yamledit.Flow(s.show(c)); {
			case said && same: // the user has it so already
			case said && s.joins:
				c.origins[s.name] = saying{was.where + ", " + here, was.own}
			default:
				c.origins[s.name] = saying{here, was.own}
			}
		case harmless:
			// It is said, if in vain: the project's profile does not count.
			c.origins[s.name] = saying{user.origin(s), was.own}
		default:
			r.fault(spot{s.name, line}, "widens", "remove it, or put it into "+r.ownFile,
				"a project's file may narrow but not widen: %s is %s here and %s without it",
				s.name, brief(shown(s, &l.cfg)), brief(shown(s, &user)))
		}
	}
	c.fill()
}

// brief writes a value for a message.
func brief(v any) string {
	switch s, isText := v.(string); {
	case v == "":
		return "empty"
	case isText:
		return plain(s)
	}
	return plain(yamledit.Flow(v))
}

package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/serve/skillshelf"
	"ken/internal/untrusted"
)

// skillsExtension is the extension by which clients read skills with their files
// and digests (SEP-2640).
const skillsExtension = "io.modelcontextprotocol/skills"

// Skills reads the skills that lie in local files.
type Skills interface {
	// Skill describes a skill. The addresses of its files are paths within its
	// folder. An error says why it is not offered.
	Skill(e *door.Entry) (skillshelf.Skill, error)

	// File reads a file of it, as Skill has described it.
	File(e *door.Entry, path string) ([]byte, error)
}

// addSkills adds the skills in files that their user trusts, and then those of
// servers. The texts of other files are given in a fence, as resources of Ken.
func (o *offerings) addSkills(s *Server, texts []*door.Entry, offers []Offer) {
	for _, e := range texts {
		if s.cfg.Skills == nil || e.Kind != capability.KindSkill || e.Trust < capability.TrustUser || e.Withheld != "" {
			continue
		}
		one, err := s.cfg.Skills.Skill(e)
		if err != nil {
			s.log.Debug("a skill is not offered with its files", "skill", e.ID, "why", err)
			continue
		}
		o.skills.AddOwn(e.ID, e.Name, one)
	}
	for _, offer := range offers {
		for _, one := range offer.Skills {
			if offer.Read != "" {
				o.skills.AddServer(offer.Server, one)
				o.servers[offer.Server] = origin{reader: offer.Read, server: offer.Server}
			}
		}
	}
	all := shelf{"skills", map[string]json.RawMessage{}}
	for _, sk := range o.skills.All() {
		all.put(sk.URI, sk.Skill)
	}
	o.skillList = all.list()
}

// seenSkills returns the skills that the viewer may use.
func seenSkills(v door.View, all []skillshelf.Skill) (out []skillshelf.Skill) {
	for _, one := range all {
		if seen(v, one.Read) != "" {
			out = append(out, one)
		}
	}
	return out
}

// skillFile returns where a file of a skill is read.
func (o *offerings) skillFile(uri string) (out origin, ok bool) {
	sk, ok := o.skills.Find(uri)
	if !ok {
		return out, false
	}
	if sk.Server == "" {
		return origin{text: sk.Text, file: sk.Path(uri), name: uri, mime: skillshelf.TypeOf(uri)}, true
	}
	out = o.servers[sk.Server]
	out.name, out.mime = sk.Theirs(uri), skillshelf.TypeOf(uri)
	return out, true
}

// ownFile reads a file of a local skill.
func (ep *endpoint) ownFile(v door.View, src origin) ([]capability.Part, error) {
	e, err := v.Lookup(string(src.text))
	if err != nil {
		return nil, err
	}
	if e.Withheld != "" {
		return nil, &capability.Error{Kind: capability.Denied, Op: "read", Target: string(e.ID), Err: errors.New(e.Withheld)}
	}
	data, err := ep.s.cfg.Skills.File(e, src.file)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(data) {
		return []capability.Part{{Data: data, MIME: src.mime}}, nil
	}
	return []capability.Part{{Text: string(data), MIME: src.mime}}, nil
}

type skillParams struct {
	mcp.ParamsBase
	URI    string `json:"uri"`
	Cursor string `json:"cursor"`
}

// answerSkills answers the requests about skills.
func (ep *endpoint) answerSkills() error {
	add := func(method string, answerTo func(o *offerings, p *skillParams, modern bool) (*answer, error)) error {
		return mcp.AddReceivingCustomMethod(ep.sdk, method, func(_ context.Context, _ *mcp.ServerSession, p *skillParams) (*answer, error) {
			if p == nil {
				p = &skillParams{}
			}
			return answerTo(ep.offerings(ep.view()), p, isModern(p))
		})
	}
	missing := func(uri, why string) error {
		return fault(jsonrpc.CodeInvalidParams, untrusted.Line(uri, 200)+why, map[string]string{"uri": uri})
	}
	return errors.Join(
		add("skills/list", func(o *offerings, p *skillParams, modern bool) (*answer, error) {
			return o.skillList.answer(p.Cursor, modern)
		}),
		add("skills/get", func(o *offerings, p *skillParams, modern bool) (*answer, error) {
			sk, ok := o.skills.Find(p.URI)
			if !ok || sk.URI != p.URI {
				return nil, missing(p.URI, " is not the address of a skill")
			}
			raw, err := json.Marshal(sk.Skill)
			if err != nil {
				return nil, err
			}
			b := append(completeList(modern), `"skill":`...)
			return &answer{body: append(append(b, raw...), '}')}, nil
		}),
		add("resources/directory/read", func(o *offerings, p *skillParams, modern bool) (*answer, error) {
			list := o.skills.Children(p.URI)
			if len(list) == 0 {
				return nil, missing(p.URI, " is not a folder of a skill")
			}
			all := shelf{"resources", map[string]json.RawMessage{}}
			for _, c := range list {
				all.put(c.URI, c)
			}
			return all.list().answer(p.Cursor, modern)
		}),
	)
}
